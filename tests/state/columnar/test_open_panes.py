"""OpenPanes: a new pane expects as many rows as came to the one that went last."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from understudy.state.columnar.open_panes import OpenPanes
from understudy.state.columnar.pane_windows import LAST_BOUND, tumbling_panes
from understudy.state.columnar.part_columns import ROWS


@pytest.mark.parametrize(
    "leave", [lambda panes: list(panes.take_out(LAST_BOUND)), lambda panes: panes.drop_unneeded(1)]
)
@pytest.mark.parametrize(("rows", "has_place"), [(8, False), (9, True)])
def test_as_many_rows_are_expected_as_came_to_the_last_pane(
    leave: Callable[[OpenPanes], object], rows: int, has_place: bool
) -> None:
    panes, slots = OpenPanes(tumbling_panes(10), {ROWS: pa.int64()}), np.array([7])
    panes.opened(0).places_of(np.zeros(rows, np.int64), 100)
    leave(panes)
    assert not list(panes.all)
    assert (panes.opened(1).places_of(slots, 10) is slots) is has_place
