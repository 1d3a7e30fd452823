"""Elsewhere: names that Flink, Spark and pandas have, and what is written here in their place.

Looked up only where an attribute is missing, for the text of the AttributeError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ...messages.known_names import meant
from . import elsewhere_by_habit as by_habit
from .advice import BY_KEY, UNTYPED

_AGGREGATE: Final = "write key_by(...).aggregate({name}={kind}) in its place"
_SUBMIT: Final = "write `with LocalCluster() as cluster: cluster.submit(env).wait()` in its place"
_OF_STREAMS: Final = "it is a method of the stream that from_collection(...) and the like return"
_MAP: Final = "write map(...), which makes a new record of each, in its place"
_NEW_COLUMN: Final = "write map(lambda row: {**row, 'name': value}) in its place"
_FRAME: Final = "end the stream with collect(name='rows'); then job.to_pandas('rows') of the submitted job has it"
_ORDER: Final = (
    "a stream has no end to sort at: sort what job.results(...) gives, or write key_by(...).top_n(n, by=...)"
)
_ONE_EACH: Final = "write key_by(...).deduplicate() in its place"
_SOME: Final = (
    "write process(...) with `async def process_batch(self, records, out)` and async_settings(batch_size=100, "
    "batch_wait_ms=5_000), or window_all(...) or key_by(...).window(...) with a trigger: docs/coming-from.md"
)
_SPLIT: Final = (
    "write filter(...) once for each branch, or process(...) with out.collect_to(tag, record) and side_output"
)
_FOLD: Final = "write key_by(...).reduce(...), or .process(...) with a FoldingState"
_LOOK: Final = "write map(...) with a function that returns its record, or print()"
_LEFT: Final = 'write key_by(...).join(other.key_by(...), "left") in its place'
_FULL: Final = 'write key_by(...).join(other.key_by(...), "full") in its place'
_WINDOW: Final = (
    "write key_by(...).window(tumbling(minutes=1)) in its place, and .aggregate(...), .reduce(...) or .process(...)"
)
_SLIDING: Final = "write key_by(...).window(sliding(size, slide)) in its place"
_BEST: Final = "write reduce(lambda one, other: max(one, other, key=...)) in its place"
_CHAINED: Final = "operators of one parallelism share a task: write rebalance() before one that is to have its own"
_FILES: Final = 'write sink_to(FileSink("out")) in its place'
_SETTINGS: Final = "what it sets are arguments, as in StreamEnvironment(checkpoint_timeout_ms=...): docs/api.md"
_INPUTS: Final = (
    "write process(...) with an operator that has `inputs = 2`: its process gets the records of the first stream, its "
    "process_2 those of the second; without a key these are process_batch and process_batch_2"
)
_TABLE: Final = (
    "write key_by(...).deduplicate('last') for its newest rows; temporal_join and lookup_join take a stream as a table"
)

NO_RECORDS: Final = (
    "a stream has no records before its job runs: write map(...), filter(...) or process(...) for what becomes of "
    "each, and end it with collect(name='rows'), for job.results('rows') behind job.wait(), or with to_outlet(name)"
)
"""To who goes through a stream, as in `for record in stream`, `async for` or `stream[0]`."""

_OF_WINDOWS: Final = "it goes between window(...) and aggregate, reduce or process"

OF_STREAMS: Final[Mapping[str, str]] = {
    **by_habit.OF_STREAMS,
    "iterate_delta": "write delta_iterate(step, key=..., improve=...) in its place",
    "iterate_bulk": "write bulk_iterate(step, max_rounds=...) in its place",
    "close_with": "write iterate(step), whose function returns what goes round again and what leaves the loop",
    "count": _AGGREGATE.format(name="count", kind="Count()"),
    "sum": _AGGREGATE.format(name="sum", kind='Sum("column")'),
    "min": _AGGREGATE.format(name="min", kind='Min("column")'),
    "max": _AGGREGATE.format(name="max", kind='Max("column")'),
    "avg": _AGGREGATE.format(name="avg", kind='Avg("column")'),
    "mean": _AGGREGATE.format(name="mean", kind='Avg("column")'),
    "select": _MAP,
    "select_expr": _MAP,
    "drop": _MAP,
    "rename": _MAP,
    "with_column_renamed": _MAP,
    "with_column": _NEW_COLUMN,
    "with_columns": _NEW_COLUMN,
    "assign": _NEW_COLUMN,
    "agg": "write key_by(...).aggregate(total=Sum('column')) in its place",
    "explode": "write flat_map(lambda row: row.column) in its place",
    "dropna": "write filter(lambda row: row.column is not None) in its place",
    "distinct": _ONE_EACH,
    "drop_duplicates": _ONE_EACH,
    "order_by": _ORDER,
    "sort": _ORDER,
    "sort_values": _ORDER,
    "merge": "write union(other) for the records of both, or key_by(...).join(other.key_by(...)) for those that meet",
    "concat": "write union(other) in its place",
    "flatten": "write union(other) in its place, or flat_map(...) for records that are lists",
    "stateful_map": BY_KEY,
    "stateful_flat_map": BY_KEY,
    "stateful": BY_KEY,
    "stateful_batch": BY_KEY,
    "process_values": BY_KEY,
    "transform": BY_KEY,
    "transform_values": BY_KEY,
    "take": _SOME,
    "batch": _SOME,
    "buffer": _SOME,
    "group_into_batches": _SOME,
    "batch_elements": _SOME,
    "collect_window": _SOME,
    "branch": _SPLIT,
    "split": _SPLIT,
    "partition": _SPLIT,
    "tee": "a stream may be read by any number of others: write each of them behind it",
    "through": "a stream may be read by any number of others: write each of them behind it",
    "fold": _FOLD,
    "fold_window": _WINDOW,
    "reduce_window": _WINDOW,
    "windowed_by": _WINDOW,
    "window_into": _WINDOW,
    "tumbling": _WINDOW,
    "tumbling_window": _WINDOW,
    "hopping": _SLIDING,
    "sliding_window": _SLIDING,
    "session_window": "write key_by(...).window(session(minutes=1)) in its place",
    "suppress": "windows give one result when they end, and aggregate('end', ...) one at the end of the data",
    "fold_final": "write key_by(...).aggregate('end', total=Sum('column')), or a KeyedOperator with on_end",
    "reduce_final": "write key_by(...).aggregate('end', total=Sum('column')), or a KeyedOperator with on_end",
    "count_final": "write key_by(...).aggregate('end', count=Count()) in its place",
    "inspect": _LOOK,
    "peek": _LOOK,
    "echo": _LOOK,
    "filter_map": "write flat_map(lambda record: [...]), with [] for a record that goes, in its place",
    "map_values": _MAP,
    "flat_map_values": "write flat_map(...) in its place",
    "select_key": "write key_by(...) in its place",
    "key_on": "write key_by(...) in its place",
    "left_join": _LEFT,
    "outer_join": _FULL,
    "to_table": _TABLE,
    "to_stream": "it is one",
    "shuffle": "write rebalance() in its place, or key_by(...)",
    "reshuffle": "write rebalance() in its place; nothing is fused across key_by and rebalance",
    "to": "write sink_to(...) with a sink, or to_kafka(topic, servers)",
    "sink": "write sink_to(...) in its place",
    "output": "write sink_to(...) in its place",
    "repartition": "write rebalance() in its place, or key_by(...)",
    "with_watermark": "write assign_timestamps(column, bounded_out_of_orderness(minutes=10)) in its place",
    "to_pandas": _FRAME,
    "to_arrow": _FRAME,
    "apply": _MAP,
    "group_by": "write key_by(...) in its place",
    "groupby": "write key_by(...) in its place",
    "where": "write filter(...) in its place",
    "to_csv": 'write sink_to(FileSink("out", format="csv")) in its place',
    "to_json": 'write sink_to(FileSink("out", format="jsonl")) in its place',
    "to_parquet": 'write sink_to(FileSink("out")) in its place',
    "write": 'write sink_to(FileSink("out")) in its place',
    "write_stream": 'write sink_to(FileSink("out")) in its place',
    "save": 'write sink_to(FileSink("out")) in its place',
    "show": "write print() in its place",
    "run": _SUBMIT,
    "add_sink": "write sink_to(...) in its place",
    "set_parallelism": "write parallelism=... in the call that made this stream, as in map(f, parallelism=2)",
    "execute": _SUBMIT,
    "assign_timestamps_and_watermarks": "write assign_timestamps(column_or_function, bounded_out_of_orderness(ms))",
    "get_side_output": "write side_output(tag) in its place",
    "min_by": _BEST.replace("max", "min"),
    "max_by": _BEST,
    "count_window": "write window(count_window(n)) in its place",
    "count_window_all": "write window_all(count_window(n)) in its place",
    "time_window": "write window(tumbling(minutes=1)) in its place",
    "time_window_all": "write window_all(tumbling(minutes=1)) in its place",
    "as_queryable_state": "write process(...) with a KeyedOperator: job.ask(...) gets what its on_receive returns",
    "set_max_parallelism": "it is one for all operators: write StreamEnvironment(max_parallelism=...)",
    "start_new_chain": _CHAINED,
    "disable_chaining": _CHAINED,
    "slot_sharing_group": "write slot_sharing_group=... in the call that made this stream, as in map(f, ...)",
    "set_uid_hash": "write uid(name) in its place, by which its state is found",
    "set_description": "write name(...) in its place",
    "set_buffer_timeout": "it is one for all operators: write StreamEnvironment(buffer_timeout_ms=...)",
    "execute_and_collect": "end it with collect(name='rows'): job.results('rows') of the submitted job has them",
    "partition_custom": "write key_by(function) in its place; which subtask has a key is not said by the program",
    "rescale": "write rebalance() in its place",
    "global_": "write parallelism=1 in the next call, as in map(f, parallelism=1)",
    "forward": "it is so where both have one parallelism and nothing else is said",
    "project": _MAP,
    "map_with_state": BY_KEY,
    "flat_map_with_state": BY_KEY,
    "write_as_text": _FILES,
    "write_as_csv": _FILES,
    "trigger": _OF_WINDOWS,
    "evictor": _OF_WINDOWS,
    "allowed_lateness": _OF_WINDOWS,
    "accumulating": _OF_WINDOWS,
    "discarding": _OF_WINDOWS,
    "retracting": _OF_WINDOWS,
    "side_output_late_data": "late records are read of the results, as in late = windows.aggregate(...).late",
    "between": "the bounds are arguments: write interval_join(other, lower_ms, upper_ms)",
    "lower_bound_exclusive": "write interval_join(other, lower_ms, upper_ms, lower_exclusive=True)",
    "upper_bound_exclusive": "write interval_join(other, lower_ms, upper_ms, upper_exclusive=True)",
    "unordered_wait": "write map(fetch).async_settings(ordered=False) in its place, with an `async def fetch`",
    "ordered_wait": "write map(fetch).async_settings(ordered=True) in its place, with an `async def fetch`",
    "print_to_err": "write print() in its place",
    "returns": UNTYPED,
    "get_type": UNTYPED,
}

OF_ENVIRONMENTS: Final[Mapping[str, str]] = {
    **by_habit.OF_ENVIRONMENTS,
    "agent": "write a stream: env.from_kafka(...).map(...) or .process(...), whose functions may be `async def`",
    "topic": "write from_kafka(topic, servers), and to_kafka(topic, servers) of a stream",
    "channel": "write from_inlet(name), and job.inlet(name).send(record) of the job that runs",
    "timer": "write generate(lambda tick: tick, records_per_second=0.2) for ticks, or timers in a KeyedOperator",
    "table": "state is in operators: a KeyedOperator with a ValueState, which job.ask(...) asks; docs/coming-from.md",
    "global_table": "streams have it: lookup_join(table, on=...), and broadcast(); docs/coming-from.md",
    "input": "write from_source(...) in its place",
    "read": "write from_source(...), from_kafka(...), from_files(...) in its place",
    "stream": "write from_kafka(topic, servers), or another of the calls that begin with from_",
    "from_generator": "write from_collection(...), which takes what ends, or generate(function) in its place",
    "from_iterable": "write from_collection(...) in its place",
    "iterate": _OF_STREAMS,
    "bulk_iterate": _OF_STREAMS,
    "delta_iterate": _OF_STREAMS,
    "execute": _SUBMIT,
    "execute_async": _SUBMIT,
    "run": _SUBMIT,
    "submit": _SUBMIT,
    "start": _SUBMIT,
    "add_source": "write from_source(...) in its place",
    "from_list": "write from_collection(...) in its place",
    "from_elements": "write from_collection([...]) in its place",
    "read_text": "write from_text(...), whose records have one line each, row.line, in its place",
    "read_text_file": "write from_text(...), whose records have one line each, row.line, in its place",
    "read_csv": "write from_csv(...) in its place",
    "read_parquet": "write from_parquet(...) in its place",
    "read_json": "write from_jsonl(...) in its place",
    "from_json": "write from_jsonl(...) in its place",
    "set_parallelism": "write StreamEnvironment(parallelism=...)",
    "set_max_parallelism": "write StreamEnvironment(max_parallelism=...)",
    "enable_checkpointing": "write StreamEnvironment(checkpoint_interval_ms=...)",
    "set_restart_strategy": "write StreamEnvironment(restart_strategy=...)",
    "set_state_backend": 'write StreamEnvironment(state_backend="rocksdb"), or leave it out for memory',
    "set_buffer_timeout": "write StreamEnvironment(buffer_timeout_ms=...)",
    "get_checkpoint_config": _SETTINGS,
    "get_config": _SETTINGS,
    "configure": _SETTINGS,
    "set_runtime_mode": "it is one for all: a job over data that ends gives its last results at the end, and ends",
    "register_cached_file": "read the file in open of an operator, from a folder that all TaskManagers reach",
    "add_jars": "connectors are Python packages: docs/connectors/index.md",
    "add_python_file": "the module of a script travels with the job; others are installed where TaskManagers run",
    "set_default_local_parallelism": "write StreamEnvironment(parallelism=...)",
    "get_execution_environment": "write StreamEnvironment(...)",
    "from_sequence": "write generate(lambda index: index, count) in its place",
    "generate_sequence": "write generate(lambda index: index, count) in its place",
    "from_data": "write from_collection([...]) in its place",
    "socket_text_stream": 'write from_socket("host:port") in its place',
    "read_file": "write from_files(path, format) in its place",
    "set_stream_time_characteristic": (
        "event time begins with assign_timestamps(...) of a stream; windows of the clock have time='processing'"
    ),
    "disable_operator_chaining": "operators of one parallelism share a task, if no rebalance() of a stream is between",
    "get_execution_plan": "`understudy info app.py:build` prints it",
    "get_stream_graph": "`understudy info app.py:build` prints it",
}

OF_WINDOWS: Final[Mapping[str, str]] = {
    **by_habit.OF_WINDOWS,
    "apply": "write process(function) in its place, with a function of (key, window, records, out)",
    "side_output_late_data": "late records are read of the results, as in late = windows.aggregate(...).late",
    "get_side_output": "late records are read of the results, as in late = windows.aggregate(...).late",
    "count": "write aggregate(count=Count()) in its place",
    "sum": 'write aggregate(sum=Sum("column")) in its place',
    "min": 'write aggregate(min=Min("column")) in its place',
    "max": 'write aggregate(max=Max("column")) in its place',
    "min_by": _BEST.replace("max", "min"),
    "max_by": _BEST,
    "fold": "write aggregate(function) in its place, with an AggregateFunction",
}
"""Of windows of which it is not yet said what becomes of their records."""

OF_SINKS: Final[Mapping[str, str]] = {
    "set_parallelism": "write parallelism=... in the call that made it, as in print(parallelism=1)",
    "disable_chaining": _CHAINED,
    "slot_sharing_group": "write slot_sharing_group=... in the call that made it, as in print(...)",
    "set_description": "write name(...) in its place",
}

OF_CONNECTED: Final[Mapping[str, str]] = {
    "map": _INPUTS,
    "flat_map": _INPUTS,
    "key_by": "key both before: first.key_by(...).connect(second.key_by(...))",
    "transform": _INPUTS,
}

_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Where a name in camel case has its next word."""


def instead_of(name: str, elsewhere: Mapping[str, str], known: Iterable[str]) -> str:
    """The end of a text about an attribute that is missing: what is written here, or the name most like it."""
    as_here = _HUMP.sub("_", name).lower()
    if found := elsewhere.get(name) or elsewhere.get(as_here):
        return f": {found}"
    there = [each for each in known if each[0] != "_"]
    return f"; did you mean {as_here!r}?" if as_here in there else meant(name, there)


def new_column(name: object) -> str:
    """What is written for `stream[name] = value`."""
    return _NEW_COLUMN.replace("'name'", repr(name)) if isinstance(name, str) else _NEW_COLUMN


def without_guess(text: str, name: str) -> AttributeError:
    """The error with this text alone: Python guesses a name that is alike where it knows the object, and `text` may
    have said a better one.
    """
    return AttributeError(text, name=name, obj=None)
