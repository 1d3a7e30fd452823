"""assign_timestamps in a program: what it refuses, and where it must stand."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Collection
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from understudy import Count, InvalidOperator, InvalidProgram, Source, StreamEnvironment, monotonous, tumbling
from understudy.actors.operators.source_reader import assigner_behind
from understudy.runtime.api.translation import translate


class Splits(Source):
    def poll(self) -> None: ...

    def offset(self) -> None: ...

    def seek(self, offset: Any) -> None: ...

    def current_splits(self) -> Collection[str]:
        return ["a", "b"]


@pytest.fixture
def env() -> StreamEnvironment:
    return StreamEnvironment(parallelism=2)


def submitted(env: StreamEnvironment) -> None:
    translate(env, default_parallelism=1, task_managers=2, work_dir="/nowhere")


@pytest.mark.parametrize("wanted", [0, -5, 1.5, True, "1 s"])
@pytest.mark.parametrize("name", ["idle_after_ms", "max_drift_ms"])
def test_durations_are_whole_milliseconds(env: StreamEnvironment, name: str, wanted: Any) -> None:
    stream = env.from_source(Splits())
    with pytest.raises(InvalidProgram, match=f"assign_timestamps: {name}: wanted a"):
        stream.assign_timestamps("at", monotonous(), **{name: wanted})


def test_a_group_has_a_name(env: StreamEnvironment) -> None:
    with pytest.raises(InvalidProgram, match="wanted the name of a group"):
        env.from_source(Splits()).assign_timestamps("at", monotonous(), max_drift_ms=5, group="")


def test_a_function_gives_the_time_and_no_coroutine(env: StreamEnvironment) -> None:
    async def fetch(record: Any) -> int:
        return 1

    stream = env.from_source(Splits())
    stream.assign_timestamps(lambda record: record[0], monotonous())
    with pytest.raises(InvalidOperator, match=r"assign_timestamps: the function .*fetch is `async def`"):
        stream.assign_timestamps(fetch, monotonous())


def test_alignment_wants_a_source_in_its_task(env: StreamEnvironment) -> None:
    ticks = env.from_source(Splits())
    ticks.map(lambda each: each).assign_timestamps("at", monotonous(), max_drift_ms=5).print()
    submitted(env)
    env.from_source(Splits()).key_by("at").reduce(max).assign_timestamps(
        "at", monotonous(), max_drift_ms=5, name="late-times"
    ).print()
    with pytest.raises(InvalidProgram, match=r"operator 'late-times' aligns watermarks.*put assign_timestamps behind"):
        submitted(env)


def test_splits_that_are_not_seen_are_warned_of(env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    ticks = env.from_source(Splits())
    ticks.assign_timestamps("at", monotonous(), name="times").print()
    with caplog.at_level(logging.WARNING):
        submitted(env)
        assert not [each for each in caplog.messages if "splits" in each]
        ticks.print()
        submitted(env)
    (line,) = (each for each in caplog.messages if "splits" in each)
    assert "operator 'times' does not see the splits of Splits" in line


def test_an_operator_that_may_keep_records_back_hides_the_splits(env: StreamEnvironment) -> None:
    from understudy.actors.operators import AssignTimestamps, Map, Operator

    assigner = AssignTimestamps("at", monotonous())
    assert assigner_behind([Map(str), assigner]) is assigner
    assert assigner_behind([Operator(), assigner]) is None


@pytest.mark.parametrize("columnar", [True, False])
def test_windows_and_joins_without_event_time_are_refused_at_submit_with_the_input(columnar: bool) -> None:
    def stream(env: StreamEnvironment, name: str) -> Any:
        made = env.from_collection([{"k": 1, "at": 1}], name=name).filter(bool)
        schema = pa.schema({"k": pa.int64(), "at": pa.int64()})
        return made.map_batches(lambda batch: batch, schema=schema) if columnar else made.map(dict)

    def timed(env: StreamEnvironment, name: str) -> Any:
        return stream(env, name).assign_timestamps("at", monotonous()).key_by("k")

    env = StreamEnvironment()
    stream(env, "bids").key_by("k").window(tumbling(5)).aggregate(n=Count()).collect(name="out")
    with pytest.raises(InvalidProgram, match=r"'window-aggregate-1' goes by .* its input, from 'bids', have none"):
        submitted(env)
    joins: list[Any] = [
        lambda a, b: a.interval_join(b, 0, 5),
        lambda a, b: a.temporal_join(b),
        lambda a, b: a.window_join(b, tumbling(5)),
        lambda a, b: a.join(b, seconds=5, ttl_time="event"),
        lambda a, b: a.co_group(b, tumbling(5), lambda key, window, left, right, out: None),
        lambda a, b: b.deduplicate(seconds=5),
    ]
    for join in joins:
        env = StreamEnvironment()
        join(timed(env, "a"), stream(env, "b").key_by("k")).collect(name="out")
        with pytest.raises(InvalidProgram, match=r"the records of its (second )?input, from 'b', have none: put"):
            submitted(env)
    env = StreamEnvironment()
    timed(env, "a").interval_join(timed(env, "b"), 0, 5).collect(name="out")
    stream(env, "c").key_by("k").window(tumbling(5, time="processing")).aggregate(n=Count()).collect(name="clock")
    submitted(env)


HERE = ZoneInfo("America/New_York")
MIDDAY = datetime(2026, 10, 25, 12)


@pytest.mark.parametrize("columnar", [False, True], ids=["records", "columns"])
@pytest.mark.parametrize(
    ("at", "tz", "said"),
    [
        (MIDDAY, "America/New_York", "(datetimes|timestamps) in the column 'at'"),
        (MIDDAY.date(), "America/New_York", "dates in the column 'at'"),
        (MIDDAY.replace(tzinfo=HERE), "America/New_York", None),
        (1_793_000_000_000, "America/New_York", None),
        (MIDDAY, "UTC", None),
        (MIDDAY, None, None),
    ],
)
def test_local_days_of_times_without_a_zone_are_warned_of(
    env: StreamEnvironment, columnar: bool, at: Any, tz: str | None, said: str | None
) -> None:
    rows = [{"user": "ann", "at": at}]
    stream = env.from_arrow(pa.Table.from_pylist(rows)) if columnar else env.from_collection(rows)
    timed = stream.assign_timestamps("at", monotonous()).filter(lambda row: True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        timed.key_by("user").window(tumbling(days=1, tz=tz))
        timed.window_all(tumbling(days=1, tz=tz))
    assert len(caught) == (0 if said is None else 2)
    for each in caught:
        assert re.search(f"{said}, which say no time zone and count as UTC", str(each.message))
        assert each.filename == __file__
