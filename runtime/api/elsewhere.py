"""Elsewhere: names that Flink, Spark and pandas have, and what is written here in their place.

Looked up only where an attribute is missing, for the text of the AttributeError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ...messages.known_names import meant

_AGGREGATE: Final = "write key_by(...).aggregate({name}={kind}) in its place"
_SUBMIT: Final = "write `with LocalCluster() as cluster: cluster.submit(env).wait()` in its place"
_OF_STREAMS: Final = "it is a method of streams, behind such as from_collection(...)"
_MAP: Final = "write map(...), which makes a new record of each, in its place"
_NEW_COLUMN: Final = "write map(lambda row: {**row, 'name': value}) in its place"
_FRAME: Final = "end the stream with collect(name='rows'); then job.to_pandas('rows') of the submitted job has it"
_ORDER: Final = (
    "a stream has no end to sort at: sort what job.results(...) gives, or write key_by(...).top_n(n, by=...)"
)
_ONE_EACH: Final = "write key_by(...).deduplicate() in its place"

OF_STREAMS: Final[Mapping[str, str]] = {
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
    "merge": "write key_by(...).join(other.key_by(...)) in its place",
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
    "for_each": "write map(...), or sink_to(...) with a sink of your own, in its place",
    "foreach_batch": "write map_batches(...), or sink_to(...) with a sink of your own, in its place",
    "foreach": "write map(...), or sink_to(...) with a sink of your own, in its place",
    "add_sink": "write sink_to(...) in its place",
    "set_parallelism": "write parallelism=... in the call that made this stream, as in map(f, parallelism=2)",
    "execute": _SUBMIT,
    "assign_timestamps_and_watermarks": "write assign_timestamps(column_or_function, bounded_out_of_orderness(ms))",
    "get_side_output": "write side_output(tag) in its place",
}

OF_ENVIRONMENTS: Final[Mapping[str, str]] = {
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
}

_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Where a name in camel case has its next word."""


def instead_of(name: str, elsewhere: Mapping[str, str], known: Iterable[str]) -> str:
    """The end of a text about an attribute that is missing: what is written here, or the name most like it."""
    as_here = _HUMP.sub("_", name).lower()
    if found := elsewhere.get(name) or elsewhere.get(as_here):
        return f": {found}"
    return meant(name, [each for each in known if each[0] != "_"])


def without_guess(text: str, name: str) -> AttributeError:
    """The error with this text alone: Python guesses a name that is alike where it knows the object, and `text` may
    have said a better one.
    """
    return AttributeError(text, name=name, obj=None)
