"""assign_timestamps in a program: what it refuses, and where it must stand."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from understudy import (
    Collector,
    Count,
    InvalidOperator,
    InvalidProgram,
    KeyedOperator,
    KeyedTimer,
    Source,
    StreamEnvironment,
    bounded_out_of_orderness,
    cumulative,
    monotonous,
    session,
    sliding,
    tumbling,
)
from understudy.actors.operators.source_reader import assigner_behind
from understudy.actors.operators.watermark_generators import BoundedOutOfOrderness
from understudy.actors.windows.assigners import WindowAssigner
from understudy.runtime.api.stream import DataStream
from understudy.runtime.api.translation import translate
from understudy.testing import SimulatedCluster


class Whole(Source):
    def poll(self) -> None: ...

    def offset(self) -> None: ...

    def seek(self, offset: Any) -> None: ...


class Splits(Whole):
    def current_splits(self) -> Collection[str]:
        return ["a", "b"]


class RunsOfIndexes(Splits):
    splits_only_after_rescale = True


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
    assert "where one of them is read ahead, records of the others are late" in line


def lines_of_splits(env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        submitted(env)
    return [each for each in caplog.messages if "splits" in each]


def test_splits_that_another_parallelism_hides_are_warned_of_with_both(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    ticks = env.from_source(Splits(), name="ticks", parallelism=1)
    mapped = ticks.map(lambda each: each, name="mapped", parallelism=1)
    mapped.assign_timestamps("at", monotonous(), name="times").print()
    (line,) = lines_of_splits(env, caplog)
    advice = "source 'ticks' has parallelism 1, and 'times' 2: give both the same, as by parallelism=1 at 'times'"
    assert line.endswith(f"records of the others are late: the {advice}")


def test_the_first_operator_of_another_parallelism_is_named(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    ticks = env.from_source(Splits(), name="ticks", parallelism=1)
    ticks.map(lambda each: each, name="mapped").assign_timestamps("at", monotonous()).print()
    (line,) = lines_of_splits(env, caplog)
    assert "'mapped' 2: give both the same, as by parallelism=1 at 'mapped'" in line


def test_splits_that_a_rebalance_hides_are_a_matter_of_the_place(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    env.from_source(Splits(), parallelism=1).rebalance().assign_timestamps("at", monotonous()).print()
    (line,) = lines_of_splits(env, caplog)
    assert "Put assign_timestamps right behind the source" in line


def test_alignment_wants_the_parallelism_of_its_source(env: StreamEnvironment) -> None:
    ticks = env.from_source(Splits(), name="ticks", parallelism=1)
    ticks.assign_timestamps("at", monotonous(), max_drift_ms=5, name="times").print()
    with pytest.raises(
        InvalidProgram, match=r"no task of a source: the source 'ticks' has parallelism 1, and 'times' 2"
    ):
        submitted(env)


def test_no_splits_and_those_that_come_only_after_a_rescale_are_not_warned_of(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    for ticks in (*map(env.from_source, (Whole(), RunsOfIndexes())), env.from_collection([{"at": 1}])):
        ticks.assign_timestamps("at", monotonous()).print()
        ticks.print()
    with caplog.at_level(logging.WARNING):
        submitted(env)
    assert not [each for each in caplog.messages if "splits" in each]


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


AN_HOUR_IN_2023 = 1_699_999_200_000


def warned_of(stream: DataStream, env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What a job says that ends in this stream."""
    stream.collect(name="out")
    with caplog.at_level(logging.WARNING), SimulatedCluster(2) as cluster:
        cluster.submit(env).wait(60)
    return [said for said in caplog.messages if "seconds are meant" in said]


def timed(
    env: StreamEnvironment, bound: BoundedOutOfOrderness | None = None, start_ms: int = AN_HOUR_IN_2023
) -> DataStream:
    rows = [{"at": start_ms + number * 1_000, "key": number % 2} for number in range(10)]
    return env.from_collection(rows, parallelism=1).assign_timestamps("at", bound or monotonous(), name="timed")


def counted(stream: DataStream, windows: WindowAssigner) -> DataStream:
    return stream.key_by("key").window(windows).aggregate(n=Count())


