"""Aligned columnar windows against windows by the definition: any windows, any batches, any cuts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from understudy.actors.operators.event_times import UnusableTime, times_of
from understudy.state.columnar import pane_table
from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.pane_windows import (
    EvenGrid,
    PaneWindows,
    SlidingPanes,
    cumulative_panes,
    sliding_panes,
    tumbling_panes,
)
from understudy.state.columnar.window_rows import WindowRows

from ...examples import examples
from .window_model import AlignedModel, Assign, Row, cumulative, sliding, tumbling
from .window_play import END_OF_TIME, STEPS, play
from .window_subtasks import AGGREGATES, SCHEMA, Subtasks

OFFSETS = st.integers(-7, 7)


@st.composite
def windows(draw: st.DrawFn) -> tuple[PaneWindows, Assign]:
    offset = draw(OFFSETS)
    match draw(st.sampled_from(["tumbling", "sliding", "cumulative"])):
        case "tumbling":
            size = draw(st.integers(1, 12))
            return tumbling_panes(size, offset), tumbling(size, offset)
        case "sliding":
            size, slide = draw(st.integers(1, 12)), draw(st.integers(1, 12))
            return sliding_panes(size, slide, offset), sliding(size, slide, offset)
        case _:
            step, steps = draw(st.integers(1, 5)), draw(st.integers(1, 4))
            return cumulative_panes(step, step * steps, offset), cumulative(step, step * steps, offset)


@examples(300)
@given(made=windows(), lateness=st.sampled_from([0, 0, 1, 5, 20]), steps=STEPS)
def test_windows_are_those_of_the_definition_whatever_is_cut_where(
    made: tuple[PaneWindows, Assign], lateness: int, steps: list[Any]
) -> None:
    panes, assign = made
    subtasks, model = Subtasks(lambda rows: PaneTable(panes, rows, lateness), {}), AlignedModel(assign, lateness)
    play(subtasks, model, steps)
    assert Counter(subtasks.late) == Counter(model.late)


@examples(150)
@given(made=windows(), lateness=st.sampled_from([0, 5]), steps=STEPS)
def test_two_phases_give_the_same(made: tuple[PaneWindows, Assign], lateness: int, steps: list[Any]) -> None:
    panes, assign = made
    assume(not panes.has_gaps)
    subtasks = Subtasks(lambda rows: PaneTable(panes, rows, lateness), {}, two_phases=True)
    with pytest.MonkeyPatch.context() as patch:
        if lateness:  # a window that has fired gives a result with each batch of partials: let there be one
            patch.setattr(pane_table, "_PARTIALS_AT_A_TIME", 1 << 16)
        play(subtasks, AlignedModel(assign, lateness), steps)


def test_a_checkpoint_before_the_first_watermark_is_restored_when_panes_are_of_a_millisecond() -> None:
    subtasks = Subtasks(lambda rows: PaneTable(sliding_panes(3, 2, offset_ms=2), rows), {})
    subtasks.take([Row("a", 1, 5)])
    subtasks.cut(2)
    assert subtasks.advance(100) == [("a", 4, 7, 1, 1, 1)]


@pytest.mark.parametrize("time", [-(2**61), 2**61])
def test_the_furthest_times_are_in_windows_of_a_millisecond(time: int) -> None:
    """They lie between the first bound and the last one; a row at 2**62 was lost. What is further is no event time."""
    assert times_of(pa.array([time]), "at").tolist() == [time]
    with pytest.raises(UnusableTime):
        times_of(pa.array([2 * time]), "at")
    subtasks = Subtasks(lambda rows: PaneTable(tumbling_panes(1), rows), {}, two_phases=True)
    subtasks.take([Row("a", 1, time)])
    subtasks.cut(2)
    assert subtasks.advance(2**63 - 1) == [("a", time, time + 1, 1, 1, 1)]


def table(panes: PaneWindows, lateness: int = 0) -> PaneTable:
    return PaneTable(panes, WindowRows.of_input(["key"], AGGREGATES, SCHEMA), lateness)


@examples(300)
@given(
    made=windows(),
    lateness=st.sampled_from([0, 1, 5, 20]),
    rows=st.lists(st.tuples(st.integers(-40, 40), st.integers(-45, 45) | st.sampled_from([-(2**63), 2**63 - 1]))),
)
def test_a_row_is_late_when_its_own_split_has_passed_all_its_windows(
    made: tuple[PaneWindows, Assign], lateness: int, rows: list[tuple[int, int]]
) -> None:
    panes, assign = made
    late = []
    for number, (time, mark) in enumerate(rows):
        reached = mark - (0 if mark == 2**63 - 1 else lateness)
        last = max((window.end - 1 for window in assign(time)), default=time)
        late += [number] if time <= mark and last <= reached else []
    times, marks = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    assert table(panes, lateness).late_by_split(times, marks).tolist() == late


@dataclass(frozen=True)
class CountingGrid(EvenGrid):
    """Ends a test that asks it too often."""

    asked: Any = None

    def pane_of(self, time_ms: int) -> int:
        next(self.asked, None) or pytest.fail("asked for each row")
        return super().pane_of(time_ms)


@pytest.mark.usual_sizes
def test_rows_that_may_be_late_are_judged_by_pane() -> None:
    """400,000 of them, as of a file in the wrong order, held the thread for seven seconds in all."""
    times = np.arange(20_000)[::-1].copy()
    marks = np.full(20_000, 20_000)
    grid = CountingGrid(1000, 0, iter([True] * 100))
    assert len(table(SlidingPanes(grid)).late_by_split(times, marks)) == 20_000


@dataclass(frozen=True)
class CountingPanes(SlidingPanes):
    """Ends a test that asks it too often."""

    asked: Any = None

    def first_end(self, pane: int, after: int) -> int | None:
        next(self.asked, None) or pytest.fail("asked for each pane at each window")
        return super().first_end(pane, after)

    def last_end(self, pane: int) -> int | None:
        next(self.asked, None) or pytest.fail("asked for each pane at each window")
        return super().last_end(pane)


@pytest.mark.parametrize("two_phases", [False, True])
def test_many_windows_fire_without_a_look_at_each_pane(two_phases: bool) -> None:
    """A batch with rows in 2,000 windows, as of a replay, fired for ten seconds; the time grew with the square."""
    panes = CountingPanes(EvenGrid(1000), 1, 1, iter([True] * 50_000))
    subtasks = Subtasks(lambda rows: PaneTable(panes, rows), {}, two_phases=two_phases)
    subtasks.take([Row("a", 1, number * 1000) for number in range(1000)])
    assert len(subtasks.advance(END_OF_TIME)) == 1000
