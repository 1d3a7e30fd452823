"""Panes of times, and the windows that hold a pane, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.state.columnar.pane_windows import (
    END_OF_TIME,
    FIRST_BOUND,
    LAST_BOUND,
    NO_WATERMARK,
    EvenGrid,
    SlidingPanes,
    bound_at,
    pieces_by_pane,
    rows_by_pane,
    time_of,
)
from understudy.state.columns.timed_batch import BLOCK_ROWS

GRIDS = st.builds(EvenGrid, st.integers(1, 9), st.integers(-9, 9))


@given(GRIDS, st.lists(st.integers(-100, 100), min_size=1, max_size=40), st.booleans())
def test_rows_are_dealt_to_their_panes_in_order(grid: EvenGrid, times: list[int], in_order: bool) -> None:
    times = sorted(times) if in_order else times
    found = {pane: np.arange(len(times))[rows].tolist() for pane, rows in rows_by_pane(grid, np.array(times))}
    wanted: dict[int, list[int]] = {}
    for row, time in enumerate(times):
        wanted.setdefault((time - grid.offset_ms) // grid.pane_ms, []).append(row)
    assert found == wanted
    assert list(found) == sorted(found)


@given(st.integers(0, 5000), st.sampled_from([1, 7, 300]), st.integers(0, 900), st.integers(1, 4000), st.integers(0, 9))
@example(rows=5000, a_row=1, jitter=0, pane_ms=4000, seed=0)
def test_pieces_of_many_rows_are_those_of_their_panes(
    rows: int, a_row: int, jitter: int, pane_ms: int, seed: int
) -> None:
    times = np.arange(rows) * a_row + np.random.default_rng(seed).integers(0, jitter + 1, rows)
    grid = EvenGrid(pane_ms, seed)
    numbers = np.arange(rows)
    found: dict[int, list[int]] = {}
    for pane, piece in pieces_by_pane(grid, times):
        assert len(numbers[piece])
        assert not isinstance(piece, slice) or piece.stop <= rows
        found.setdefault(pane, []).extend(numbers[piece].tolist())
    assert found == {pane: numbers[each].tolist() for pane, each in rows_by_pane(grid, times)}


@given(st.lists(st.integers(0, 3), min_size=2, max_size=30), st.integers(0, 30), st.integers(1, 4))
def test_pieces_of_blocks_in_any_order_are_those_of_their_panes(panes: list[int], apart: int, pane_ms: int) -> None:
    """The first block need not have the first pane, nor the last the last."""
    times = np.repeat(np.array(panes), BLOCK_ROWS)[: len(panes) * BLOCK_ROWS - 2]
    times[-1 - apart % len(times)] += 1
    grid = EvenGrid(pane_ms)
    found: dict[int, list[int]] = {}
    for pane, piece in pieces_by_pane(grid, times):
        found.setdefault(pane, []).extend(np.arange(len(times))[piece].tolist())
    assert found == {pane: np.arange(len(times))[each].tolist() for pane, each in rows_by_pane(grid, times)}


@pytest.mark.usual_sizes
def test_rows_nearly_in_order_are_mostly_slices() -> None:
    times = np.arange(100_000) + np.random.default_rng(0).integers(0, 2000, 100_000)
    pieces = pieces_by_pane(EvenGrid(30_000), times)
    sliced = sum(rows.stop - rows.start for _, rows in pieces if isinstance(rows, slice))
    assert sliced > 80_000
    assert len(pieces) == 4 + 3 * 2, "a slice of each pane, and the rows of both around each bound"


@pytest.mark.usual_sizes
def test_rows_in_no_order_are_one_piece_a_pane() -> None:
    times = np.random.default_rng(0).integers(0, 50, 5000)
    assert [pane for pane, _ in pieces_by_pane(EvenGrid(10), times)] == [0, 1, 2, 3, 4]


def test_no_rows_are_in_no_pane() -> None:
    assert rows_by_pane(EvenGrid(10), np.empty(0, np.int64)) == []


def test_times_that_are_far_apart_are_dealt_too() -> None:
    found = rows_by_pane(EvenGrid(1), np.array([5, -(10**15), 10**15, 5]))
    assert [(pane, np.arange(4)[rows].tolist()) for pane, rows in found] == [
        (-(10**15), [1]),
        (5, [0, 3]),
        (10**15, [2]),
    ]


@given(st.integers(1, 8), st.integers(1, 8), st.integers(-20, 20), st.integers(-30, 30))
def test_the_first_window_of_a_pane_after_a_bound(size: int, slide: int, pane: int, after: int) -> None:
    windows = SlidingPanes(EvenGrid(1), size, slide)
    ends = [k * slide + size for k in range(-60, 60) if k * slide <= pane < k * slide + size]
    assert windows.first_end(pane, after) == min((end for end in ends if end > after), default=None)
    assert windows.last_end(pane) == max(ends, default=None)


def test_before_and_after_all_time() -> None:
    grid = EvenGrid(1000)
    assert bound_at(grid, NO_WATERMARK) == FIRST_BOUND
    assert bound_at(grid, END_OF_TIME) == LAST_BOUND
    assert time_of(grid, LAST_BOUND) == END_OF_TIME
    assert time_of(grid, END_OF_TIME // 1000 + 1) == END_OF_TIME, "a window's end is within 64 bits"


def test_before_all_time_there_is_no_bound_before_the_first_one() -> None:
    grid = EvenGrid(1, 2)  # panes of a millisecond are more than bounds have numbers
    assert bound_at(grid, NO_WATERMARK + 1) == FIRST_BOUND
    assert bound_at(grid, END_OF_TIME - 1) == LAST_BOUND