@pytest.mark.parametrize(
    ("windows", "written"),
    [
        (lambda: tumbling(10), "tumbling(10)"),
        (lambda: sliding(60, 10), "sliding(60, 10)"),
        (lambda: cumulative(5, timedelta(seconds=5)), "cumulative(5, datetime.timedelta(seconds=5))"),
        (lambda: session(30), "session(30)"),
        (lambda: tumbling(ms=10), ""),
        (lambda: tumbling(timedelta(milliseconds=10)), ""),
        (lambda: tumbling(100), ""),
    ],
)
def test_windows_of_a_few_ms_of_dates_are_warned_of_where_they_were_not_written_as_ms(
    env: StreamEnvironment, windows: Callable[[], WindowAssigner], written: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = warned_of(counted(timed(env).filter(lambda row: True), windows()), env, caplog)
    assert [f"operator 'timed': times are milliseconds, and so are those of {written}. " in each for each in said] == [
        True
    ] * bool(written)


@pytest.mark.parametrize(
    ("windows", "written"),
    [
        (lambda: session(5, time="processing"), ["session(5)"]),
        (lambda: tumbling(10, time="processing"), ["tumbling(10)"]),
        (lambda: tumbling(ms=10, time="processing"), []),
        (lambda: tumbling(1_000, time="processing"), []),
    ],
)
def test_windows_of_a_few_ms_by_the_clock_are_warned_of_where_they_are_written(
    env: StreamEnvironment,
    windows: Callable[[], WindowAssigner],
    written: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    counted(timed(env), windows())
    assert caplog.messages == [
        f"windows by the clock: the durations of {each} are milliseconds. If seconds are meant, write seconds=...; "
        "ms=... says that they are not"
        for each in written
    ]


def test_windows_of_all_records_are_warned_of_too(env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    assert len(warned_of(timed(env).window_all(tumbling(10)).aggregate(n=Count()), env, caplog)) == 1


def test_a_bound_of_a_few_ms_is_warned_of_together_with_the_windows(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    stream = timed(env, bounded_out_of_orderness(5))
    counted(stream, tumbling(10)).collect(name="tens")
    (said,) = warned_of(counted(stream, tumbling(10)), env, caplog)
    assert "of bounded_out_of_orderness(5) and tumbling(10). If seconds are meant, write timedelta(seconds" in said


def test_a_bound_of_nothing_is_not_warned_of(env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    assert warned_of(timed(env, bounded_out_of_orderness(0)), env, caplog) == []


def test_a_few_ms_of_times_that_are_no_dates_are_not_warned_of(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    assert warned_of(counted(timed(env, bounded_out_of_orderness(5), 0), tumbling(10)), env, caplog) == []


def test_windows_are_told_once_to_those_who_give_their_times_last(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    stream = timed(env).assign_timestamps("at", monotonous(), name="again")
    both = stream.filter(lambda row: True).union(stream.filter(lambda row: False))
    (said,) = warned_of(counted(both, tumbling(10)), env, caplog)
    assert said.startswith("operator 'again': ")
    (again,) = (node.operator for node in env.graph.nodes if node.name == "again")
    assert again.as_if_seconds == ["tumbling(10)"]  # type: ignore[attr-defined]


def test_a_window_for_each_round_of_a_loop_is_not_warned_of(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    counts = timed(env).bulk_iterate(lambda rows: counted(rows, tumbling(1)), max_rounds=1)
    assert warned_of(counts, env, caplog) == []


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


class Reminding(KeyedOperator):
    def process(self, order: Any, out: Collector) -> None:
        self.timers.at_event_time(order["at"] + 60_000)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None: ...


class RemindingOfTwo(Reminding):
    inputs = 2

    def process_2(self, payment: Any, out: Collector) -> None: ...


class ByTheClock(Reminding):
    def process(self, order: Any, out: Collector) -> None:
        self.timers.at_processing_time(self.processing_time() + 60_000)


def orders(env: StreamEnvironment, count: int | None, name: str = "orders") -> DataStream:
    return env.generate(lambda index: {"id": index, "at": index}, count, name=name)


def said_at_submit(stream: DataStream, env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> list[str]:
    stream.collect()
    caplog.clear()
    submitted(env)
    return [said for said in caplog.messages if "timers" in said]


@pytest.mark.parametrize(
    ("count", "then"),
    [(None, "so they never fire"), (9, "so they fire all at once, when the data has ended")],
)
def test_timers_of_event_time_that_does_not_advance_are_said_at_submit(
    count: int | None, then: str, env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing else says so: it is right that they wait."""
    reminded = orders(env, count).map(lambda order: order).key_by("id").process(Reminding, name="reminders")
    (said,) = said_at_submit(reminded, env, caplog)
    assert re.match(
        r"operator 'reminders' sets timers of event time \(\S+test_event_time.py:\d+\), and there is no", said
    )
    assert f"no assign_timestamps between it and source 'orders': event time does not advance there, {then}" in said
    assert 'put stream.assign_timestamps("column", bounded_out_of_orderness(ms)) before it' in said


def test_so_are_those_that_one_of_two_inputs_holds_back_for_ever(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    timed = orders(env, None).assign_timestamps("at", monotonous()).key_by("id")
    both = timed.connect(orders(env, None, "payments").key_by("id")).process(RemindingOfTwo)
    (said,) = said_at_submit(both, env, caplog)
    assert "between it and source 'payments': event time does not advance there, so they never fire" in said


def test_rules_without_times_get_one_that_holds_nothing_back(
    env: StreamEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    timed = orders(env, None).assign_timestamps("at", monotonous()).key_by("id")
    both = timed.connect(orders(env, None, "rules").broadcast()).process(RemindingOfTwo)
    (said,) = said_at_submit(both, env, caplog)
    assert "between it and source 'rules': event time does not advance there, so they never fire" in said
    assert "write .assign_timestamps(lambda record: 0, monotonous(), idle_after_ms=1_000) before .broadcast()" in said


def test_timers_whose_time_comes_are_no_surprise(env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    timed = orders(env, None).assign_timestamps("at", monotonous()).filter(bool).key_by("id")
    assert not said_at_submit(timed.process(Reminding), env, caplog)
    assert not said_at_submit(orders(env, None, "others").key_by("id").process(ByTheClock), env, caplog)
    ending = orders(env, 9, "ending").key_by("id")
    assert not said_at_submit(timed.connect(ending).process(RemindingOfTwo), env, caplog)
