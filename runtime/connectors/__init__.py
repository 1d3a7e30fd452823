"""Connectors: where data enters (collections, files, generators, inlets, Spark) and leaves (files, driver, a print)."""

from importlib import import_module
from typing import TYPE_CHECKING

from ..lazy_names import home_of_each, lazy_names

if TYPE_CHECKING:
    from .collection_source import CollectionSource
    from .errors import (
        ConnectorError,
        HttpRefused,
        InletLogDamaged,
        InletSchemaChanged,
        InputChanged,
        LostTransaction,
        MissingExtra,
        NoInput,
        NonDeterministicSource,
        NotAScan,
        OffsetMismatch,
        OutputTakenOver,
        PartitionFailed,
        RedisRefused,
        RewindImpossible,
        SparkQueryFailed,
        SpoolMismatch,
        StreamTrimmed,
        UnknownFileSystem,
        UnreadableFile,
        UnreadableInput,
        UnusableOutput,
    )
    from .files.collect_sink import CollectSink, read_collected
    from .files.file_sink import FileSink
    from .files.file_source import FileSource
    from .files.outlet_sink import OutletSink
    from .files.watched_file_source import WatchedFileSource
    from .frames import table_of
    from .generator_source import GeneratorSource
    from .index_share import IndexShare
    from .inlet.inlet_source import InletSource, subtask_of
    from .inlet.sent_records import SentRecords, columns_to_bytes, to_payload
    from .kafka import (
        AvroFormat,
        DataGone,
        KafkaError,
        KafkaFormat,
        KafkaRefused,
        KafkaSink,
        KafkaSource,
        KafkaUnavailable,
        NoSuchTopic,
        TransactionLost,
        UnreadableMessage,
    )
    from .lakes.delta_sink import DeltaSink
    from .lakes.delta_source import DeltaSource
    from .lakes.errors import (
        ColumnConflict,
        LakeUnreachable,
        LostDataFile,
        NoCatalog,
        NoTable,
        RowsChanged,
        UnsupportedTable,
        VersionGone,
    )
    from .lakes.iceberg_sink import IcebergSink
    from .lakes.iceberg_source import IcebergSource
    from .lakes.lake_sink import LakeSink
    from .paced_source import COLUMN_BATCH_ROWS, COMPILED_BATCH_ROWS
    from .pacer import Pacer
    from .print_sink import PrintSink
    from .redis.redis_sinks import RedisListSink, RedisStreamSink, RedisUpsertSink
    from .redis.redis_stream_source import RedisStreamSource
    from .spark.fingerprint import Fingerprint
    from .spark.partition_feed import PartitionFeed, PartitionPosition
    from .spark.rewind_buffer import RewindBuffer
    from .spark.scan_plan import ScanPlan, scan_plan
    from .spark.scan_source import ScanSource
    from .spark.spark_source import SparkSource
    from .sql.changes.postgres_changes import PostgresChanges
    from .sql.errors import (
        ChangesLost,
        DatabaseRefused,
        DatabaseUnreachable,
        KeyNotUnique,
        NoSuchTable,
        NotReplicable,
        ReplicationError,
        RowsLeftOut,
        SlotInUse,
        SqlError,
        StatementFailed,
        TableChanged,
        TableMismatch,
    )
    from .sql.lookup import SqlLookupJoin, SqlTable
    from .sql.sql_sinks import SqlSink, SqlUpsertSink
    from .sql.sql_source import SqlSource
    from .table_source import TableSource
    from .web.event_stream import ServerEvent
    from .web.http_source import HttpSource
    from .web.line_source import LineSource
    from .web.sse_source import SseSource
    from .web.websocket_source import WebsocketSource

