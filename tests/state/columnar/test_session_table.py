"""Columnar sessions against sessions record by record: any gap, any batches, any cuts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from understudy.state.columnar.session_table import SessionTable

from ...examples import examples
from .window_model import SessionModel
from .window_play import STEPS, play
from .window_subtasks import Subtasks


@examples(400)
@given(gap=st.integers(1, 15), lateness=st.sampled_from([0, 0, 1, 5, 20]), steps=STEPS)
def test_sessions_are_those_of_record_by_record_whatever_is_cut_where(
    gap: int, lateness: int, steps: list[Any]
) -> None:
    subtasks, model = Subtasks(lambda rows: SessionTable(gap, rows, lateness), {}), SessionModel(gap, lateness)
    play(subtasks, model, steps)
    assert Counter(subtasks.late) == Counter(model.late)
