"""Time cut into panes, and windows as runs of panes. Pure: no rows, no state.

A pane is a span of time that no window cuts: gcd(size, slide) of sliding windows, the step of cumulative ones. So a row
goes into one pane, and windows that overlap share panes. Panes are numbered, and so are the bounds between them: bound
n is the start of pane n. A window is named by its *end*, a bound; it holds the panes from its start, a bound, to before
its end. Flink: SliceAssigners.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..columns.timed_batch import BLOCK_ROWS, Times, least_and_greatest

Rows: TypeAlias = "slice | npt.NDArray[np.int64]"
"""A slice of rows, or the numbers of rows."""

FIRST_BOUND: Final = -(2**62)
LAST_BOUND: Final = 2**62
"""Before and after every pane that holds a row."""

NO_WATERMARK, END_OF_TIME = -(2**63), 2**63 - 1

_FEWEST_PIECES = 4
"""This many pieces are better than sorting, however few rows there are."""


class PaneGrid(Protocol):
    """Where panes begin, in milliseconds since the epoch. Panes follow each other without a gap."""

    def pane_of(self, time_ms: int) -> int:
        """The pane that holds a time."""

    def start_of(self, pane: int) -> int:
        """The first time of a pane."""

    @property
    def described(self) -> dict[str, Any]:
        """As plain data: equal for equal grids."""


@dataclass(frozen=True, slots=True)
class EvenGrid:
    """Panes of one length, of which one begins at the offset."""

    pane_ms: int
    offset_ms: int = 0

    def pane_of(self, time_ms: int) -> int:
        return (time_ms - self.offset_ms) // self.pane_ms

    def start_of(self, pane: int) -> int:
        return pane * self.pane_ms + self.offset_ms

    @property
    def described(self) -> dict[str, Any]:
        return {"pane_ms": self.pane_ms, "offset_ms": self.offset_ms}


class PaneWindows(Protocol):
    """Which windows there are, in bounds of panes."""

    @property
    def grid(self) -> PaneGrid: ...

    def start_of(self, end: int) -> int:
        """Where the window with this end starts."""

    def first_end(self, pane: int, after: int) -> int | None:
        """The end of the first window that holds this pane and ends after that bound; None if there is none."""

    @property
    def has_gaps(self) -> bool:
        """Whether there are panes in no window."""

    @property
    def described(self) -> dict[str, Any]:
        """As plain data: equal for equal windows."""


@dataclass(frozen=True, slots=True)
class SlidingPanes:
    """Windows of `size` panes, a new one each `slide` panes; with `slide` above `size` some panes are in none.

    Tumbling windows are those of one pane: size 1, slide 1.
    """

    grid: PaneGrid
    size: int = 1
    slide: int = 1

    def start_of(self, end: int) -> int:
        return end - self.size

    def first_end(self, pane: int, after: int) -> int | None:
        # Windows start at k * slide. Those with k from `first` to `last` hold the pane.
        first, last = -((self.size - 1 - pane) // self.slide), pane // self.slide
        k = max(first, (after - self.size) // self.slide + 1)
        return k * self.slide + self.size if k <= last else None

    @property
    def has_gaps(self) -> bool:
        return self.slide > self.size

    @property
    def described(self) -> dict[str, Any]:
        return {"kind": "sliding", "size": self.size, "slide": self.slide, **self.grid.described}


@dataclass(frozen=True, slots=True)
class CumulativePanes:
    """Windows of 1, 2, ... `size` panes that start together; the next ones start where the largest of them ends."""

    grid: PaneGrid
    size: int

    def start_of(self, end: int) -> int:
        return (end - 1) // self.size * self.size

    def first_end(self, pane: int, after: int) -> int | None:
        end = max(pane, after) + 1
        return end if end <= (pane // self.size + 1) * self.size else None

    @property
    def has_gaps(self) -> bool:
        return False

    @property
    def described(self) -> dict[str, Any]:
        return {"kind": "cumulative", "size": self.size, **self.grid.described}


def tumbling_panes(size_ms: int, offset_ms: int = 0) -> SlidingPanes:
    return SlidingPanes(EvenGrid(size_ms, offset_ms))


def sliding_panes(size_ms: int, slide_ms: int, offset_ms: int = 0) -> SlidingPanes:
    pane_ms = gcd(size_ms, slide_ms)
    return SlidingPanes(EvenGrid(pane_ms, offset_ms), size_ms // pane_ms, slide_ms // pane_ms)


def cumulative_panes(step_ms: int, size_ms: int, offset_ms: int = 0) -> CumulativePanes:
    assert size_ms % step_ms == 0, "the steps fill the window"
    return CumulativePanes(EvenGrid(step_ms, offset_ms), size_ms // step_ms)


def bound_at(grid: PaneGrid, time_ms: int) -> int:
    """The last bound that is not after this time: windows that end there or before hold no later time."""
    if time_ms >= END_OF_TIME:
        return LAST_BOUND
    return min(max(grid.pane_of(time_ms), FIRST_BOUND), LAST_BOUND) if time_ms > NO_WATERMARK else FIRST_BOUND


def time_of(grid: PaneGrid, bound: int) -> int:
    """When it is, within 64 bits."""
    if not FIRST_BOUND < bound < LAST_BOUND:
        return NO_WATERMARK if bound <= FIRST_BOUND else END_OF_TIME
    return min(max(grid.start_of(bound), NO_WATERMARK), END_OF_TIME)


def rows_by_pane(grid: PaneGrid, times: Times) -> list[tuple[int, Rows]]:
    """The panes that these times lie in, in order, and the rows of each, in their order.

    One pane, the usual case, costs a look at the least and the greatest time; times in order cost a search per pane.
    """
    if not len(times):
        return []
    first, last = grid.pane_of(int(times.min())), grid.pane_of(int(times.max()))
    if first == last:
        return [(first, slice(0, len(times)))]
    if last - first < len(times) and bool((times[1:] >= times[:-1]).all()):
        return _slices(grid, times, first, last)
    panes = panes_of(grid, times, first, last)
    offsets = panes - first
    # NumPy sorts 16 bits by counting, which is several times as fast.
    order = np.argsort(offsets.astype(np.uint16) if last - first < 1 << 16 else offsets, kind="stable")
    ordered = panes[order]
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [len(ordered)])).tolist()
    return [(int(ordered[start]), order[start:stop]) for start, stop in pairwise(starts)]


def pieces_by_pane(grid: PaneGrid, times: Times) -> list[tuple[int, Rows]]:
    """The same in pieces, in the order of the rows; a pane may have several, whose rows are in their order.

    In most streams times are nearly in order. Then most rows lie in a few slices of one pane each, which cost nothing
    to take, and only those between are sorted by pane: both together cost a tenth of sorting all.
    """
    if len(times) <= BLOCK_ROWS:
        return rows_by_pane(grid, times)
    least, greatest = least_and_greatest(times)
    first, last = grid.pane_of(int(least.min())), grid.pane_of(int(greatest.max()))
    if first == last:
        return [(first, slice(0, len(times)))]
    if last - first >= len(least):
        return rows_by_pane(grid, times)
    of_least, of_greatest = (panes_of(grid, each, first, last) for each in (least, greatest))
    panes = np.where(of_least == of_greatest, of_least, first - 1)  # first - 1: a block with rows of several
    cuts = [0, *(np.flatnonzero(panes[1:] != panes[:-1]) + 1).tolist(), len(least)]
    if len(cuts) > _FEWEST_PIECES and len(cuts) > len(least) // 8:
        return rows_by_pane(grid, times)
    pieces: list[tuple[int, Rows]] = []
    for begin, end in pairwise(cuts):
        rows = slice(begin * BLOCK_ROWS, min(end * BLOCK_ROWS, len(times)))
        pane = int(panes[begin])
        pieces += [(pane, rows)] if pane >= first else _moved(rows_by_pane(grid, times[rows]), rows.start)
    return pieces


def _moved(by_pane: list[tuple[int, Rows]], by: int) -> list[tuple[int, Rows]]:
    """The same rows, which are `by` rows further on."""
    return [(pane, _further(rows, by)) for pane, rows in by_pane]


def _further(rows: Rows, by: int) -> Rows:
    return slice(rows.start + by, rows.stop + by) if isinstance(rows, slice) else rows + by


def _slices(grid: PaneGrid, times: Times, first: int, last: int) -> list[tuple[int, Rows]]:
    inner = np.array([grid.start_of(pane) for pane in range(first + 1, last + 1)], np.int64)
    cuts = [0, *np.searchsorted(times, inner).tolist(), len(times)]
    found = zip(range(first, last + 1), cuts, cuts[1:], strict=False)
    return [(pane, slice(start, stop)) for pane, start, stop in found if start < stop]


def panes_of(grid: PaneGrid, times: Times, first: int, last: int) -> npt.NDArray[np.int64]:
    """The pane of each time; `first` and `last` of them all."""
    if isinstance(grid, EvenGrid):
        return np.asarray((times - grid.offset_ms) // grid.pane_ms, np.int64)
    inner = np.array([grid.start_of(pane) for pane in range(first + 1, last + 1)], np.int64)
    return np.asarray(first + np.searchsorted(inner, times, side="right"), np.int64)