_HOMES = {
    "collection_source": "CollectionSource",
    "errors": (
        "ConnectorError HttpRefused InletLogDamaged InletSchemaChanged InputChanged LostTransaction "
        "MissingExtra NoInput NonDeterministicSource NotAScan OffsetMismatch OutputTakenOver PartitionFailed "
        "RedisRefused RewindImpossible SparkQueryFailed SpoolMismatch StreamTrimmed UnknownFileSystem "
        "UnreadableFile UnreadableInput UnusableOutput"
    ),
    "files.collect_sink": "CollectSink read_collected",
    "files.file_sink": "FileSink",
    "files.file_source": "FileSource",
    "files.outlet_sink": "OutletSink",
    "files.watched_file_source": "WatchedFileSource",
    "frames": "table_of",
    "generator_source": "GeneratorSource",
    "index_share": "IndexShare",
    "inlet.inlet_source": "InletSource subtask_of",
    "inlet.sent_records": "SentRecords columns_to_bytes to_payload",
    "kafka": (
        "AvroFormat DataGone KafkaError KafkaFormat KafkaRefused KafkaSink KafkaSource KafkaUnavailable "
        "NoSuchTopic TransactionLost UnreadableMessage"
    ),
    "lakes.delta_sink": "DeltaSink",
    "lakes.delta_source": "DeltaSource",
    "lakes.errors": (
        "ColumnConflict LakeUnreachable LostDataFile NoCatalog NoTable RowsChanged UnsupportedTable VersionGone"
    ),
    "lakes.iceberg_sink": "IcebergSink",
    "lakes.iceberg_source": "IcebergSource",
    "lakes.lake_sink": "LakeSink",
    "paced_source": "COLUMN_BATCH_ROWS COMPILED_BATCH_ROWS",
    "pacer": "Pacer",
    "print_sink": "PrintSink",
    "redis.redis_sinks": "RedisListSink RedisStreamSink RedisUpsertSink",
    "redis.redis_stream_source": "RedisStreamSource",
    "spark.fingerprint": "Fingerprint",
    "spark.partition_feed": "PartitionFeed PartitionPosition",
    "spark.rewind_buffer": "RewindBuffer",
    "spark.scan_plan": "ScanPlan scan_plan",
    "spark.scan_source": "ScanSource",
    "spark.spark_source": "SparkSource",
    "sql.changes.postgres_changes": "PostgresChanges",
    "sql.errors": (
        "ChangesLost DatabaseRefused DatabaseUnreachable KeyNotUnique NoSuchTable NotReplicable "
        "ReplicationError RowsLeftOut SlotInUse SqlError StatementFailed TableChanged TableMismatch"
    ),
    "sql.lookup": "SqlLookupJoin SqlTable",
    "sql.sql_sinks": "SqlSink SqlUpsertSink",
    "sql.sql_source": "SqlSource",
    "table_source": "TableSource",
    "web.event_stream": "ServerEvent",
    "web.http_source": "HttpSource",
    "web.line_source": "LineSource",
    "web.sse_source": "SseSource",
    "web.websocket_source": "WebsocketSource",
}
"""Where each name lives. Loaded on first use: a client of a cluster needs errors from here, and no connector."""

_HOME_OF = home_of_each(_HOMES)

__all__ = [
    "COLUMN_BATCH_ROWS",
    "COMPILED_BATCH_ROWS",
    "AvroFormat",
    "ChangesLost",
    "CollectSink",
    "CollectionSource",
    "ColumnConflict",
    "ConnectorError",
    "DataGone",
    "DatabaseRefused",
    "DatabaseUnreachable",
    "DeltaSink",
    "DeltaSource",
    "FileSink",
    "FileSource",
    "Fingerprint",
    "GeneratorSource",
    "HttpRefused",
    "HttpSource",
    "IcebergSink",
    "IcebergSource",
    "IndexShare",
    "InletLogDamaged",
    "InletSchemaChanged",
    "InletSource",
    "InputChanged",
    "KafkaError",
    "KafkaFormat",
    "KafkaRefused",
    "KafkaSink",
    "KafkaSource",
    "KafkaUnavailable",
    "KeyNotUnique",
    "LakeSink",
    "LakeUnreachable",
    "LineSource",
    "LostDataFile",
    "LostTransaction",
    "MissingExtra",
    "NoCatalog",
    "NoInput",
    "NoSuchTable",
    "NoSuchTopic",
    "NoTable",
    "NonDeterministicSource",
    "NotAScan",
    "NotReplicable",
    "OffsetMismatch",
    "OutletSink",
    "OutputTakenOver",
    "Pacer",
    "PartitionFailed",
    "PartitionFeed",
    "PartitionPosition",
    "PostgresChanges",
    "PrintSink",
    "RedisListSink",
    "RedisRefused",
    "RedisStreamSink",
    "RedisStreamSource",
    "RedisUpsertSink",
    "ReplicationError",
    "RewindBuffer",
    "RewindImpossible",
    "RowsChanged",
    "RowsLeftOut",
    "ScanPlan",
    "ScanSource",
    "SentRecords",
    "ServerEvent",
    "SlotInUse",
    "SparkQueryFailed",
    "SparkSource",
    "SpoolMismatch",
    "SqlError",
    "SqlLookupJoin",
    "SqlSink",
    "SqlSource",
    "SqlTable",
    "SqlUpsertSink",
    "SseSource",
    "StatementFailed",
    "StreamTrimmed",
    "TableChanged",
    "TableMismatch",
    "TableSource",
    "TransactionLost",
    "UnknownFileSystem",
    "UnreadableFile",
    "UnreadableInput",
    "UnreadableMessage",
    "UnsupportedTable",
    "UnusableOutput",
    "VersionGone",
    "WatchedFileSource",
    "WebsocketSource",
    "columns_to_bytes",
    "read_collected",
    "scan_plan",
    "subtask_of",
    "table_of",
    "to_payload",
]

__getattr__, __dir__ = lazy_names(__name__, __name__, _HOME_OF)


def load_all() -> None:
    """Import all of them: in a process that others are forked from."""
    for home in _HOMES:
        import_module(f".{home}", __name__)
