"""StreamEnvironment: where a program starts, and its settings. Flink: StreamExecutionEnvironment.

Holds the StreamGraph that sources and streams build, and nothing that runs: a cluster translates it at each submission,
so the same environment can be submitted again and gives another job.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, TypedDict, Unpack, overload

from ...actors.job_graph import MAX_PARALLELISM
from ...actors.operators.of_records import Columns
from ...actors.operators.source import Source
from ...messages import CheckpointConfig, CheckpointRetention, LocalState, RestartStrategyConfig, shown
from ...messages.known_names import known_arguments
from ...state import ROCKSDB, backend_names
from ...state.file_locations import AnyPath, absolute
from ..connectors import (
    CollectionSource,
    GeneratorSource,
    InletSource,
    NotAScan,
    ScanSource,
    SparkSource,
    scan_plan,
)
from ..connectors.errors import check_extra
from ..connectors.frames import is_frame, other_reader
from . import never_submitted
from .checks import at_least, at_least_or_none, check_records, one_of, path, rate, text, yes_or_no
from .errors import InvalidSetting
from .file_sources import FileSources
from .frame_sources import FrameSources
from .iterators_given import told_when_many
from .kafka_sources import KafkaSources
from .lake_sources import LakeSources
from .names_of_flink import OF_BACKENDS
from .operator_checks import function_of, source_of
from .redis_sources import RedisSources
from .restart import exponential_delay, no_restart
from .schemas import dataframe_schema, declared_schema
from .spark_sources import SparkSources
from .sql_sources import SqlSources
from .stream import DataStream
from .stream_graph import StreamGraph
from .typed import R, Record, Schema
from .web_sources import WebSources

log = logging.getLogger(__name__)

MODES = ("exactly-once", "at-least-once")
RETENTIONS = tuple(retention.value for retention in CheckpointRetention)

_INITIAL_MS = 200
"""Of the usual restart strategy, which makes 300 of it for the first delay: a mistake that is the same each time ends
the job within seconds. Flink begins with 1000.
"""

_ELSEWHERE = dict.fromkeys(("rate", "rows_per_second", "per_second"), "write records_per_second=...")
"""Options of sources in other libraries. Flink: rowsPerSecond."""

_NUMBER = re.compile(r"\s*[-+]?[\d_.]+\s*")
_NAMED = "the name of a job is given to submit, as in cluster.submit(env, name='orders')"
_AGAIN = "a job that is started again goes on from there by cluster.submit(env, name='orders', resume='latest')"
_OF_SOURCES = "it is given to each source, as in from_kafka(topic, 'host:9092')"
_AT_CHECKPOINTS = "write checkpoint_interval_ms=...: sinks publish with each checkpoint"
_SETTINGS_ELSEWHERE = {
    **dict.fromkeys(("name", "app_id", "application_id", "app_name", "flow_id", "consumer_group"), _NAMED),
    **dict.fromkeys(("broker", "brokers", "broker_address", "bootstrap_servers"), _OF_SOURCES),
    **dict.fromkeys(
        ("checkpoint_location", "checkpointLocation", "recovery_dir", "recovery_config", "recovery_directory"),
        f"write checkpoint_dir=...; {_AGAIN}",
    ),
    **dict.fromkeys(
        ("trigger", "commit_interval", "commit_interval_ms", "epoch_interval", "snapshot_interval"), _AT_CHECKPOINTS
    ),
    "processing_guarantee": "it is exactly once, unless mode='at-least-once' is given",
    "auto_offset_reset": "write start='latest' in from_kafka(...); it begins with the earliest records",
}
"""Settings of Faust, Kafka Streams, Bytewax, Spark and Quix."""


class _Paced(TypedDict, total=False):
    """Options of a source, to a type checker."""

    records_per_second: float | None
    name: str | None
    parallelism: int | None


class _PacedColumns(_Paced, total=False):
    schema: Schema | None


class StreamEnvironment(
    FrameSources, FileSources, SqlSources, KafkaSources, LakeSources, RedisSources, WebSources, SparkSources
):
    """Settings, and the sources of one program. Raises InvalidSetting for a setting out of range.

    `parallelism`: of operators that have none of their own; all slots of the cluster when None. DataFrame sources take
    theirs from the number of TaskManagers; `from_collection`, and what follows it, has 1.
    `max_parallelism`: the number of key groups, and so the most subtasks of an operator with keys; 128 when None.
    `checkpoint_interval_ms` None: no periodic checkpoints; a bounded job still ends with one.
    `checkpoint_dir`: a path or fsspec URL that all TaskManagers reach; the cluster's choice when None.
    `checkpoint_timeout_ms`: a checkpoint that takes longer is given up. `min_pause_ms`: between the end of one and the
    next. `max_concurrent_checkpoints`: at a time. More than `tolerable_checkpoint_failures` in a row fail the job's
    attempts.
    `retain_checkpoints`: when the newest checkpoints (`retained_checkpoints` of them) stay in `checkpoint_dir` after
    the job's end, so that a job can be started from them: "on_failure"; "on_cancellation" means when it is canceled, as
    a cluster that closes does, or fails; or "never". A job that has finished leaves none.
    `mode`: "exactly-once" aligns barriers, so that a restored state covers each record once; "at-least-once" lets
    records pass while barriers are awaited: less latency, and after a failure records that count twice. None are lost.
    `alignment_timeout_ms`: how long after its trigger a periodic checkpoint waits for barriers to be aligned; then they
    overtake what is in flight, which becomes part of it, so that it completes under back-pressure. None: as long as it
    takes; 0: not at all. Only with "exactly-once".
    `incremental_checkpoints`: a periodic checkpoint writes only what has changed, of all keyed state but that of
    operators with coroutines. With "memory" all is written whole, and in savepoints. See docs/state.md.
    `scrub_interval_ms`: how long after one reading of every byte that the job would restore from the next one begins.
    Damage is logged, and a full checkpoint is taken in the place of the newest one. None: none. See docs/state.md.
    `buffer_timeout_ms`: how long a task may keep small batches to send them together, once it has no pause in which to
    send them; 0: each is sent at once.
    `batch_rows`: the largest number of records a batch, if Spark does not make them; each source's default when None.
    `state_backend`: "filesystem" writes snapshots to the checkpoint directory; "memory" sends them to the
    JobManager, up to 5 MiB a subtask; "rocksdb" keeps state on the disk, for more than fits into memory, and writes
    what has changed (docs/rocksdb.md).
    `state_dir`: a folder on a disk of each TaskManager's own, for what "rocksdb" and `local_recovery` keep there; None:
    a temporary one. `state_memory_mb`: what "rocksdb" may take of the memory, a slot.
    `local_recovery`: snapshots stay on the TaskManager's machine too, and a task that starts there again reads them
    there, if they are whole.
    `slow_step_ms`: a `poll`, `process`, hook or commit that holds its task's thread for longer is logged as a warning,
    with the operator and the line, and again when it ends; None: no watch.
    `watermark_warn_ms`: event time that stands still for so long while records come is logged as a warning, with the
    input or split that holds it back, and again when it goes on; None: it is not.
    `restart_strategy` None: with checkpoints an exponential delay from 0.3 s to a minute, none without.
    `max_same_failures`: how often the same failure of the program, or mistake of the library, at the same record or
    with the same message, may come with no completed checkpoint in between, until the job fails whatever its restart
    strategy; None: no limit.
    """

    @known_arguments("StreamEnvironment", first=1, elsewhere=_SETTINGS_ELSEWHERE)
    def __init__(
        self,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        *,
        checkpoint_interval_ms: int | None = None,
        checkpoint_dir: AnyPath | None = None,
        mode: str = "exactly-once",
        checkpoint_timeout_ms: int = 600_000,
        min_pause_ms: int = 0,
        max_concurrent_checkpoints: int = 1,
        retained_checkpoints: int = 1,
        retain_checkpoints: str = "on_failure",
        tolerable_checkpoint_failures: int = 0,
        alignment_timeout_ms: int | None = None,
        incremental_checkpoints: bool = False,
        scrub_interval_ms: int | None = None,
        buffer_timeout_ms: int = 5,
        restart_strategy: RestartStrategyConfig | None = None,
        max_same_failures: int | None = 5,
        state_backend: str = "filesystem",
        state_dir: AnyPath | None = None,
        state_memory_mb: int = 256,
        local_recovery: bool = False,
        batch_rows: int | None = None,
        slow_step_ms: int | None = 1_000,
        watermark_warn_ms: int | None = 10_000,
    ) -> None:
        if isinstance(parallelism, str):
            raise InvalidSetting(_no_parallelism(parallelism))
        self.parallelism = at_least_or_none("parallelism", parallelism, 1)
        groups = 128 if max_parallelism is None else max_parallelism
        self.max_parallelism = at_least("max_parallelism", groups, 1, MAX_PARALLELISM)
        self.batch_rows = at_least_or_none("batch_rows", batch_rows, 1)
        self.state_backend = one_of("state_backend", state_backend, backend_names(), OF_BACKENDS)
        if state_backend == ROCKSDB:
            check_extra("rocksdict", extra="rocksdb", wanted_by='state_backend="rocksdb"')
        self.local_state = LocalState(
            directory="" if state_dir is None else absolute(path("state_dir", state_dir)),
            memory_mb=at_least("state_memory_mb", state_memory_mb, 8),
            copies=yes_or_no("local_recovery", local_recovery),
        )
        self.buffer_timeout_ms = at_least("buffer_timeout_ms", buffer_timeout_ms, 0)
        self.restart_is_default = restart_strategy is None
        self.watermark_warn_ms = at_least_or_none("watermark_warn_ms", watermark_warn_ms, 1)
        self.slow_step_ms = at_least_or_none("slow_step_ms", slow_step_ms, 1)
        self.restart = _restart_strategy(restart_strategy, checkpoint_interval_ms is not None)
        self.max_same_failures = at_least_or_none("max_same_failures", max_same_failures, 1)
        self.checkpoints = CheckpointConfig(
            directory="" if checkpoint_dir is None else absolute(path("checkpoint_dir", checkpoint_dir)),
            interval_ms=at_least_or_none("checkpoint_interval_ms", checkpoint_interval_ms, 1),
            exactly_once=one_of("mode", mode, MODES) == "exactly-once",
            timeout_ms=at_least("checkpoint_timeout_ms", checkpoint_timeout_ms, 1),
            min_pause_ms=at_least("min_pause_ms", min_pause_ms, 0),
            max_concurrent=at_least("max_concurrent_checkpoints", max_concurrent_checkpoints, 1),
            retained=at_least("retained_checkpoints", retained_checkpoints, 1),
            tolerable_failures=at_least("tolerable_checkpoint_failures", tolerable_checkpoint_failures, 0),
            alignment_timeout_ms=_alignment_timeout(alignment_timeout_ms, mode),
            incremental=yes_or_no("incremental_checkpoints", incremental_checkpoints),
            scrub_interval_ms=at_least_or_none("scrub_interval_ms", scrub_interval_ms, 1),
            retention=CheckpointRetention(one_of("retain_checkpoints", retain_checkpoints, RETENTIONS)),
        )
        self.graph = StreamGraph()
        never_submitted.watch(self.graph)

    @known_arguments(first=1, example='from_source(Numbers).assign_timestamps("at", monotonous())')
    def from_source(
        self,
        source: Source[R] | type[Source[R]],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        slot_sharing_group: str | None = None,
    ) -> DataStream[R]:
        """Read from a Source of your own, given as an instance, or as a class that needs no arguments.

        Its `poll` returns the records, as `Source.poll` says.
        """
        return self._start(source_of(source), name, parallelism, slot_sharing_group)

    @known_arguments(first=1, elsewhere=_ELSEWHERE)
    def from_dataframe(
        self,
        dataframe: Any,
        *,
        read_files: bool = True,
        name: str | None = None,
        parallelism: int | None = None,
        records_per_second: float | None = None,
    ) -> DataStream:
        """Read a PySpark DataFrame; needs a SparkCluster, unless the files are read.

        A DataFrame that is nothing but a scan of Parquet files is read from the files, as `from_parquet` reads them,
        with the same rows (docs/spark.md says when); `read_files=False` leaves that out. Through Spark, subtask i reads
        one partition, with the TaskManager that drives it, so `parallelism` (default: an equal share of the cluster's
        TaskManagers) is how many TaskManagers this source takes. `records_per_second` is the rate of all subtasks
        together.

        A record is a Row: `row["delay"]`, `row.delay`, `row[3]`, `row.asdict()`. A subtask gives its rows in order;
        between subtasks there is none, and Spark decides which rows stand in which partition.
        """
        name = self.graph.name_for(name, SparkSource.__name__)
        schema, pace = dataframe_schema(dataframe), rate(records_per_second)
        if read_files:
            try:
                scan = ScanSource(scan_plan(dataframe), schema, records_per_second=pace, **self._batching())
                return self._start(scan, name, parallelism)
            except NotAScan as reason:
                log.info("source %r: the DataFrame's rows come through Spark, since %s", name, reason)
        return self._start(SparkSource(schema, records_per_second=pace), name, parallelism, dataframe=dataframe)

    @overload
    def from_collection(self, items: Iterable[Record], **options: Unpack[_Paced]) -> DataStream[Any]: ...
    @overload
    def from_collection(self, items: Iterable[R], **options: Unpack[_Paced]) -> DataStream[R]: ...
    @known_arguments(first=1, elsewhere=_ELSEWHERE, example="from_collection([1, 2, 3])")
    def from_collection(
        self,
        items: Iterable[Any],
        *,
        records_per_second: float | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> DataStream[Any]:
        """Read Python records from memory, in their order; they travel with the program.

        One subtask reads them, whatever the environment's parallelism is, as the order within a key would be lost
        between several. What follows has as many subtasks as the source and takes the records in order too, up to
        `key_by`, `rebalance`, `broadcast`, `union` or an operator with a `parallelism` of its own: from there on
        the work is shared out. With `parallelism=2` here, subtask i reads every second record, from the i-th on.
        `records_per_second` is the rate of all subtasks together, as of each source.

        A record is what stands in `items`. A plain dict is given as a DictRow, which is the same dict and can be read
        by attribute as well: `record["delay"]` or `record.delay`, as the rows of files and DataFrames.

        Raises InvalidSetting for an item that is no record (docs/records.md), as far as the first 100 items, and the
        first one of each type, tell.
        """
        if isinstance(items, str | bytes) or not isinstance(items, Iterable) or is_frame(items):
            raise InvalidSetting(
                f"from_collection: wanted a list or other iterable of records, found {shown(items)}"
                f"{other_reader(items)}"
            )
        if isinstance(items, Mapping | Set):
            better = "list(d.items()), or [d] for one record" if isinstance(items, Mapping) else "sorted(...) of it"
            found = type(items).__name__
            raise InvalidSetting(f"from_collection: wanted records in an order of their own, found a {found}: {better}")
        if isinstance(items, Iterator):
            items = told_when_many(items)
        source = CollectionSource(items, records_per_second=rate(records_per_second), **self._batching())
        check_records("from_collection", source.records)
        return self._start(source, name, parallelism, leads=True)

    @overload
    def generate(
        self, function: Callable[[int], Record], count: int | None = None, **options: Unpack[_PacedColumns]
    ) -> DataStream[Any]: ...
    @overload
    def generate(
        self, function: Callable[[int], R], count: int | None = None, **options: Unpack[_PacedColumns]
    ) -> DataStream[R]: ...
    @overload
    def generate(
        self,
        function: Callable[[int, int], Columns],
        count: int | None = None,
        **options: Unpack[_PacedColumns],
    ) -> DataStream[Any]: ...
    @known_arguments(first=1, elsewhere=_ELSEWHERE)
    def generate(
        self,
        function: Callable[..., Any],
        count: int | None = None,
        *,
        schema: Schema | None = None,
        records_per_second: float | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> DataStream:
        """`function(0)`, `function(1)`, … : `count` records, or without end when it is None.

        A function of two arguments gives columns: `function(start, rows)` returns a `pa.RecordBatch` of `rows` rows.
        It must be pure: after a restore it is asked for the same records again.

        A record is what the function of one argument returns, as it is: a dict is read by brackets alone. Of columns it
        is a Row: `row["delay"]` or `row.delay`. Subtask i of p gives every p-th record, or block of rows;
        `records_per_second` is the rate of all subtasks together.
        """
        source = GeneratorSource(
            function_of(function, "generate"),
            None if count is None else at_least("count", count, 0, 2**53),
            rate(records_per_second),
            schema=declared_schema(schema),
            **self._batching(),
        )
        return self._start(source, name, parallelism)

    @known_arguments(first=1)
    def from_inlet(
        self,
        name: str,
        *,
        schema: Schema | None = None,
        max_waiting_records: int = 100_000,
        max_waiting_bytes: int = 32 * 1024 * 1024,
        parallelism: int | None = None,
    ) -> DataStream:
        """Records that are sent into the running job: `await job.inlet(name).send(record)`. See docs/service.md.

        One that was acknowledged lasts, in a log below `checkpoint_dir`, and comes out once, whatever is killed. With a
        `schema` records are checked against it before they are sent, and a record is a Row: `row["delay"]`,
        `row.delay`; without, it is what was sent, and a plain dict is given as a DictRow.

        One subtask takes them unless `parallelism` says otherwise; then the records of one sender go to one subtask, in
        their order. A subtask keeps at most about `max_waiting_records` and `max_waiting_bytes` that are acknowledged
        and not emitted: senders wait then. The stream ends when the job is stopped.
        """
        source = InletSource(
            declared_schema(schema),
            max_waiting_records=at_least("max_waiting_records", max_waiting_records, 1),
            max_waiting_bytes=at_least("max_waiting_bytes", max_waiting_bytes, 1),
            **self._batching(),
        )
        return self._start(source, text("name", name), parallelism, leads=True)


def _alignment_timeout(given: int | None, mode: str) -> int | None:
    if given is not None and mode != "exactly-once":
        raise InvalidSetting(f"alignment_timeout_ms: wanted None with mode {mode!r}, which aligns nothing")
    return at_least_or_none("alignment_timeout_ms", given, 0)


def _restart_strategy(given: RestartStrategyConfig | None, checkpointing: bool) -> RestartStrategyConfig:
    if given is None:
        return exponential_delay(initial_ms=_INITIAL_MS) if checkpointing else no_restart()
    if not isinstance(given, RestartStrategyConfig):
        raise InvalidSetting(
            f"restart_strategy: wanted no_restart(), fixed_delay(...), failure_rate(...) or exponential_delay(...), "
            f"found {given!r:.80}"
        )
    return given


def _no_parallelism(text: str) -> str:
    wanted = f"parallelism: wanted an integer of at least 1, found {text!r:.80}"
    return wanted if _NUMBER.fullmatch(text) else f"{wanted}: {_NAMED}"
