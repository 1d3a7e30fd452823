"""Names of Flink: the classes that a program of Flink, or of another library, imports, and what is written here.

Looked up only where an import from `understudy` fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .advice import OF_A_TOPIC, OWN_SINK, OWN_SOURCE

_KEYED: Final = "subclass KeyedOperator, with process(record, out), and use it behind key_by"
_CO: Final = "subclass KeyedOperator, with `inputs = 2`, process and process_2, for first.connect(second).process(...)"
_PLAIN: Final = "give map, filter or flat_map a function; an Operator with open and process can hold clients"
_DECLARED: Final = "a state is declared in the operator's class, as in total = ValueState(int, default=0)"
_RULES: Final = "docs/coming-from.md has a KeyedOperator with rules, for keyed.connect(rules.broadcast())"

_RULES_WITHOUT_KEYS: Final = "subclass Operator, with `inputs = 2`, for records.connect(rules.broadcast()).process(...)"

_ASYNC: Final = "stream.map(fetch).async_settings(...) runs an `async def fetch`: docs/async.md"
_SQL: Final = "there is no Table API and no SQL: aggregate, windows and joins of streams; docs/coming-from.md"
_CEP: Final = "there is no CEP: a pattern is a KeyedOperator with timers; docs/coming-from.md"
_UNTYPED: Final = "types of records are not declared: docs/records.md"
_DURATION: Final = "write milliseconds, a timedelta, or keywords, as in tumbling(minutes=1)"
_PARTS: Final = "argparse or os.environ in the script; parallelism and the like are arguments of StreamEnvironment"
_TIMES: Final = "write assign_timestamps(column_or_function, bounded_out_of_orderness(seconds=5))"
_ROCKSDB: Final = 'write state_backend="rocksdb"'
OF_BACKENDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("hashmap", "heap", "hashmapstatebackend"),
        'leave it out, or write "filesystem": state is in memory, and snapshots are in checkpoint_dir',
    ),
    "jobmanager": 'write state_backend="memory"',
    **dict.fromkeys(("embeddedrocksdb", "rocks", "rocksdbstatebackend", "embeddedrocksdbstatebackend"), _ROCKSDB),
}
"""Of `state_backend`, in lower case."""

_HEAP: Final = 'leave it out: state is in memory unless StreamEnvironment(state_backend="rocksdb") says otherwise'
_FACE: Final = "write StreamEnvironment(...), env.from_kafka(...) and the like: docs/coming-from.md"
_TABLE: Final = "state is in operators: a KeyedOperator with a ValueState, or lookup_join(table); docs/coming-from.md"

OF_FLINK: Final[Mapping[str, str]] = {
    "StreamExecutionEnvironment": "write StreamEnvironment(...), whose program cluster.submit(env) runs",
    "KeyedProcessFunction": _KEYED,
    "ProcessFunction": "subclass Operator, with process(record, out), or behind key_by KeyedOperator",
    "RichMapFunction": _PLAIN,
    "RichFlatMapFunction": _PLAIN,
    "RichFilterFunction": _PLAIN,
    "MapFunction": _PLAIN,
    "FlatMapFunction": _PLAIN,
    "FilterFunction": _PLAIN,
    "CoProcessFunction": _CO,
    "KeyedCoProcessFunction": _CO,
    "CoFlatMapFunction": _CO,
    "RichCoFlatMapFunction": _CO,
    "BroadcastProcessFunction": _RULES_WITHOUT_KEYS,
    "KeyedBroadcastProcessFunction": _RULES,
    "AsyncDataStream": _ASYNC,
    "AsyncFunction": _ASYNC,
    "RichAsyncFunction": _ASYNC,
    "ResultFuture": _ASYNC,
    "ValueStateDescriptor": _DECLARED,
    "ListStateDescriptor": _DECLARED,
    "MapStateDescriptor": _DECLARED,
    "ReducingStateDescriptor": _DECLARED,
    "AggregatingStateDescriptor": _DECLARED,
    "AggregatingState": "write FoldingState(type, initial, fold)",
    "StateTtlConfig": "write ValueState(int, ttl=Ttl(hours=1))",
    "RuntimeContext": "it is self.context, from open on",
    "RestartStrategies": "write StreamEnvironment(restart_strategy=fixed_delay(3, 10_000))",
    "TumblingEventTimeWindows": "write tumbling(minutes=1)",
    "TumblingProcessingTimeWindows": 'write tumbling(minutes=1, time="processing")',
    "SlidingEventTimeWindows": "write sliding(size, slide)",
    "EventTimeSessionWindows": "write session(minutes=5)",
    "ProcessAllWindowFunction": "write ProcessWindowFunction, behind window_all(...)",
    "SourceFunction": OWN_SOURCE,
    "RichSourceFunction": OWN_SOURCE,
    "ParallelSourceFunction": OWN_SOURCE,
    "RichParallelSourceFunction": OWN_SOURCE,
    "SinkFunction": OWN_SINK,
    "RichSinkFunction": OWN_SINK,
    "MiniCluster": "write LocalCluster(task_managers=2), or understudy.testing.SimulatedCluster",
    "CoMapFunction": _CO,
    "ReduceFunction": "give reduce a function of two records, which returns one",
    "KeySelector": "give key_by a column, or a function of the record",
    "WindowFunction": "give process of a window a function of (key, window, records, out)",
    "ProcessJoinFunction": "write interval_join(other, lower_ms, upper_ms): what comes out goes to map",
    "JoinFunction": "write join, interval_join or window_join: what comes out goes to map",
    "CoGroupFunction": "give co_group a function of (key, window, left, right, out)",
    "SlidingProcessingTimeWindows": 'write sliding(size, slide, time="processing")',
    "ProcessingTimeSessionWindows": 'write session(minutes=5, time="processing")',
    "GlobalWindows": "write global_window()",
    "EventTimeTrigger": "write event_time()",
    "CountTrigger": "write count(100)",
    "PurgingTrigger": "write purging(trigger)",
    "ContinuousEventTimeTrigger": "write continuous_event_time(minutes=1)",
    "Time": _DURATION,
    "Duration": _DURATION,
    "Types": _UNTYPED,
    "TypeInformation": _UNTYPED,
    "RowTypeInfo": _UNTYPED,
    "SimpleStringSchema": "a source of Kafka is given format=: docs/connectors/kafka.md",
    "Configuration": _PARTS,
    "ParameterTool": _PARTS,
    "CheckpointingMode": 'write StreamEnvironment(checkpoint_interval_ms=1_000, mode="at-least-once"), or no mode',
    "CheckpointConfig": "its settings are arguments of StreamEnvironment: docs/api.md",
    "ExternalizedCheckpointCleanup": 'write StreamEnvironment(retain_checkpoints="on_cancellation")',
    "RuntimeExecutionMode": "there is one mode: a job over data that ends gives its last results at the end, and ends",
    "RestartStrategyOptions": "write StreamEnvironment(restart_strategy=fixed_delay(3, 10_000))",
    "HashMapStateBackend": _HEAP,
    "EmbeddedRocksDBStateBackend": 'write StreamEnvironment(state_backend="rocksdb")',
    "FileSystemCheckpointStorage": "write StreamEnvironment(checkpoint_dir=...)",
    "TimestampAssigner": _TIMES,
    "SerializableTimestampAssigner": _TIMES,
    "BroadcastState": _RULES,
    "SlotSharingGroup": "write slot_sharing_group=... in the call, as in map(f, slot_sharing_group='large')",
    "DeliveryGuarantee": "it is exactly once: docs/connectors/index.md has it for each sink",
    "FileSource": "write env.from_parquet(path), from_csv, from_jsonl or from_text",
    "NumberSequenceSource": "write env.generate(lambda index: index, count)",
    "JdbcSink": "write stream.to_sql(url, table): docs/connectors/sql.md",
    "StreamingFileSink": "write FileSink",
    "SavepointReader": "write Savepoint.open(path): docs/savepoint-data.md",
    "JobClient": "it is what cluster.submit(env) returns, a JobHandle",
    "Table": _SQL,
    "TableEnvironment": _SQL,
    "StreamTableEnvironment": _SQL,
    "EnvironmentSettings": _SQL,
    "CEP": _CEP,
    "Pattern": _CEP,
    "KafkaOffsetsInitializer": "write start='earliest' or 'latest' in from_kafka(...)",
    "OffsetsInitializer": "write start='earliest' or 'latest' in from_kafka(...)",
    "KafkaRecordSerializationSchema": OF_A_TOPIC,
    "KafkaRecordDeserializationSchema": OF_A_TOPIC,
    "JsonRowDeserializationSchema": OF_A_TOPIC,
    "BroadcastStream": _RULES,
    "ReadOnlyBroadcastState": _RULES,
    "DynamicEventTimeSessionWindows": "write session(function of the record)",
    "SessionWindowTimeGapExtractor": "write session(function of the record)",
    "CountTumblingWindowAssigner": "write count_window(n)",
    "CountSlidingWindowAssigner": "write count_window(n, slide)",
    "TwoPhaseCommitSinkFunction": OWN_SINK,
    "TwoPhaseCommittingSink": OWN_SINK,
    "StatefulSink": OWN_SINK,
    "SinkWriter": OWN_SINK,
    "CheckpointedFunction": "declare an OperatorListState, and define on_checkpoint(checkpoint_id)",
    "CheckpointListener": "define on_checkpoint_complete(checkpoint_id) in the operator",
    "TimerService": "write self.timers, self.watermark and self.processing_time() in a KeyedOperator",
    "SourceReader": OWN_SOURCE,
    "SplitEnumerator": OWN_SOURCE,
    "SourceSplit": OWN_SOURCE,
    "PatternProcessFunction": _CEP,
    "AfterMatchSkipStrategy": _CEP,
    "ExternalizedCheckpointRetention": 'write StreamEnvironment(retain_checkpoints="on_cancellation")',
    "RocksDBStateBackend": 'write StreamEnvironment(state_backend="rocksdb")',
    "CountEvictor": "write keep_last(n)",
    "TimeEvictor": "write keep_newest(minutes=1)",
    "ProcessingTimeTrigger": "write processing_time()",
    "BoundedOutOfOrdernessTimestampExtractor": _TIMES,
    "AscendingTimestampExtractor": _TIMES,
    "AsyncRetryStrategies": "write async_settings(retry=Retry(...)) behind map(fetch)",
    "PrintSinkFunction": "write stream.print()",
    "IntCounter": "write self.metrics.counter(name)",
    "DataGeneratorSource": "write env.generate(function, count, records_per_second=...)",
    "RateLimiterStrategy": "write env.generate(function, count, records_per_second=...)",
    "App": _FACE,
    "Dataflow": _FACE,
    "StreamsBuilder": _FACE,
    "Pipeline": _FACE,
    "GlobalTable": _TABLE,
    "KTable": _TABLE,
}
"""Of Faust, Bytewax, Kafka Streams and Beam, too, what is imported first."""
