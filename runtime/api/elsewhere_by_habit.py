"""Names of streams, windows and programs in Kafka Streams, Spark, Beam, Bytewax, Faust, Quix and Pathway, and what is
written here in their place.

`elsewhere` has them beside those of Flink, Spark and pandas that it knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .advice import BY_KEY, UNTYPED

_KEYED: Final = "write key_by(...) in its place"
_MAP: Final = "write map(...) in its place"
_WINDOWS_AT_END: Final = "a window gives one result when it ends, and others earlier only if a trigger says so"
_AGGREGATE: Final = "write key_by(...).aggregate(total=Sum('n'), best=Max('n')) in its place"
_WINDOW: Final = "write key_by(...).window(tumbling(minutes=1)) in its place"
_TWO_TABLES: Final = (
    "write first.connect(second).process(...) with a KeyedOperator that keeps the newest record of each: "
    "docs/coming-from.md"
)
_IN_TIME: Final = "write key_by(...).interval_join(other.key_by(...), lower_ms, upper_ms) in its place"
_IN_WINDOWS: Final = "write key_by(...).window_join(other.key_by(...), tumbling(minutes=1)) in its place"
_AS_OF: Final = "write key_by(...).temporal_join(versions.key_by(...)) in its place"
_LOOK_UP: Final = "write lookup_join(table, on='id') in its place"
_BATCHES: Final = "write map_batches(...) in its place, whose function gets Arrow batches"
_GROUPS: Final = f"{BY_KEY}; its process gets one record at a time"
_EFFECTS: Final = "write sink_to(...) with a LedgerSink or an IdempotentSink: map would write again after a failure"
_LOOK: Final = "write print() in its place, or map(...) with a function that returns its record"
_KEPT: Final = "leave it out: a stream may be read by any number of others"
_COLUMNS: Final = "write map(lambda row: {**row, 'n': row['n'] or 0}) in its place"

OF_STREAMS: Final[Mapping[str, str]] = {
    # Kafka Streams
    "group_by_key": f"{_KEYED}, and windows, aggregate or process behind it; Beam's GroupByKey of windows is process",
    "filter_not": "write filter(lambda record: not ...) in its place",
    "flat_transform": BY_KEY,
    "flat_transform_values": BY_KEY,
    "cogroup": "write first.union(second).key_by(...) in its place, and aggregate or process behind it",
    "grace": "it goes between window(...) and aggregate, reduce or process: .allowed_lateness(minutes=1)",
    "emit_strategy": _WINDOWS_AT_END,
    "values": "records have no key beside them: the key is what key_by(...) says",
    "queryable_store_name": "job.ask(...) gets what on_receive of a KeyedOperator returns",
    # Bytewax
    "redistribute": "write rebalance() in its place",
    "inspect_debug": _LOOK,
    "enrich_cached": _LOOK_UP,
    "flat_map_batch": _BATCHES,
    "key_rm": "leave it out: a stream is keyed for the next operator alone",
    "key_split": "write filter(...) once for each branch",
    "map_value": _MAP,
    "flat_map_value": "write flat_map(...) in its place",
    "filter_value": "write filter(...) in its place",
    "filter_map_value": "write flat_map(lambda record: [...]), with [] for a record that goes, in its place",
    "join_window": _IN_WINDOWS,
    "max_window": _WINDOW,
    "min_window": _WINDOW,
    "max_final": "write key_by(...).aggregate('end', best=Max('n')) in its place",
    "min_final": "write key_by(...).aggregate('end', least=Min('n')) in its place",
    "raises": "write map(...) with a function that raises",
    # Spark
    "drop_duplicates_within_watermark": "write key_by(...).deduplicate(minutes=10) in its place",
    "map_groups_with_state": _GROUPS,
    "flat_map_groups_with_state": _GROUPS,
    "apply_in_pandas_with_state": _GROUPS,
    "transform_with_state": _GROUPS,
    "transform_with_state_in_pandas": _GROUPS,
    "apply_in_pandas": "write key_by(...).window(...).process(...) in its place",
    "map_in_pandas": _BATCHES,
    "map_in_arrow": _BATCHES,
    "map_partitions": _BATCHES,
    "union_by_name": "write union(other) in its place",
    "cross_join": "write lookup_join(table, on=...) with a column that is the same in all rows",
    "limit": "give the source an end, as generate(function, count) does: a stream is not cut off by number",
    "head": "end it with collect(name='rows'), and take the first of job.results('rows'); or write print()",
    "first": "write key_by(...).deduplicate() for the first of each key",
    "last": "write key_by(...).deduplicate('last') for the newest of each key",
    "cache": _KEPT,
    "persist": _KEPT,
    "coalesce": "write parallelism=... in the next call, as in map(f, parallelism=1)",
    "create_or_replace_temp_view": "there is no SQL over streams: docs/coming-from.md",
    "fillna": _COLUMNS,
    "columns": "the columns, where they are known before the job runs, are schema",
    "dtypes": "the columns, where they are known before the job runs, are schema",
    "print_schema": "the columns, where they are known before the job runs, are schema",
    "is_streaming": "bounded says whether all its sources end",
    "foreach": _EFFECTS,
    "for_each": _EFFECTS,
    "foreach_batch": f"{_EFFECTS}; marker.sequence of a LedgerSink is there for the id of a batch",
    # Beam
    "co_group_by_key": "write first.key_by(...).co_group(second.key_by(...), tumbling(minutes=1), function)",
    "combine_per_key": _AGGREGATE,
    "combine_globally": "write window_all(...).aggregate(...) in its place",
    "par_do": "write map(...), flat_map(...), or process(...) with an Operator",
    "with_output_types": UNTYPED,
    "with_timestamps": "write assign_timestamps(column_or_function, bounded_out_of_orderness(seconds=5))",
    # Faust
    "events": "a stream has no events beside its records: write map(...) or process(...)",
    "items": "records have no key beside them: the key is what key_by(...) says",
    "noack": "leave it out: checkpoints hold where each source is",
    "enumerate": BY_KEY,
    "combine": "write union(other) in its place, or connect(other) for both in one operator",
    "relative_to_now": 'write window(tumbling(minutes=1, time="processing")) behind key_by',
    "relative_to_field": "write assign_timestamps(field, bounded_out_of_orderness(seconds=5)) before key_by",
    # Quix and Pathway
    "hopping_window": "write key_by(...).window(sliding(size, slide)) in its place",
    "fill": _COLUMNS,
    "update": "write map(...) with a function that returns the new record",
    "set_timestamp": "write assign_timestamps(column_or_function, bounded_out_of_orderness(seconds=5))",
    "to_topic": "write to_kafka(topic, servers) in its place",
    "print_table": "write print() in its place",
    "expand": "write flat_map(...) in its place",
    "join_asof": _AS_OF,
    "asof_join": _AS_OF,
    "asof_now_join": _LOOK_UP,
    "join_interval": _IN_TIME,
    "join_lookup": _LOOK_UP,
    "join_left": 'write key_by(...).join(other.key_by(...), "left") in its place',
    "windowby": _WINDOW,
    "update_rows": _TWO_TABLES,
    "update_cells": _TWO_TABLES,
}

_ONE_EACH_RECORD: Final = (
    "write trigger(count(1)) before it for a result with each record: the window gives one when it ends"
)
_AT_ITS_END: Final = "leave it out: a window gives one result when it ends"
_LATE: Final = "write allowed_lateness(minutes=1) in its place"

OF_WINDOWS: Final[Mapping[str, str]] = {
    "suppress": _AT_ITS_END,
    "final": _AT_ITS_END,
    "current": _ONE_EACH_RECORD,
    "emit_strategy": _AT_ITS_END,
    "grace": _LATE,
    "with_grace": _LATE,
    "with_allowed_lateness": _LATE,
    "agg": "write aggregate(count=Count()) in its place",
    "avg": 'write aggregate(avg=Avg("column")) in its place',
    "mean": 'write aggregate(mean=Avg("column")) in its place',
    "to_stream": "it is one behind aggregate, reduce or process",
    "accumulation_mode": "write accumulating() or discarding()",
}

_TICKS: Final = "write generate(lambda tick: tick, records_per_second=0.2) for ticks: docs/coming-from.md"
_ASKED: Final = "job.ask(...) gets what on_receive of a KeyedOperator returns: docs/service.md"

OF_ENVIRONMENTS: Final[Mapping[str, str]] = {
    "set_table": "state is in operators: a KeyedOperator with a MapState; docs/coming-from.md",
    "page": _ASKED,
    "table_route": _ASKED,
    "task": "what is done once stands in the script, before cluster.submit(env)",
    "crontab": _TICKS,
    "command": "write argparse in the script; `understudy run app.py:build` starts a job",
    "main": "write `with LocalCluster() as cluster: cluster.submit(env).wait()` in its place",
    "read_stream": "write from_kafka(...), from_files(path, format, watch_ms=1_000), or from_spark_stream(dataframe)",
    "range": "write generate(lambda index: index, count) in its place",
    "create_data_frame": "write from_collection(...), from_arrow(...) or from_pandas(...) in its place",
    "dataframe": "write from_kafka(topic, servers), or another of the calls that begin with from_",
    "add_state_store": "state is declared in operators: a KeyedOperator with a ValueState; docs/coming-from.md",
    "build": "the environment is the program: cluster.submit(env) runs it",
    "create": "write from_collection(...) in its place",
    "conf": "settings are arguments of StreamEnvironment: docs/api.md",
    "sql": "there is no SQL over streams; from_sql(...) reads a table of a database",
}
