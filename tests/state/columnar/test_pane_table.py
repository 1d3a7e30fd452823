"""Aligned columnar windows against windows by the definition: any windows, any batches, any cuts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.pane_windows import (
    PaneWindows,
    cumulative_panes,
    sliding_panes,
    tumbling_panes,
)

from .window_model import AlignedModel, Assign, Row, cumulative, sliding, tumbling
from .window_subtasks import Subtasks

END_OF_TIME = 2**63 - 1
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


ROW = st.builds(Row, st.sampled_from(["", "a", "b", "c", "ü"]), st.none() | st.integers(-9, 9), st.integers(-40, 40))
STEP = st.one_of(
    st.lists(ROW, min_size=1, max_size=12),
    st.integers(-45, 45),
    st.tuples(st.integers(-45, 45), st.integers(1, 3), st.lists(st.integers(1, 3), max_size=3)),
)
"""Rows; a watermark; a watermark at which at most so many rows are given out at a time, with rescales in between."""


def play(subtasks: Subtasks, model: Any, steps: list[Any]) -> None:
    """Every step gives the same results. Late rows are the same."""
    watermark = -(2**63)
    for step in [*steps, END_OF_TIME]:
        match step:
            case list():
                assert Counter(subtasks.take(step)) == Counter(model.take(step))
            case int() if step > watermark:
                watermark = step
                assert Counter(subtasks.advance(step)) == Counter(model.advance(step))
            case (to, most_rows, cuts):
                watermark = max(watermark, to)
                assert Counter(subtasks.advance(watermark, most_rows, cuts)) == Counter(model.advance(watermark))
                for parallelism in cuts[:1]:
                    subtasks.cut(parallelism)
    assert subtasks.late_rows == len(model.late)
    assert len(subtasks) == 0


@settings(max_examples=300)
@given(made=windows(), lateness=st.sampled_from([0, 0, 1, 5, 20]), steps=st.lists(STEP, max_size=12))
def test_windows_are_those_of_the_definition_whatever_is_cut_where(
    made: tuple[PaneWindows, Assign], lateness: int, steps: list[Any]
) -> None:
    panes, assign = made
    subtasks, model = Subtasks(lambda rows: PaneTable(panes, rows, lateness), {}), AlignedModel(assign, lateness)
    play(subtasks, model, steps)
    assert Counter(subtasks.late) == Counter(model.late)


@settings(max_examples=150)
@given(made=windows(), lateness=st.sampled_from([0, 5]), steps=st.lists(STEP, max_size=12))
def test_two_phases_give_the_same(made: tuple[PaneWindows, Assign], lateness: int, steps: list[Any]) -> None:
    panes, assign = made
    play(
        Subtasks(lambda rows: PaneTable(panes, rows, lateness), {}, two_phases=True),
        AlignedModel(assign, lateness),
        steps,
    )
