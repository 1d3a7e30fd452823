"""Steps for a windowed aggregation and for its model, which have to agree after each of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st

from .window_model import Model, Row
from .window_subtasks import Subtasks

END_OF_TIME = 2**63 - 1

ROW = st.builds(Row, st.sampled_from(["", "a", "b", "c", "ü"]), st.none() | st.integers(-9, 9), st.integers(-40, 40))
STEPS = st.lists(
    st.one_of(
        st.lists(ROW, min_size=1, max_size=12),
        st.integers(-45, 45),
        st.tuples(st.integers(-45, 45), st.integers(1, 3), st.lists(st.integers(1, 3), max_size=3)),
    ),
    max_size=12,
)
"""Rows; a watermark; a watermark at which at most so many rows are given out at a time, with rescales in between."""


def play(subtasks: Subtasks, model: Model, steps: list[Any]) -> None:
    """Every step gives the same results, and in the end all is gone. As many rows are late."""
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
