"""The operators of columnar windows in a harness: late records, partials before the shuffle, slices, mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import Count, NoEventTime, Sum
from understudy.actors.errors import UserCodeError
from understudy.actors.windows.columnar_shape import ColumnarShape, columnar_shape
from understudy.actors.windows.columnar_windows import ColumnarWindows
from understudy.actors.windows.window_makers import count_window, cumulative, session, sliding, tumbling
from understudy.state.columnar import pane_table
from understudy.state.columnar.pane_windows import time_of
from understudy.state.keys.key_groups import key_group
from understudy.testing import OperatorHarness

from ...examples import examples
from .window_stage import TYPES, ColumnStage, rescaled

AGGREGATES = {"n": Count(), "total": Sum("value")}


def shape_of(assigner: Any) -> ColumnarShape:
    found = columnar_shape(assigner)
    assert found is not None
    return found


def operator(assigner: Any, lateness_ms: int = 0) -> ColumnarWindows:
    return ColumnarWindows(shape_of(assigner), ["key"], AGGREGATES, lateness_ms)


def batch(*records: tuple[str, int, int]) -> pa.RecordBatch:
    columns = [pa.array(column, kind) for column, kind in zip(zip(*records, strict=True), TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=["key", "value", "time"])


def test_results_have_the_window_and_its_last_time() -> None:
    stage = ColumnStage(operator(tumbling(10)))
    stage.put(("a", 1, 3), ("b", 2, 4), ("a", 4, 12), at=[3, 4, 12])
    assert stage.taken() == []
    stage.put_watermark(9)
    (found,) = stage.harness.take_batches()
    assert found.schema.names == ["key", "window_start", "window_end", "n", "total"]
    assert found.to_pylist() == [
        {"key": "a", "window_start": 0, "window_end": 10, "n": 1, "total": 1},
        {"key": "b", "window_start": 0, "window_end": 10, "n": 1, "total": 2},
    ]
    stage.put_watermark(19)
    assert stage.taken() == [(("a", 10, 20, 1, 4), 19)]
    assert stage.holds() == (0, 0)


@pytest.mark.parametrize("assigner", [tumbling(10), session(10)])
def test_late_records_are_counted_and_go_to_the_side_output(assigner: Any) -> None:
    stage = ColumnStage(operator(assigner))
    stage.put_watermark(30)
    stage.put(("a", 1, 3), ("b", 2, 35), ("c", 4, 5), at=[3, 35, 5])
    assert stage.late() == [("a", 1, 3), ("c", 4, 5)]
    assert stage.operator.late_records == 2
    stage.put_watermark(100)
    assert [record[0] for record, _ in stage.taken()] == ["b"]


def test_a_record_too_late_for_some_of_its_sliding_windows_counts_in_the_others() -> None:
    stage = ColumnStage(operator(sliding(10, 5)))
    stage.put_watermark(11)
    stage.put(("a", 1, 7), at=[7])
    assert stage.late() == []
    assert stage.advance(100) == [("a", 5, 15, 1, 1)]


class InTwos(ColumnarWindows):
    """Gives out two results at a time."""

    MOST_ROWS = 2


@pytest.mark.parametrize("assigner", [tumbling(10), session(5)])
def test_windows_fire_in_slices_between_which_a_snapshot_holds_the_rest(assigner: Any) -> None:
    stage = ColumnStage(InTwos(shape_of(assigner), ["key"], AGGREGATES))
    stage.put(*((name, 1, 5) for name in "abcde"), at=[5] * 5)
    found: list[Any] = []
    hosted = stage.operator
    out: Any = _Out(found)
    assert hosted._advance(9, out)
    stage = rescaled([stage], 1)[0]
    assert len(found) == 2
    stage.put_watermark(9)
    found += [record[0] for record, _ in stage.taken()]
    assert sorted(found) == list("abcde")


class _Out:
    """Takes the keys of what is emitted."""

    def __init__(self, found: list[Any]) -> None:
        self._found = found

    def emit(self, emitted: pa.RecordBatch, times: Any) -> None:
        self._found += emitted.column("key").to_pylist()


@pytest.mark.parametrize("assigner", [tumbling(10), sliding(10, 5), cumulative(5, 20)])
def test_partials_go_before_the_watermark_that_ends_their_first_window(assigner: Any) -> None:
    local, merging = operator(assigner).in_two_phases()
    first, second = ColumnStage(local), OperatorHarness(merging, key_by="key")
    first.put(("a", 1, 3), ("a", 2, 4), ("a", 4, 23), at=[3, 4, 23])
    assert first.taken() == []
    first.put_watermark(9)
    (partials,) = first.harness.take_batches()
    assert partials.column("count(*)").to_pylist() == [2]
    first.put_watermark(21)
    assert first.taken() == []
    second.process(partials)
    second.watermark(9)
    whole = ColumnStage(operator(assigner))
    whole.put(("a", 1, 3), ("a", 2, 4), at=[3, 4])
    assert second.take_output() == whole.advance(9)


RECORDS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 60)), min_size=1, max_size=9)


@examples(40)
@given(st.lists(RECORDS, min_size=1, max_size=6))
def test_batches_wait_for_each_other_and_are_taken_in_part_by_part(batches: list[list[tuple[str, int, int]]]) -> None:
    local, merging = operator(tumbling(10)).in_two_phases()
    local.MOST_ROWS, local.ENOUGH_ROWS = 2, 7  # type: ignore[attr-defined]
    first, whole = ColumnStage(local), ColumnStage(operator(tumbling(10)))
    for records in batches:
        for stage in (first, whole):
            stage.put(*records, at=[time_ms for _, _, time_ms in records])
    first.harness.end()
    second = OperatorHarness(merging, key_by="key")
    for partials in first.harness.take_batches():
        second.process(partials)
    second.watermark(100)
    assert sorted(second.take_output()) == sorted(whole.advance(100))


def test_partials_of_many_keys_go_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pane_table, "_PARTIALS_AT_A_TIME", 2)
    local, _ = operator(tumbling(10)).in_two_phases()
    first = ColumnStage(local)
    first.put(*((key, value, 3) for value, key in enumerate("abcde")), at=[3] * 5)
    first.harness.end()
    columns = [(part["key"], part["sum(value)"]) for part in first.harness.take_batches()]
    found = [list(zip(keys.to_pylist(), sums.to_pylist(), strict=True)) for keys, sums in columns]
    assert found == [[("a", 0), ("b", 1)], [("c", 2), ("d", 3)], [("e", 4)]]


def test_a_window_that_has_fired_does_so_again_for_the_keys_of_all_its_panes() -> None:
    stage = ColumnStage(operator(sliding(10, 5), lateness_ms=100))
    stage.put(("a", 1, 1), ("b", 2, 6), at=[1, 6])
    stage.advance(9)
    found = stage.feed(("a", 4, 3), ("b", 8, 8), at=[3, 8])
    assert [record for record in found if record[1:3] == (0, 10)] == [("a", 0, 10, 2, 5), ("b", 0, 10, 2, 10)]


def test_late_records_of_several_windows_are_in_the_order_in_which_they_came() -> None:
    stage = ColumnStage(operator(tumbling(5)))
    stage.put_watermark(30)
    stage.put(("a", 1, 7), ("b", 2, 3), ("c", 3, 8), ("d", 4, 1), at=[7, 3, 8, 1])
    assert [record[0] for record in stage.late()] == ["a", "b", "c", "d"]


def test_partials_of_late_rows_are_not_held_back() -> None:
    local, merging = operator(tumbling(10)).in_two_phases()
    first, second = ColumnStage(local), OperatorHarness(merging, key_by="key")
    first.put_watermark(20)
    first.put(("a", 1, 3), ("a", 2, 4), at=[3, 4])
    (partials,) = first.harness.take_batches()
    second.watermark(20)
    second.process(partials)
    assert second.operator.late_records == 2


def test_partials_go_before_a_barrier() -> None:
    local, _ = operator(tumbling(10)).in_two_phases()
    stage = ColumnStage(local)
    stage.put(("a", 1, 3), at=[3])
    stage.harness.snapshot()
    assert len(stage.harness.take_batches()) == 1


def test_records_without_event_time_are_refused() -> None:
    made = OperatorHarness(operator(tumbling(10)), key_by="key")
    with pytest.raises(UserCodeError) as raised:
        made.process(batch(("a", 1, 3)))
    assert isinstance(raised.value.__cause__, NoEventTime)


@pytest.mark.parametrize("name", ["key", "window_start", "window_end"])
def test_two_columns_of_one_name_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        ColumnarWindows(shape_of(tumbling(10)), ["key"], {name: Count()})


def test_state_of_other_windows_is_refused() -> None:
    stage = ColumnStage(operator(tumbling(10)))
    stage.put(("a", 1, 3), at=[3])
    snapshot = stage.harness.snapshot()
    with pytest.raises(Exception, match="sliding"):
        OperatorHarness(operator(sliding(20, 10)), key_by="key", restore_from=snapshot)


def test_days_of_a_time_zone_are_panes() -> None:
    shape = shape_of(tumbling(days=1, tz="Europe/Berlin"))
    assert not hasattr(shape, "gap_ms")
    grid = shape.grid  # type: ignore[union-attr]
    hours = [(time_of(grid, day + 1) - time_of(grid, day)) // 3_600_000 for day in (19_812, 19_813, 20_023)]
    assert hours == [24, 23, 25], "30 and 31 March and 27 October 2024"


def test_windows_for_records_alone_have_no_columns() -> None:
    assert columnar_shape(count_window(3)) is None
    assert columnar_shape(tumbling(10, time="processing")) is None
    assert columnar_shape(session(lambda record: 5)) is None
    assert columnar_shape(cumulative(3_600_000, 86_400_000, tz="Europe/Berlin")) is None


LAST_OF_THE_FIRST = next(name for name in map(str, range(10_000)) if key_group(name, 128) == 63)
"""A key in the last key group of the first of two subtasks."""


def _uneven(
    assigner: Any,
    lateness_ms: int = 0,
    *,
    ahead_ms: int = 16,
    behind_ms: int = 0,
    names: str | Sequence[str] = "abcdefgh",
) -> tuple[ColumnStage, str, str]:
    """One subtask made of two, of which the first was ahead (`ahead_ms`); and a key of each."""
    stages, keys = _two(assigner, lateness_ms, ahead_ms=ahead_ms, behind_ms=behind_ms, names=names)
    (both,) = rescaled(stages, 1)
    both.put_watermark(behind_ms + 1)
    assert isinstance(both, ColumnStage)
    return both, *keys


def _two(
    assigner: Any, lateness_ms: int, *, ahead_ms: int, behind_ms: int, names: str | Sequence[str]
) -> tuple[list[ColumnStage], tuple[str, str]]:
    """The two, which have a row at 3 and at 25 each."""
    stages, keys = [], []
    for index in range(2):
        stage = ColumnStage.__new__(ColumnStage)
        made = operator(assigner, lateness_ms)
        stage._be(OperatorHarness(made, key_by="key", parallelism=2, subtask_index=index), 0)
        keys.append(next(name for name in names if stage.harness.share_of([{"key": name}])))
        stage.put((keys[index], 1, 3), (keys[index], 1, 25), at=[3, 25])
        stages.append(stage)
    stages[0].put_watermark(ahead_ms)
    stages[1].put_watermark(behind_ms)
    return stages, (keys[0], keys[1])


@pytest.mark.parametrize("assigner", [tumbling(10), sliding(10, 10), cumulative(10, 10)])
def test_after_a_rescale_late_rows_of_keys_that_were_ahead_are_counted(assigner: Any) -> None:
    stage, ahead, behind = _uneven(assigner)
    stage.put((ahead, 5, 4), (behind, 7, 4), (ahead, 1, 17), at=[4, 4, 17])
    assert stage.operator.late_records == 1
    assert [record["value"] for record in stage.late()] == [5]
    assert stage.advance(19) == [(behind, 0, 10, 2, 8), (ahead, 10, 20, 1, 1)]


@pytest.mark.parametrize("restores", [0, 1])
def test_after_a_rescale_windows_that_had_fired_do_not_fire_again_in_any_key_group(restores: int) -> None:
    """None has closed: with this lateness both subtasks have come as far."""
    stage, _, behind = _uneven(tumbling(10), lateness_ms=11, ahead_ms=9, names=[LAST_OF_THE_FIRST, *"abcdefgh"])
    for _ in range(restores):
        stage = rescaled([stage], 1)[0]  # type: ignore[assignment]
    assert stage.advance(9) == [(behind, 0, 10, 1, 1)]


@pytest.mark.parametrize("restores", [0, 1])
def test_after_a_rescale_windows_that_had_closed_stay_closed_where_both_have_fired_alike(restores: int) -> None:
    stage, ahead, behind = _uneven(tumbling(10), lateness_ms=3, ahead_ms=13, behind_ms=9)
    for _ in range(restores):
        stage = rescaled([stage], 1)[0]  # type: ignore[assignment]
    assert stage.feed((ahead, 5, 4), (behind, 7, 4), at=[4, 4]) == [(behind, 0, 10, 2, 8)]
    assert stage.operator.late_records == 1


def test_after_a_rescale_into_a_program_without_lateness_windows_that_had_fired_have_closed() -> None:
    stages, (ahead, behind) = _two(tumbling(10), 50, ahead_ms=16, behind_ms=0, names="abcdefgh")
    snapshots = [stage.harness.snapshot() for stage in stages]
    for stage in stages:
        stage.harness.crash()
    both = ColumnStage.__new__(ColumnStage)
    both._be(OperatorHarness(operator(tumbling(10)), key_by="key", restore_from=snapshots), 0)
    assert both.feed((ahead, 5, 4), (behind, 7, 4), at=[4, 4]) == []
    assert both.operator.late_records == 1
    assert both.advance(9) == [(behind, 0, 10, 2, 8)]


def test_after_a_rescale_a_late_row_of_a_key_that_was_ahead_counts_in_the_windows_that_had_not_fired() -> None:
    stage, ahead, _behind = _uneven(sliding(20, 10))
    stage.put((ahead, 5, 13), at=[13])
    assert stage.operator.late_records == 0
    assert (ahead, 0, 20, 2, 6) in stage.advance(19)


def test_after_a_rescale_a_late_row_that_is_allowed_fires_again_for_keys_that_were_ahead() -> None:
    stage, ahead, behind = _uneven(tumbling(10), lateness_ms=50)
    assert stage.feed((ahead, 5, 4), (behind, 7, 4), at=[4, 4]) == [(ahead, 0, 10, 2, 6)]
    stage = rescaled([stage], 1)[0]  # type: ignore[assignment]
    assert stage.feed((ahead, 2, 4), at=[4]) == [(ahead, 0, 10, 3, 8)]
    assert stage.advance(9) == [(behind, 0, 10, 2, 8)]
    assert stage.operator.late_records == 0
    assert len(stage.advance(100)) == 2
    assert stage.holds() == (0, 0)
