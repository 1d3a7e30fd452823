"""Columnar sessions against sessions record by record: any gap, any batches, any cuts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from understudy.state.columnar.session_table import SessionTable

from ...examples import examples
from .window_model import Row, SessionModel
from .window_play import STEPS, play
from .window_subtasks import Subtasks

A, BEFORE, AGAIN = Row("a", 1, 0), Row("a", 1, -15), Row("a", 1, 5)


@example(gap=10, lateness=20, steps=[[A], 9, [AGAIN], 14])
@example(gap=10, lateness=20, steps=[[A], 9, [BEFORE, AGAIN], 14])
@examples(400)
@given(gap=st.integers(1, 15), lateness=st.sampled_from([0, 0, 1, 5, 20]), steps=STEPS)
def test_sessions_are_those_of_record_by_record_whatever_is_cut_where(
    gap: int, lateness: int, steps: list[Any]
) -> None:
    """In the two examples a session has fired, goes on, and is due again before it would have closed."""
    subtasks, model = Subtasks(lambda rows: SessionTable(gap, rows, lateness), {}), SessionModel(gap, lateness)
    play(subtasks, model, steps)
    assert Counter(subtasks.late) == Counter(model.late)
