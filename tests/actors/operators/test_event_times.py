"""Event times: where they come from, how they stay with records, and what AssignTimestamps says of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.actors.errors import NoEventTime, UserCodeError
from understudy.actors.flow.elements import NO_WATERMARK, TimedBatch, Watermark, joined
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.flow.partitioner import HashByKey
from understudy.actors.operators import (
    AssignTimestamps,
    Collector,
    Filter,
    FlatMap,
    KeyedOperator,
    KeyedTimer,
    Map,
    MapBatches,
    OutputTag,
    UnusableTime,
    bounded_out_of_orderness,
    monotonous,
    punctuated,
)
from understudy.actors.operators.event_times import times_of, times_of_list
from understudy.actors.operators.operator import described_states
from understudy.actors.operators.watermark_generators import watermarks_before
from understudy.actors.tasks.operator_chain import OperatorChain
from understudy.state import pack_batch, unpack_batch
from understudy.state.columns.timed_batch import BLOCK_ROWS
from understudy.state.kinds.state_descriptions import is_keyed

Opened = Callable[..., Any]
HOUR = 3_600_000


def through(*operators: Any, batch: Any) -> list[Any]:
    """What comes out of a chain: batches, and watermarks."""
    out: list[Any] = []
    OperatorChain(operators, lambda each, tag="": out.append((tag, each) if tag else each), out.append).process(batch)
    return out


def timed(records: Any, times: list[int], column: str | None = None) -> TimedBatch:
    return TimedBatch(records, np.array(times, np.int64), column)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([5, -5], pa.int64()), [5, -5]),
        (pa.array([5, 6], pa.int32()), [5, 6]),
        (pa.array([5, -5], pa.timestamp("ms")), [5, -5]),
        (pa.array([5, -5], pa.timestamp("s", "Europe/Berlin")), [5000, -5000]),
        (pa.array([5999, -1], pa.timestamp("us")), [5, -1]),
        (pa.array([5_999_999, -1], pa.timestamp("ns")), [5, -1]),
        (pa.array([1, -1], pa.date32()), [24 * HOUR, -24 * HOUR]),
    ],
    ids=lambda it: str(getattr(it, "type", it)),
)
def test_a_column_gives_milliseconds_rounded_to_the_past(column: pa.Array, expected: list[int]) -> None:
    assert times_of(column, "t").tolist() == expected
    assert times_of(pa.concat_arrays([column, column]).slice(2), "t").tolist() == expected


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([1.5]), "'t' has type double: wanted whole milliseconds"),
        (pa.array(["2026"]), "'t' has type string: wanted whole milliseconds"),
        (pa.array([1, None]), "'t' is null at record 1 of the batch: every record needs an event time"),
        (pa.array([1], pa.uint64()), "'t' has type uint64"),
    ],
    ids=lambda it: str(it)[:20],
)
def test_a_column_that_is_no_time_is_refused(column: pa.Array, text: str) -> None:
    with pytest.raises(UnusableTime, match=text):
        times_of(column, "t")


@given(st.lists(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)), min_size=1))
def test_datetimes_in_a_list_and_in_a_column_are_the_same_times(moments: list[datetime]) -> None:
    column = pa.array(moments, pa.timestamp("us"))
    assert times_of_list(moments, "it").tolist() == times_of(column, "t").tolist()
    aware = [moment.replace(tzinfo=UTC) for moment in moments]
    assert times_of_list(aware, "it").tolist() == times_of(column, "t").tolist()


@pytest.mark.parametrize("value", [None, 1.5, "5", True, 2**63], ids=repr)
def test_a_value_that_is_no_time_is_refused_with_its_record(value: Any) -> None:
    with pytest.raises(UnusableTime, match="at record 1 of the batch"):
        times_of_list([5, value], "the time column 't'")


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (1_700_000_000.5, r"map it to int\(time \* 1000\) first, if it is in seconds"),
        (1_700_000_000_000.5, r"map it to int\(time\) first"),
        ("2026-11-26", r"map it to datetime.fromisoformat\(time\)"),
    ],
)
def test_a_float_or_text_that_is_a_time_gets_the_conversion(value: Any, remedy: str) -> None:
    with pytest.raises(UnusableTime, match=remedy):
        times_of_list([value], "the time column 't'")


def test_a_date_is_its_midnight() -> None:
    assert times_of_list([date(1970, 1, 2)], "it").tolist() == [24 * HOUR]


# --- AssignTimestamps


def test_one_watermark_per_batch_behind_it(opened: Opened) -> None:
    assign = opened(AssignTimestamps("t", bounded_out_of_orderness(3)))
    batch = pa.record_batch({"t": [5, 9, 7]})
    assert through(assign, batch=batch) == [timed(batch, [5, 9, 7]), Watermark(5)]
    again = TimedBatch(batch, np.array([5, 9, 7]), None, np.array([5, 5, 5]))
    assert through(assign, batch=batch) == [again]  # no new watermark; and 5 is late
    assert through(assign, batch=[{"t": 8}]) == [timed([{"t": 8}], [8])]
    assert through(assign, batch=[{"t": 10}]) == [timed([{"t": 10}], [10]), Watermark(6)]


def test_a_function_of_the_record_gives_the_time_of_rows_and_records(opened: Opened) -> None:
    assign = opened(AssignTimestamps(lambda record: record["t"] * 2, monotonous()))
    batch = pa.record_batch({"t": [5]})
    assert through(assign, batch=batch) == [timed(batch, [10]), Watermark(9)]
    assert through(assign, batch=[{"t": 6}]) == [timed([{"t": 6}], [12]), Watermark(11)]


def test_records_can_say_how_far_time_has_come(opened: Opened) -> None:
    assign = opened(AssignTimestamps("t", punctuated(lambda record, time_ms: time_ms if record["mark"] else None)))
    records = [{"t": 5, "mark": True}, {"t": 9, "mark": False}]
    assert through(assign, batch=records) == [timed(records, [5, 9]), Watermark(5)]


def test_a_missing_time_column_is_named(opened: Opened) -> None:
    assign = opened(AssignTimestamps("t", monotonous()))
    with pytest.raises(UserCodeError) as raised:
        through(assign, batch=[{"time": 5}])
    assert "time column 't' is not there" in str(raised.value.__cause__)
    with pytest.raises(ValueError, match="no column 't' to take event times from"):
        assign.output_schema(pa.schema({"time": pa.int64()}))
    with pytest.raises(ValueError, match="'t' has type double"):
        assign.output_schema(pa.schema({"t": pa.float64()}))


def test_watermarks_from_before_do_not_pass_it_but_the_end_does(opened: Opened) -> None:
    assign = opened(AssignTimestamps("t", monotonous()))
    assert not assign._passes(5)
    assert assign._passes(2**63 - 1)


@pytest.mark.parametrize("delay", [-1, 1.5, "5", True, None], ids=repr)
def test_a_delay_that_is_none_is_refused(delay: Any) -> None:
    with pytest.raises(ValueError, match="wanted a"):
        bounded_out_of_orderness(delay)


def test_the_earliest_times_give_no_watermark_below_the_first() -> None:
    generator = bounded_out_of_orderness(10**6).generator()
    with warnings.catch_warnings(action="error"):
        assert watermarks_before(generator, np.array([-(2**63)]), [None], NO_WATERMARK) is not None
    assert generator.on_batch(np.array([-(2**63)]), [None]) == NO_WATERMARK


@given(st.integers(1, 4000), st.integers(0, 60), st.integers(0, 40), st.integers(-50, 5000), st.integers(0, 9))
def test_who_is_late_in_a_long_batch_is_late_in_short_ones(
    rows: int, jitter: int, delay: int, before_ms: int, seed: int
) -> None:
    times = np.arange(rows) + np.random.default_rng(seed).integers(0, jitter + 1, rows)
    marks = watermarks_before(bounded_out_of_orderness(delay).generator(), times, [None] * rows, before_ms)
    watermark_ms, wanted = before_ms, []
    for time_ms in times.tolist():
        wanted.append(watermark_ms)
        watermark_ms = max(watermark_ms, time_ms - delay - 1)
    if any(time_ms <= mark for time_ms, mark in zip(times.tolist(), wanted, strict=True)):
        assert marks is not None
        late = times <= np.array(wanted)
        assert (times <= marks).tolist() == late.tolist()
        assert marks[late].tolist() == np.array(wanted)[late].tolist()
    else:
        assert marks is None


# --- how times stay with records


def test_map_filter_and_flat_map_keep_each_records_time(opened: Opened) -> None:
    batch = timed([1, 2, 3, 4], [10, 20, 30, 40])
    kept = opened(Filter(lambda n: n != 2))
    doubled = opened(Map(lambda n: n * 2))
    repeated = opened(FlatMap(lambda n: [n] * (n // 2)))
    assert through(kept, doubled, repeated, batch=batch) == [
        timed([2, 6, 6, 6, 8, 8, 8, 8], [10, 30, 30, 30, 40, 40, 40, 40])
    ]


@pytest.mark.parametrize("condition", [pc.field("n") > 1, lambda row: row.n > 1], ids=["expression", "function"])
def test_filtered_columns_keep_their_times(opened: Opened, condition: Any) -> None:
    batch = timed(pa.record_batch({"n": [1, 2, 3]}), [10, 20, 30], "t")
    (found,) = through(opened(Filter(condition)), batch=batch)
    assert found == timed(pa.record_batch({"n": [2, 3]}), [20, 30])
    assert found.column == "t"


def test_map_batches_reads_the_times_again_or_has_none(opened: Opened) -> None:
    batch = timed(pa.record_batch({"t": [1, 2, 3], "n": [4, 5, 6]}), [1, 2, 3], "t")
    backwards = opened(MapBatches(lambda columns: columns.take(pa.array([2, 0]))))
    (found,) = through(backwards, batch=batch)
    assert found.times.tolist() == [3, 1]
    without = opened(MapBatches(lambda columns: columns.select(["n"])))
    assert through(without, batch=batch) == [pa.record_batch({"n": [4, 5, 6]})]


class Stamped(KeyedOperator):
    """Emits what it sees of time, by `collect`, by `emit`, and to the side."""

    def process(self, record: dict[str, Any], out: Collector) -> None:
        if record["how"] == "collect":
            out.collect((self.timestamp, self.watermark))
        elif record["how"] == "emit":
            out.emit([self.timestamp, self.timestamp])
        elif record["how"] == "given":
            out.emit([1, 2], np.array([7, 8]))
        elif record["how"] == "side":
            out.collect_to(OutputTag("late"), self.timestamp)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect(timer)


def test_what_a_record_makes_has_its_time(opened: Opened) -> None:
    hows = ["collect", "emit", "collect", "collect", "given", "side", "nothing"]
    records = [{"k": 1, "how": how} for how in hows]
    found = through(opened(Stamped(), "k"), batch=timed(records, [10, 20, 30, 40, 50, 60, 70]))
    assert found == [
        timed([(10, NO_WATERMARK)], [10]),
        timed([20, 20], [20, 20]),
        timed([(30, NO_WATERMARK), (40, NO_WATERMARK)], [30, 40]),
        timed([1, 2], [7, 8]),
        ("late", timed([60], [60])),
    ]


def test_without_event_time_the_timestamp_says_what_to_do(opened: Opened) -> None:
    operator = opened(Stamped(), "k")
    with pytest.raises(UserCodeError) as raised:
        through(operator, batch=[{"k": 1, "how": "collect"}])
    assert isinstance(raised.value.__cause__, NoEventTime)
    assert "assign_timestamps" in str(raised.value.__cause__)
    through(operator, batch=timed([{"k": 1, "how": "collect"}], [10]))
    assert not hasattr(operator, "timestamp")


@pytest.mark.parametrize(
    ("time_ms", "text"), [(1.5, "found float 1.5"), (datetime(2026, 1, 1), "timestamp"), (2**63, "64 bits")], ids=repr
)
def test_a_timer_at_no_time_is_refused(opened: Opened, time_ms: Any, text: str) -> None:
    operator = opened(Stamped(), "k")
    operator._enter_key(1)
    with pytest.raises(ValueError, match=text):
        operator.timers.at_event_time(time_ms)


def test_an_output_tag_needs_a_name_and_a_side_output_a_tag() -> None:
    with pytest.raises(ValueError, match="wanted a name"):
        OutputTag("")
    with pytest.raises(TypeError, match="wanted an OutputTag"):
        Collector().collect_to("late", 1)  # type: ignore[arg-type]


# --- the same records are late however the stream is cut into batches


class Judge(KeyedOperator):
    """Which records are late."""

    def process(self, record: dict[str, Any], out: Collector) -> None:
        if self.timestamp <= self.watermark:
            out.collect(record["n"])


@given(
    times=st.lists(st.integers(0, 30), min_size=1, max_size=40),
    cuts=st.sets(st.integers(1, 39)),
    delay=st.integers(0, 10),
    columnar=st.booleans(),
)
def test_which_records_are_late_does_not_depend_on_batches(
    opened: Opened, times: list[int], cuts: set[int], delay: int, columnar: bool
) -> None:
    records = [{"n": n, "t": time} for n, time in enumerate(times)]
    expected = [n for n, time in enumerate(times) if any(time < before - delay for before in times[:n])]
    assign = opened(AssignTimestamps("t", bounded_out_of_orderness(delay)))
    keep_all, judge = opened(Filter(lambda record: True)), opened(Judge(), "n")
    found: list[int] = []
    chain = OperatorChain([assign, keep_all, judge], lambda each, tag="": found.extend(each.records))
    edges = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
    for start, end in pairwise(edges):
        batch: Any = records[start:end]
        chain.process(pa.RecordBatch.from_pylist(batch) if columnar else batch)
    assert found == expected


def test_marks_of_late_records_travel_with_them() -> None:
    late = TimedBatch([1, 2, 3], np.array([10, 5, 20]), None, np.array([NO_WATERMARK, 9, 9]))
    assert unpack_batch(pack_batch(late)) == late
    in_time = timed([4], [30])
    both = joined([late, in_time])
    assert both.watermarks is not None
    assert both.watermarks.tolist() == [NO_WATERMARK, 9, 9, NO_WATERMARK]
    assert both.slice(3, 1).watermarks is not None
    found = {}
    for _, part in HashByKey(3, KeySelector(lambda n: n), 128).split(late):
        assert isinstance(part, TimedBatch)
        assert part.watermarks is not None
        found.update(zip(part.records, part.watermarks.tolist(), strict=True))
    assert found == {1: NO_WATERMARK, 2: 9, 3: 9}


@pytest.mark.parametrize(
    ("time", "unit"),
    [
        (1_767_261_600, "in seconds"),
        (1_767_261_600_000_000, "in microseconds"),
        (1_767_261_600_000_000_000, "in nanoseconds"),
    ],
)
def test_a_time_in_another_unit_is_warned_of_once(
    opened: Opened, caplog: pytest.LogCaptureFixture, time: int, unit: str
) -> None:
    assign = opened(AssignTimestamps("t", monotonous()))
    for _ in range(3):
        through(assign, batch=[{"t": time}])
    (record,) = caplog.records
    assert unit in record.getMessage()


def test_a_time_in_milliseconds_is_not(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    through(opened(AssignTimestamps("t", monotonous())), batch=[{"t": 1_767_261_600_000}])
    assert not caplog.records


def test_an_operator_of_timers_alone_holds_keyed_state() -> None:
    (described,) = described_states(Stamped())
    assert is_keyed(described)


@pytest.mark.parametrize("time_ms", [-(2**63), -(2**61) - 1, 2**61 + 1, 2**63 - 1])
def test_times_at_the_edges_of_64_bits_are_refused(time_ms: int) -> None:
    for times in (lambda: times_of(pa.array([0, time_ms]), "at"), lambda: times_of_list([0, time_ms], "the time")):
        with pytest.raises(UnusableTime, match=rf"{time_ms} at record 1 of the batch.*none"):
            times()
    assert times_of(pa.array([2**61, -(2**61)]), "at").tolist() == [2**61, -(2**61)]


def test_the_bound_is_ms_a_timedelta_or_units() -> None:
    found = [bounded_out_of_orderness(5_000), bounded_out_of_orderness(timedelta(seconds=5))]
    assert {*found, bounded_out_of_orderness(seconds=5)} == {found[0]}
    assert bounded_out_of_orderness(0) == monotonous()
    for wrong in (-1, 1.5, True, "5 s", None):
        with pytest.raises(ValueError, match="bounded_out_of_orderness: wanted a"):
            bounded_out_of_orderness(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [datetime(2026, 1, 1), 1.5, "5", True], ids=repr)
def test_a_punctuated_watermark_is_ms_or_none(found: Any) -> None:
    generator = punctuated(lambda record, time_ms: found).generator()
    with pytest.raises(UnusableTime, match=r"punctuated: wanted the watermark in whole milliseconds.*int\(moment"):
        generator.on_batch(np.array([1]), ["a"])


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(0, 10))
@example(blocks=[10, 4], delay_ms=5)
@example(blocks=[10, 0], delay_ms=0)
def test_there_are_no_marks_only_if_no_record_is_late_by_another_one(blocks: list[int], delay_ms: int) -> None:
    times = np.repeat(np.array(blocks), BLOCK_ROWS)
    marks = bounded_out_of_orderness(delay_ms).generator().before_each(times, [])  # type: ignore[attr-defined]
    wanted = np.maximum.accumulate(times)[:-1] - delay_ms - 1
    if marks is None:
        assert not (times[1:] <= wanted).any()
    else:
        assert marks[1:].tolist() == wanted.tolist()
