"""OpenPanes: a new pane expects as many rows as came to the one that went last."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.state.columnar.open_panes import OpenPanes
from understudy.state.columnar.pane import Pane
from understudy.state.columnar.pane_windows import LAST_BOUND, sliding_panes, tumbling_panes
from understudy.state.columnar.part_columns import ROWS, RowsOfSlots
from understudy.state.kinds.aggregates import Part


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


def panes_of(*numbers: int) -> OpenPanes:
    panes = OpenPanes(tumbling_panes(10), {ROWS: pa.int64()})
    for number in numbers:
        panes.opened(number).places_of(np.array([7]), 10)
    return panes


def test_only_panes_that_were_opened_since_are_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length was the sum over all panes at each watermark."""
    panes, counted = panes_of(*range(1_000)), []
    assert len(panes) == 1_000
    count = Pane.__len__
    monkeypatch.setattr(Pane, "__len__", lambda pane: counted.append(pane) or count(pane))
    for number in range(100):
        panes.opened(number + 950).places_of(np.array([8]), 10)
        assert len(panes) == 1_001 + number
    assert len(counted) < 1_000


@given(st.lists(st.one_of(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 9), min_size=1)), st.integers(0, 60))))
def test_the_length_is_that_of_all_panes(script: list[tuple[int, list[int]] | int]) -> None:
    """A number: all that ends there has gone."""
    panes = panes_of()
    for step in script:
        if isinstance(step, int):
            panes.drop_unneeded(step // 10)
        else:
            panes.opened(step[0]).places_of(np.array(step[1]), 10)
        if script.index(step) % 2:
            assert len(panes) == sum(map(len, panes.all))
    assert len(panes) == sum(map(len, panes.all))


@pytest.mark.parametrize("keys", [4, 1000], ids=["wide", "narrow"])
def test_sums_of_floats_are_added_in_one_order_however_many_keys_there_are_elsewhere(keys: int) -> None:
    """After a restart there may be fewer: the sums are to be the same, to the last bit."""
    total = Part("sum", "value")
    panes = OpenPanes(sliding_panes(30, 10), {ROWS: pa.int64(), total: pa.float64()})
    for number, values in enumerate(([1.0, 1.0], [1e16, 1.0, 1.0], [1.0, 1.0])):
        pane = panes.opened(number)
        places = pane.places_of(np.arange(len(values)), 1000)
        pane.parts.take_in(RowsOfSlots(pa.record_batch({"value": values}), places))
    merged = panes.window(3, 0, keys)
    assert merged.values()[total].tolist() == [1e16 + 1.0 + 1.0, 3.0, 1.0], "the largest pane first"
    assert 1e16 + 1.0 + 1.0 != 1.0 + 1.0 + 1e16
