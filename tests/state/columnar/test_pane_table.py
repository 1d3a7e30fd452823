"""Aligned columnar windows against windows by the definition: any windows, any batches, any cuts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from understudy.state.columnar import pane_table
from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.pane_windows import (
    PaneWindows,
    cumulative_panes,
    sliding_panes,
    tumbling_panes,
)

from ...examples import examples
from .window_model import AlignedModel, Assign, Row, cumulative, sliding, tumbling
from .window_play import STEPS, play
from .window_subtasks import Subtasks

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
