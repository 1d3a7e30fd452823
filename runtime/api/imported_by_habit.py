"""Classes that a program of Kafka Streams, Spark, Beam, Bytewax, Faust or Quix imports, and what is written here.

Looked up only where an import from `understudy` fails. Those of Flink are in `names_of_flink`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .advice import OF_A_TOPIC, OWN_SINK, OWN_SOURCE

_FACE: Final = "write StreamEnvironment(...), env.from_kafka(...) and the like: docs/coming-from.md"
_STREAM: Final = "a stream is a DataStream, as env.from_kafka(...) gives it, with methods such as map and key_by"
_KEYED: Final = "subclass KeyedOperator, with process(record, out), and use it behind key_by"
_STORE: Final = "state is declared in a KeyedOperator, as in total = ValueState(int, default=0): docs/state.md"
_PLAIN: Final = "give map, filter or flat_map a function; an Operator with open and process can hold clients"
_TUMBLING: Final = "write tumbling(minutes=1)"
_SLIDING: Final = "write sliding(size, slide)"
_SESSION: Final = "write session(minutes=5)"
_GLOBAL: Final = "write global_window(), with a trigger"
_TRIGGER: Final = "write .trigger(any_of(event_time(), count(100))) and the like: docs/windows.md"
_TIMERS: Final = "a KeyedOperator sets timers by self.timers.at_event_time(ms), and defines on_timer(timer, out)"
_TIME: Final = "write assign_timestamps(column_or_function, bounded_out_of_orderness(seconds=5))"
_UNTYPED: Final = "types of records are not declared: docs/records.md"
_AGGREGATE: Final = "subclass AggregateFunction, or write named aggregates, as in aggregate(total=Sum('n'))"
_LEFT_OUT: Final = "leave it out; operators have name= and uid(...)"
_JOIN: Final = "write interval_join(other, lower_ms, upper_ms), or window_join(other, tumbling(minutes=1))"
_SUPPRESS: Final = "leave it out: a window gives one result when it ends"
_ASK: Final = "job.ask(...) gets what on_receive of a KeyedOperator returns: docs/service.md"
_TEST: Final = "write understudy.testing.OperatorHarness, or assert_exactly_once(build) for a whole job"
_SUBMIT: Final = "write `with LocalCluster() as cluster: cluster.submit(env).wait()`, or `understudy run app.py:build`"
_LOG: Final = "write env.from_collection([...]) to begin with, and stream.collect(name='out') to end with"
_RECOVERY: Final = "write StreamEnvironment(checkpoint_dir=...), and cluster.submit(env, name='x', resume='latest')"
_BROADCAST: Final = "docs/coming-from.md has a KeyedOperator with rules, for keyed.connect(rules.broadcast())"


def _each(text: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), text)


_KAFKA_STREAMS: Final = (
    _each(_FACE, "KafkaStreams Topology")
    | _each("settings are arguments of StreamEnvironment: docs/api.md", "StreamsConfig")
    | _each(_STREAM, "KStream")
    | _each("write lookup_join(table, on=...)", "GlobalKTable")
    | _each(_LEFT_OUT, "Materialized Consumed Produced Grouped Joined StreamJoined Named Repartitioned")
    | _each(_UNTYPED, "Serdes Serde")
    | _each(_JOIN, "JoinWindows")
    | _each(_TUMBLING, "TimeWindows")
    | _each(_SESSION, "SessionWindows")
    | _each(_SUPPRESS, "Suppressed EmitStrategy")
    | _each(_KEYED, "Transformer ValueTransformer Processor FixedKeyProcessor ProcessorContext")
    | _each(_TIMERS, "Punctuator PunctuationType")
    | _each(_STORE, "KeyValueStore Stores WindowStore StoreBuilder")
    | _each(_ASK, "QueryableStoreTypes ReadOnlyKeyValueStore StoreQueryParameters")
    | _each(_TIME, "TimestampExtractor")
    | _each(_TEST, "TopologyTestDriver TestInputTopic")
    | _each("write filter(...) once for each branch, or an OutputTag", "Branched")
)
_SPARK: Final = (
    _each(_FACE, "DataStreamReader")
    | _each("write stream.sink_to(FileSink('out')), to_kafka(...) and the like", "DataStreamWriter OutputMode")
    | _each(_KEYED, "StatefulProcessor StatefulProcessorHandle")
    | _each(_STORE, "GroupState")
    | _each(_TIMERS, "GroupStateTimeout")
    | _each("it is what cluster.submit(env) returns, a JobHandle", "StreamingQuery")
    | _each("write job.on_event(function)", "StreamingQueryListener")
)
_BEAM: Final = (
    _each(_STREAM, "PCollection")
    | _each(_PLAIN, "ParDo DoFn PTransform Map FlatMap")
    | _each("write key_by(...), with a window and process(function) behind it", "GroupByKey")
    | _each("write first.key_by(...).co_group(second.key_by(...), tumbling(minutes=1), function)", "CoGroupByKey")
    | _each(_AGGREGATE, "CombineFn CombinePerKey CombineGlobally")
    | _each("write key_by(...).window(tumbling(minutes=1))", "WindowInto")
    | _each(_TUMBLING, "FixedWindows")
    | _each(_SLIDING, "SlidingWindows")
    | _each(_SESSION, "Sessions")
    | _each(_TRIGGER, "AfterWatermark AfterProcessingTime AfterCount AfterEach AfterAny AfterAll Repeatedly")
    | _each("write .accumulating() or .discarding() behind window(...)", "AccumulationMode")
    | _each(_TIME, "TimestampedValue")
    | _each(_TEST, "TestStream TestPipeline")
    | _each(_STORE, "BagStateSpec ReadModifyWriteStateSpec CombiningValueStateSpec SetStateSpec")
    | _each(_TIMERS, "TimerSpec TimeDomain")
    | _each("write env.from_kafka(topics, servers)", "ReadFromKafka")
    | _each("write stream.to_kafka(topic, servers)", "WriteToKafka")
    | _each("write an OutputTag, and out.collect_to(tag, record)", "TaggedOutput")
    | _each(_BROADCAST, "AsDict AsList AsIter AsSingleton")
    | _each("write env.generate(lambda tick: tick, records_per_second=0.2)", "PeriodicImpulse")
    | _each("write rebalance()", "Reshuffle")
    | _each("argparse in the script; parallelism and the like are arguments of StreamEnvironment", "PipelineOptions")
)
_BYTEWAX: Final = (
    _each(_LOG, "TestingSource TestingSink")
    | _each("write stream.print()", "StdOutSink")
    | _each(OWN_SOURCE, "FixedPartitionedSource StatefulSourcePartition StatelessSourcePartition DynamicSource")
    | _each(OWN_SOURCE, "SimplePollingSource")
    | _each(OWN_SINK, "DynamicSink StatelessSinkPartition StatefulSinkPartition FixedPartitionedSink")
    | _each(_TIME, "EventClock")
    | _each('write tumbling(minutes=1, time="processing")', "SystemClock")
    | _each(_TUMBLING, "TumblingWindower")
    | _each(_SLIDING, "SlidingWindower")
    | _each(_SESSION, "SessionWindower")
    | _each("write env.from_csv(path)", "CSVSource")
    | _each("write FileSink(path)", "DirSink")
    | _each(OF_A_TOPIC, "KafkaSinkMessage KafkaSourceMessage")
    | _each(_KEYED, "StatefulBatchLogic StatefulLogic WindowLogic")
    | _each(_SUBMIT, "cluster_main cli_main run_main")
    | _each(_RECOVERY, "RecoveryConfig")
    | _each("operators are methods of a stream, as in stream.map(function)", "operators")
)
_FAUST_AND_QUIX: Final = (
    _each("records are plain dicts, dataclasses and others: docs/records.md", "Record")
    | _each(_STREAM, "Stream StreamT StreamingDataFrame")
    | _each("write a stream: env.from_kafka(...).map(...), whose functions may be `async def`", "Agent")
    | _each(OF_A_TOPIC, "Topic Schema")
    | _each("write env.from_inlet(name), and job.inlet(name).send(record)", "Channel")
    | _each(_FACE, "Application")
    | _each(_SUBMIT, "Worker")
    | _each(_STORE, "State")
    | _each(OWN_SINK, "BatchingSink")
    | _each('write FileSink("out", format="csv")', "CSVSink")
)

BY_HABIT: Final[Mapping[str, str]] = _KAFKA_STREAMS | _SPARK | _BEAM | _BYTEWAX | _FAUST_AND_QUIX
