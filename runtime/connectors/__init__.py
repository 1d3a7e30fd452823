"""Connectors: where data enters (collections, files, generators, inlets, Spark) and leaves (files, driver, a print)."""

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
