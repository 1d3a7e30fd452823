"""PaneTable: aggregates per key and window, kept per key and pane. Pure: batches, times and watermarks in, results out.

A row goes into its pane, of which overlapping windows share what it holds. When the watermark passes a window's end,
the panes of the window are merged by slot; a pane is dropped when the last window that holds it has closed. So nothing
is kept per window, and no timer per key. Source: slicing, as in Flink's SliceSharedWindowAggProcessor.

- *fired*: windows that end at this bound or before have had their first result.
- *closed*: those that end here or before have also had their allowed lateness; a row whose windows have all closed is
  late. Rows for a window that has fired and not closed give another result of it at once, for their keys alone.

A window that fires is taken out of the panes whole, and its results are then given out `MOST_ROWS` at a time. Those not
yet given out are state: a snapshot in between holds them, so none is lost or repeated, wherever keys go in a rescale.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..backends.run_ledger import RunLedger
from ..columns.timed_batch import Times
from ..keys.key_index import KeyIndex
from ..keys.word_table import Slots
from .group_progress import ByPane, GroupProgress, Progress
from .open_panes import OpenPanes, there
from .pane import Pane
from .pane_runs import LeavingWindow, Run, field_of_rows, joined_runs, rows_of
from .pane_windows import (
    END_OF_TIME,
    FIRST_BOUND,
    LAST_BOUND,
    NO_WATERMARK,
    EvenGrid,
    PaneWindows,
    Rows,
    bound_at,
    pieces_by_pane,
    rows_by_pane,
    time_of,
)
from .part_columns import ROWS, RowsOfSlots, values_at
from .window_rows import MOST_ROWS, Results, Stored, Taken, WindowRows

_FEWEST_KEYS = 1 << 17
_PARTIALS_AT_A_TIME = 1 << 17
_ONE_BY_ONE = EvenGrid(1)
"""The grid of numbers of panes."""


class PaneTable:
    """The windows of one subtask: their open panes, and those that are given out."""

    def __init__(self, windows: PaneWindows, rows: WindowRows, allowed_lateness_ms: int = 0) -> None:
        self.rows = rows
        self.fired = self.closed = FIRST_BOUND
        self._windows, self._grid, self._lateness_ms = windows, windows.grid, allowed_lateness_ms
        self._index = KeyIndex.of_columns(rows.keys)
        self._panes = OpenPanes(windows, rows.parts)
        self._leaving: deque[LeavingWindow] = deque()
        self._most_entries = 0
        """The greatest length since keys were last given up."""
        self._watermark = NO_WATERMARK
        self.ahead: GroupProgress | None = None
        self._pane_name, self._span_name = rows.free_name("pane"), rows.free_name("span")
        self.changes: RunLedger | None = None

    def __len__(self) -> int:
        """How many pairs there are of a key and a pane, or a window that is being given out."""
        return len(self._panes) + sum(map(len, self._leaving))

    @property
    def key_count(self) -> int:
        """How many keys there is memory for."""
        return len(self._index)

    @property
    def holding(self) -> int:
        return self._panes.largest

    @property
    def is_giving_out(self) -> bool:
        return bool(self._leaving)

    @property
    def kept_from(self) -> tuple[str, int]:
        """Panes close in their order."""
        return self._pane_name, self._panes.first

    @property
    def partial_schema(self) -> pa.Schema:
        return self.rows.partial_schema([self._pane_name])

    @property
    def progress(self) -> Progress:
        return Progress(self.fired, self.closed)

    @property
    def stored_schema(self) -> pa.Schema:
        """Of state: the partials of a pane have span 0, and those of a window being given out its number of panes."""
        return self.rows.partial_schema([self._pane_name, self._span_name])

    def update(self, batch: pa.RecordBatch, times: Times) -> Taken:
        """Take in rows. Raises InvalidKey for a null key, and ValueError for a column that is missing or unfit.

        A row that is in no window, as there may be with a slide above the size, changes nothing; whether it is late
        goes by its own time, as if it were alone in its window.
        """
        late, results = self._take(batch, pieces_by_pane(self._grid, times), times)
        return Taken(late, 0 if late is None else len(late), results)

    def late_by_split(self, times: Times, watermarks: Times) -> Slots:
        """The rows all of whose windows have closed by how far the row's own split of the source had come, in order:
        `watermarks`, by row.
        """
        rows = np.flatnonzero(times <= watermarks)
        closed_at = np.empty(len(rows), np.int64)
        for pane, own in rows_by_pane(self._grid, times[rows]):
            end = self._windows.last_end(pane)
            # Of a pane in no window each row goes by its own time.
            closed_at[own] = times[rows[own]] if end is None else time_of(self._grid, end) - 1
        marks, late_by = watermarks[rows], self._lateness_ms
        late: Slots = rows[(marks == END_OF_TIME) | (closed_at <= np.maximum(marks, NO_WATERMARK + late_by) - late_by)]
        return late

    def merge(self, partials: pa.RecordBatch) -> Taken:
        """Take in partials, as `take_partials` gives them."""
        by_pane = rows_by_pane(_ONE_BY_ONE, self.rows.numbers(partials, self._pane_name))
        late, results = self._take(partials, by_pane, None)
        counts = self.rows.numbers(partials, self.rows.names[ROWS])
        return Taken(late, 0 if late is None else int(counts[late].sum()), results)

    def fire(self, watermark_ms: int, most_rows: int = MOST_ROWS) -> tuple[list[Results], bool]:
        """The next results of windows that this watermark has passed, by their end; whether there are more.

        To be called until there are no more; snapshots may be taken in between.
        """
        self._watermark = watermark_ms
        self._most_entries = max(self._most_entries, len(self))
        target, closing = self._bounds(watermark_ms)
        runs: list[Run] = []
        rows = 0
        while rows < most_rows:
            if not self._leaving and not self._fire_next(target, closing):
                break
            first = self._leaving[0]
            if runs and rows + len(first) > most_rows:
                break  # a window that is not cut in two need not be copied once more
            run = first.next_run(most_rows)
            rows += len(run.slots)
            runs.append(run)
            first.at += len(run.slots)
            if not len(first):
                self._leaving.popleft()
        results = [self._results(runs)] if rows else []
        if self._leaving or self._panes.next_end(self.fired) <= target:
            return results, True
        self.fired = max(self.fired, target)
        self._close(closing)
        self._give_up_keys()
        return results, False

    def resume(self, watermark_ms: int) -> None:
        """Go on from a restored watermark."""
        self._watermark = watermark_ms
        target, closing = self._bounds(watermark_ms)
        if not len(self):
            self.fired = target
        self._close(closing)

    def first_end(self) -> int:
        """The end, in ms, of the first window that holds anything and has not fired."""
        return time_of(self._grid, self._panes.next_end(self.fired))

    def first_end_of(self, time_ms: int) -> int:
        """The end, in ms, of the first window that holds this time; the end of time if none does."""
        end = self._windows.first_end(self._grid.pane_of(time_ms), FIRST_BOUND)
        return END_OF_TIME if end is None else time_of(self._grid, end)

    def take_partials(self, until_ms: int = END_OF_TIME) -> Iterator[pa.RecordBatch]:
        """The partials of panes that a window holds which ends by then; they are gone afterwards.

        To be used up before anything else is done.
        """
        runs: list[Run] = []
        rows = 0
        self._most_entries = max(self._most_entries, len(self))
        for number, pane in self._panes.take_out(bound_at(self._grid, until_ms)):
            slots, values = pane.take_out()
            for start in range(0, len(slots), _PARTIALS_AT_A_TIME):
                places = slice(start, start + _PARTIALS_AT_A_TIME)
                runs.append(Run(number, number, slots[places], values_at(values, places)))
                rows += len(runs[-1].slots)
                if rows >= _PARTIALS_AT_A_TIME:
                    yield self._partials(runs)
                    runs, rows = [], 0
        if runs:
            yield self._partials(runs)
        self._give_up_keys()

    def stored(self, some: Slots | None = None) -> Stored | None:
        """All state as of now, or that of some slots while nothing is given out; None if there is none."""
        runs = []
        for number, pane in self._panes.items():
            of_pane = slice(0, len(pane)) if some is None else there(pane.find(some, len(self._index)))
            if len(held := pane.slots[of_pane]):
                runs.append(Run(number, 0, held, pane.parts.at(of_pane)))
        for leaving in self._leaving:
            run = leaving.next_run(len(leaving))
            runs.append(run._replace(end=run.end - run.start))
        if not runs:
            return None
        slots, values = joined_runs(runs)
        places = {self._pane_name: field_of_rows(runs, "start"), self._span_name: field_of_rows(runs, "end")}
        return Stored(self._index, slots, self.rows.without_keys(places, values))

    def restore(self, stored: pa.RecordBatch) -> None:
        """Take in rows of state, with their key columns, besides what is there."""
        panes, spans = (self.rows.numbers(stored, name) for name in (self._pane_name, self._span_name))
        for span, rows in rows_by_pane(_ONE_BY_ONE, spans):
            part, numbers = rows_of(stored, rows), panes[rows]
            if not span:
                self._take_in(part, rows_by_pane(_ONE_BY_ONE, numbers), self.progress, partials=True)
                continue
            slots = self._index.slots_of(self.rows.key_columns(part))
            for start, at in rows_by_pane(_ONE_BY_ONE, numbers):
                leaving = Pane(self.rows.parts)
                self._merge(leaving, rows_of(part, at), slots[at])
                self._leaving.append(LeavingWindow(start, start + span, leaving))

    def go_on(self, progress: GroupProgress) -> None:
        """What was restored came from subtasks that had fired different windows."""
        if not self._lateness_ms:
            progress = replace(progress, closed=progress.fired)
        self.fired = progress.least.fired
        self.ahead = None if progress.is_even else progress

    def _take(self, batch: pa.RecordBatch, by_pane: ByPane, times: Times | None) -> tuple[Slots | None, list[Results]]:
        """Take in rows with times, or partials. The late ones, in order, and results of windows that had fired."""
        if self.ahead is None:
            kept, late = self._open_ones(by_pane, times, self.closed)
            return late, self._take_in(batch, kept, self.progress, partials=times is None)
        lates, results = [], []
        for progress, rows in self.ahead.levels(self.rows.key_columns(batch), by_pane, self.progress):
            kept, late = self._open_ones(rows, times, progress.closed)
            lates += [] if late is None else [late]
            results += self._take_in(batch, kept, progress, partials=times is None)
        return np.sort(np.concatenate(lates)) if lates else None, results

    def _open_ones(
        self, by_pane: ByPane, times: Times | None, closed: int
    ) -> tuple[list[tuple[int, Rows]], Slots | None]:
        """Those of the panes that a window still needs, and the late rows, in order."""
        kept, late = [], []
        for number, rows in by_pane:
            if self._windows.first_end(number, closed) is not None:
                kept.append((number, rows))
                continue
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            if self._windows.has_gaps and self._windows.first_end(number, FIRST_BOUND) is None:
                assert times is not None, "there are no partials of panes that are in no window"
                numbers = numbers[times[numbers] <= self._watermark - self._lateness_ms]
            late.append(numbers)
        return kept, np.sort(np.concatenate(late)) if sum(map(len, late)) else None

    def _take_in(self, batch: pa.RecordBatch, by_pane: ByPane, progress: Progress, *, partials: bool) -> list[Results]:
        if not by_pane:
            return []
        slots = self._index.slots_of(self.rows.key_columns(batch))
        if self.changes is not None:
            self.changes.changed(slots, len(slots), len(self._index))
        again: dict[int, list[Slots]] = {}
        for number, rows in by_pane:
            self._merge(self._panes.opened(number), rows_of(batch, rows), slots[rows], partials=partials)
            end = self._windows.first_end(number, progress.closed)
            while end is not None and end <= progress.fired:
                again.setdefault(end, []).append(slots[rows])
                end = self._windows.first_end(number, end)
        return [
            result for end in sorted(again) for result in self._fire_again(end, np.unique(np.concatenate(again[end])))
        ]

    def _merge(self, pane: Pane, batch: pa.RecordBatch, slots: Slots, *, partials: bool = True) -> None:
        rows = RowsOfSlots(batch, pane.places_of(slots, len(self._index)))
        if partials:
            pane.parts.merge(rows, self.rows.names)
        else:
            pane.parts.take_in(rows)

    def _fire_again(self, end: int, slots: Slots) -> Iterator[Results]:
        """Results of these keys as they are now."""
        for at in range(0, len(slots), MOST_ROWS):
            merged = self._panes.those_of(slots[at : at + MOST_ROWS], end, len(self._index))
            yield self._results([Run(self._windows.start_of(end), end, merged.slots, merged.values())])

    def _bounds(self, watermark_ms: int) -> tuple[int, int]:
        """Windows that end at the first or before are to be fired, at the second or before, closed."""
        if watermark_ms >= END_OF_TIME:
            return LAST_BOUND, LAST_BOUND
        first, second = (bound_at(self._grid, watermark_ms + 1 - delay) for delay in (0, self._lateness_ms))
        return first, second

    def _fire_next(self, target: int, closing: int) -> bool:
        """Take the next window that ends at `target` or before out of its panes; False if there is none."""
        while not self._leaving:
            end = self._panes.next_end(self.fired)
            if end > target:
                return False
            window = self._without_fired(self._panes.window(end, closing, len(self._index)), end)
            self.fired = end
            self._close(min(end, closing))
            window.seal()
            if len(window):
                self._leaving.append(LeavingWindow(self._windows.start_of(end), end, window))
        return True

    def _without_fired(self, window: Pane, end: int) -> Pane:
        """The same without keys for which it has fired before a rescale."""
        if self.ahead is None:
            return window
        places = self.ahead.not_fired(self._index.keys(window.slots), end)
        left = Pane(self.rows.parts)
        left.merge_values(window.slots[places], window.parts.at(places), len(self._index))
        return left

    def _close(self, bound: int) -> None:
        """Windows that end there or before have closed."""
        self.closed = max(self.closed, min(bound, self.fired))
        if self.ahead is not None and self.ahead.is_behind(self.progress):
            self.ahead = None
        self._panes.drop_unneeded(self.closed)

    def _give_up_keys(self) -> None:
        """Forget keys that are in no pane, when there may be as many of them as of others."""
        if len(self._index) <= max(_FEWEST_KEYS, 2 * self._most_entries):
            return
        panes = [*self._panes.all, *(leaving.pane for leaving in self._leaving)]
        live = np.zeros(len(self._index), np.bool_)
        for pane in panes:
            live[pane.slots] = True
        self._index, new_slots = self._index.keeping(np.flatnonzero(live))
        for pane in panes:
            pane.renumber(new_slots)
        self._panes.spare.clear()
        self._most_entries = 0
        if self.changes is not None:
            self.changes.start_over()

    def _results(self, runs: Sequence[Run]) -> Results:
        slots, values = joined_runs(runs)
        keys = self._index.keys(slots)
        if len(runs) == 1:
            start, end = (time_of(self._grid, bound) for bound in (runs[0].start, runs[0].end))
            return self.rows.results(keys, start, end, values)
        times = [run._replace(start=time_of(self._grid, run.start), end=time_of(self._grid, run.end)) for run in runs]
        return self.rows.results(keys, field_of_rows(times, "start"), field_of_rows(times, "end"), values)

    def _partials(self, runs: Sequence[Run]) -> pa.RecordBatch:
        slots, values = joined_runs(runs)
        places = {self._pane_name: field_of_rows(runs, "start")}
        return self.rows.partials(self._index.keys(slots), places, values)
