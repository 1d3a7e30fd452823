"""SessionTable: aggregates per key and session, for a whole batch of records at a time.

A batch is first merged within itself: sorted by key and time, a gap between two records begins another session. The
rest is merged into the open sessions. Nearly every key has one open session, which stands in arrays by the key's slot;
the earlier ones of a key that has several, as records out of order make them, stand in a list of their own.

A session fires when the watermark passes the end of its window, and closes, which forgets it, when the allowed lateness
has passed too. A record is late when its session, with all that it joins, would have closed: what decides is what has
come before it, so records in one batch are judged as if they came one by one. A record that joins a session which has
fired gives another result of it, once for the batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..backends.run_ledger import RunLedger
from ..columns.timed_batch import Times
from ..keys.key_index import KeyIndex
from ..keys.word_table import Slots
from .deadlines import Deadlines
from .group_progress import GroupProgress, Progress
from .pane_windows import END_OF_TIME
from .part_columns import PartColumns, RowsOfSlots, as_slice
from .sessions import Flags, Sessions, all_of, late_ones, merged, no_sessions, sessions_without_rows, spans_of
from .window_rows import MOST_ROWS, Results, Stored, Taken, WindowRows

_NONE: Final = -(2**63)
"""In place of the time of a last record: there is no session."""

_FEWEST_KEYS = 1 << 17
_BUCKETS_PER_GAP = 256


class SessionTable:
    """The open sessions of one subtask."""

    progress = Progress(0, 0)
    ahead = None
    """Each session says for itself whether it has fired."""
    is_giving_out = False
    kept_from = None
    """Sessions go one by one."""

    def __init__(self, gap_ms: int, rows: WindowRows, allowed_lateness_ms: int = 0) -> None:
        self.rows = rows
        self._gap_ms, self._lateness_ms = gap_ms, allowed_lateness_ms
        self._watermark = _NONE
        self._index = KeyIndex.of_columns(rows.keys)
        self._parts = PartColumns(rows.parts)
        self._first, self._last = np.empty(0, np.int64), np.empty(0, np.int64)
        self._has_fired, self._has_earlier = np.empty(0, np.bool_), np.empty(0, np.bool_)
        self._earlier = no_sessions(rows.parts)
        """Sessions of keys that have a later one, too."""
        self._deadlines = Deadlines(gap_ms // _BUCKETS_PER_GAP)
        self._ready: Slots = np.empty(0, np.int64)
        """Those that are to be fired now, and are not among the deadlines."""
        self._count = self._most = 0
        self._names = [rows.free_name(name) for name in ("first", "last", "fired")]
        self.changes: RunLedger | None = None

    def __len__(self) -> int:
        """How many open sessions there are."""
        return self._count + len(self._earlier)

    @property
    def key_count(self) -> int:
        """How many keys there is memory for."""
        return len(self._index)

    @property
    def holding(self) -> int:
        return self._count

    @property
    def stored_schema(self) -> pa.Schema:
        return self.rows.partial_schema(self._names)

    def update(self, batch: pa.RecordBatch, times: Times, marks: Times | None = None) -> Taken:
        """Take in rows; `marks`: by row, how far its own split of the source had come, where any is late by that.
        Raises InvalidKey for a null key, and ValueError for a column that is missing or unfit.
        """
        slots = self._slots_of(batch)
        late = self._late_rows(slots, times) if marks is None else self._late_by_split(slots, times, marks)
        if len(late):
            kept = np.delete(np.arange(len(times)), late)
            batch, times, slots = batch.take(pa.array(kept)), times[kept], slots[kept]
        if not len(times):
            return Taken(late if len(late) else None, len(late), [])
        order, begins, numbers = spans_of(slots, times, times, self._gap_ms)
        columns = PartColumns(self.rows.parts)
        columns.reserve(len(begins))
        columns.take_in(RowsOfSlots(batch, numbers))
        ends = np.append(begins[1:], len(order)) - 1
        found = Sessions(
            slots[order[begins]],
            times[order[begins]],
            times[order[ends]],
            np.zeros(len(begins), np.bool_),
            columns.at(slice(0, len(begins))),
        )
        return Taken(late if len(late) else None, len(late), self._fire_again(self._absorb(found)))

    def fire(self, watermark_ms: int, most_rows: int = MOST_ROWS) -> tuple[list[Results], bool]:
        """The next results of sessions that this watermark has passed; whether there are more.

        To be called until there are no more; snapshots may be taken in between.
        """
        self._watermark = watermark_ms
        if len(self._earlier) and (results := self._fire_earlier(most_rows)):
            return results, True
        if not len(self._ready):
            self._ready = self._due()
        slots, self._ready = self._ready[:most_rows], self._ready[most_rows:]
        results = self._fire_last(slots)
        if not len(self._ready):
            self._give_up_keys()
        return results, len(self._ready) > 0

    def resume(self, watermark_ms: int) -> None:
        """Go on from a restored watermark."""
        self._watermark = watermark_ms

    def stored(self, some: Slots | None = None) -> Stored | None:
        """All state as of now, or that of some slots, of which one without a session has one of no rows; None if there
        is none.
        """
        sessions = self._taken(np.flatnonzero(self._last != _NONE)) if some is None else self._sessions_of(some)
        if some is None and len(self._earlier):
            sessions = all_of([sessions, self._earlier])
        if not len(sessions):
            return None
        columns = (sessions.first, sessions.last, sessions.fired.astype(np.int64))
        others = self.rows.without_keys(dict(zip(self._names, columns, strict=True)), sessions.values)
        return Stored(self._index, sessions.slots, others)

    def _sessions_of(self, slots: Slots) -> Sessions:
        is_open = self._last[slots] != _NONE
        wanted = np.zeros(len(self._last), np.bool_)
        wanted[slots] = True
        gone = slots[~is_open & ~self._has_earlier[slots]]
        return all_of(
            [
                self._taken(slots[is_open]),
                self._earlier.take(wanted[self._earlier.slots]),
                sessions_without_rows(gone, self.rows.parts),
            ]
        )

    def restore(self, stored: pa.RecordBatch) -> None:
        """Take in rows of state, with their key columns, besides what is there."""
        slots = self._slots_of(stored)
        columns = PartColumns(self.rows.parts)
        columns.reserve(len(slots))
        columns.merge(RowsOfSlots(stored, np.arange(len(slots))), self.rows.names)
        first, last, fired = (self.rows.numbers(stored, name) for name in self._names)
        sessions = Sessions(slots, first, last, fired > 0, columns.at(slice(0, len(slots))))
        self._absorb(merged(sessions, self._gap_ms, self.rows.parts))

    def go_on(self, progress: GroupProgress) -> None:
        """Nothing to do: each session says for itself."""

    def _slots_of(self, batch: pa.RecordBatch) -> Slots:
        slots = self._index.slots_of(self.rows.key_columns(batch))
        if len(self._index) > len(self._last):
            size = max(len(self._index), 2 * len(self._last))
            self._first, self._last = _grown(self._first, size, 0), _grown(self._last, size, _NONE)
            self._has_fired, self._has_earlier = (
                _grown(flags, size, False) for flags in (self._has_fired, self._has_earlier)
            )
            self._parts.reserve(size)
        self._changed(slots)
        return slots

    def _changed(self, slots: Slots) -> None:
        if self.changes is not None:
            self.changes.changed(slots, len(slots), len(self._index))

    def _late_rows(self, slots: Slots, times: Times) -> Slots:
        """The rows that join nothing and whose own session would have closed, in order."""
        bound = self._watermark + 1 - self._gap_ms - self._lateness_ms
        if self._watermark == _NONE or int(times.min()) > bound:
            return np.empty(0, np.int64)
        alone = np.flatnonzero(times <= bound)
        alone = alone[~self._touches(slots[alone], times[alone], times[alone])]
        if not len(alone):
            return alone
        # Only records of the same key that came just before, or earlier sessions, may still save one.
        asked = np.zeros(len(self._last), np.bool_)
        asked[slots[alone]] = True
        of_these = np.flatnonzero(asked[slots])
        if len(of_these) == len(alone) and not self._has_earlier[slots[alone]].any():
            return alone
        return self._late_of(of_these, asked, slots, times, np.full(len(times), bound))

    def _late_by_split(self, slots: Slots, times: Times, marks: Times) -> Slots:
        """The same where each row goes by how far its own split had come: its session may be over by that, and open
        here.
        """
        reached = np.maximum(np.maximum(marks, self._watermark), _NONE + self._gap_ms + self._lateness_ms)
        bounds = reached + 1 - self._gap_ms - self._lateness_ms
        asked = np.zeros(len(self._last), np.bool_)
        asked[slots[times <= bounds]] = True
        return self._late_of(np.flatnonzero(asked[slots]), asked, slots, times, bounds)

    def _late_of(self, rows: Slots, asked: Flags, slots: Slots, times: Times, bounds: Times) -> Slots:
        """The late ones of these rows, which are all that there are of the keys that are asked about."""
        last_ones = np.flatnonzero(asked & (self._last != _NONE))
        opened = all_of([self._taken(last_ones), self._earlier.take(asked[self._earlier.slots])])
        late = late_ones(opened, slots[rows], times[rows], bounds[rows], self._gap_ms)
        return rows[np.array(late, np.int64)]

    def _touches(self, slots: Slots, first: Times, last: Times) -> Flags:
        """Whether each span is part of its key's last session."""
        there = self._last[slots]
        goes_on, leads_to = first <= there + self._gap_ms, last + self._gap_ms >= self._first[slots]
        found: Flags = (there != _NONE) & goes_on & leads_to
        return found

    def _absorb(self, found: Sessions) -> Slots:
        """Merge sessions, no two of which are one, into those that are open. Returns the slots of their keys.

        Most are the only one of their key in the batch, and begin or go on with its last session.
        """
        slots = found.slots
        only = np.ones(len(slots), np.bool_)
        again = slots[1:] == slots[:-1]
        only[1:] &= ~again
        only[:-1] &= ~again
        is_new = self._last[slots] == _NONE
        plain = only & ~self._has_earlier[slots] & (is_new | self._touches(slots, found.first, found.last))
        self._absorb_plain(found if plain.all() else found.take(plain), is_new[plain])
        if not plain.all():
            self._absorb_others(found.take(~plain))
        return slots

    def _absorb_plain(self, found: Sessions, is_new: Flags) -> None:
        slots = found.slots
        had_fired = self._has_fired[slots] & ~is_new
        first = np.where(is_new, found.first, np.minimum(self._first[slots], found.first))
        last = np.maximum(self._last[slots], found.last)  # _NONE is before all times
        self._first[slots], self._last[slots] = first, last
        self._has_fired[slots] = found.fired & (is_new | had_fired)
        self._parts.merge_values(slots, found.values)
        self._count += int(np.count_nonzero(is_new))
        self._enter(slots[is_new | (had_fired & ~found.fired)])

    def _absorb_others(self, found: Sessions) -> None:
        """Put together all sessions of these keys, and deal them out again."""
        keys = np.unique(found.slots)
        asked = np.zeros(len(self._last), np.bool_)
        asked[keys] = True
        is_new = self._last[keys] == _NONE
        had_fired = self._has_fired[keys] & ~is_new
        of_these = asked[self._earlier.slots]
        several = all_of([found, self._taken(keys[~is_new]), self._earlier.take(of_these)])
        together = merged(several, self._gap_ms, self.rows.parts)
        is_last = np.append(together.slots[1:] != together.slots[:-1], True)
        last = together.take(is_last)
        self._first[keys], self._last[keys], self._has_fired[keys] = last.first, last.last, last.fired
        self._parts.put(keys, last.values)
        self._count += int(np.count_nonzero(is_new))
        self._enter(keys[is_new | (had_fired & ~last.fired)])
        self._keep_earlier(all_of([self._earlier.take(~of_these), together.take(~is_last)]))

    def _fire_again(self, slots: Slots) -> list[Results]:
        """Sessions of these keys that have fired, are open still, and are not what they were."""
        if not self._lateness_ms:
            return []
        slots = np.unique(slots)
        changed = slots[~self._has_fired[slots] & (self._ends(self._last[slots]) <= self._watermark)]
        results = self._results(self._taken(changed))
        self._has_fired[changed] = True
        earlier = ~self._earlier.fired & (self._ends(self._earlier.last) <= self._watermark)
        if earlier.any():
            self._changed(self._earlier.slots[earlier])
            results += self._results(self._earlier.take(earlier))
            self._earlier = replace(self._earlier, fired=self._earlier.fired | earlier)
        return results

    def _fire_earlier(self, most_rows: int) -> list[Results]:
        """Those of the earlier sessions that are due, or at most `most_rows` of them; forget those that have closed."""
        earlier = self._earlier
        ends = self._ends(earlier.last)
        due = np.flatnonzero(~earlier.fired & (ends <= self._watermark))[:most_rows]
        results = self._results(earlier.take(due))
        fired = earlier.fired.copy()
        fired[due] = True
        is_open = ~fired | (self._closings(earlier.last) > self._watermark)
        self._changed(earlier.slots[due])
        self._changed(earlier.slots[~is_open])
        self._keep_earlier(replace(earlier, fired=fired).take(is_open))
        return results

    def _due(self) -> Slots:
        """The keys whose last session is to be fired, by their windows' ends; forget those that have closed."""
        slots = self._deadlines.take(self._watermark)
        if self._lateness_ms:  # one that went on after it had fired has been entered twice
            slots = np.unique(slots)
        slots = slots[self._last[slots] != _NONE]
        due = self._deadline(slots) <= self._watermark
        self._enter(slots[~due])
        slots = slots[due]
        fired = self._has_fired[slots]
        self._forget(slots[fired])
        slots = slots[~fired]
        by_end: Slots = slots[np.argsort(self._last[slots], kind="stable")]
        return by_end

    def _fire_last(self, slots: Slots) -> list[Results]:
        results = self._results(self._taken(slots))
        self._has_fired[slots] = True
        is_closed = self._closings(self._last[slots]) <= self._watermark
        self._forget(slots[is_closed])
        left = slots[~is_closed]
        self._changed(left)
        self._enter(left)
        return results

    def _forget(self, slots: Slots) -> None:
        self._most = max(self._most, len(self))
        self._changed(slots)
        self._last[slots] = _NONE
        self._parts.reset(slots)
        self._count -= len(slots)

    def _keep_earlier(self, sessions: Sessions) -> None:
        self._has_earlier[self._earlier.slots] = False
        self._earlier = sessions
        self._has_earlier[sessions.slots] = True

    def _taken(self, slots: Slots) -> Sessions:
        """The last sessions of these keys, which have one."""
        at = as_slice(slots)
        if isinstance(at, slice):  # gives a view of an array, and no copy
            first, last, fired = self._first[at].copy(), self._last[at].copy(), self._has_fired[at].copy()
            return Sessions(slots, first, last, fired, self._parts.at(at))
        return Sessions(slots, self._first[slots], self._last[slots], self._has_fired[slots], self._parts.at(slots))

    def _enter(self, slots: Slots) -> None:
        self._deadlines.enter(slots, self._deadline(slots))

    def _deadline(self, slots: Slots) -> Times:
        """When there is something to do about the last session of these keys."""
        last = self._last[slots]
        found: Times = np.where(self._has_fired[slots], self._closings(last), self._ends(last))
        return found

    def _ends(self, last: Times) -> Times:
        """The last time in the window of a session, of which this is the last record."""
        return _later(last, self._gap_ms - 1)

    def _closings(self, last: Times) -> Times:
        """The watermark that closes it."""
        return _later(self._ends(last), self._lateness_ms)

    def _results(self, sessions: Sessions) -> list[Results]:
        if not len(sessions):
            return []
        keys = self._index.keys(sessions.slots)
        return [self.rows.results(keys, sessions.first, _later(sessions.last, self._gap_ms), sessions.values)]

    def _give_up_keys(self) -> None:
        """Forget keys that have no session, when there may be as many of them as of others."""
        if len(self._index) <= max(_FEWEST_KEYS, 2 * self._most):
            return
        kept = np.flatnonzero((self._last != _NONE) | self._has_earlier)
        index, new_slots = self._index.keeping(kept)
        self._first, self._last = self._first[kept], self._last[kept]
        self._has_fired, self._has_earlier = self._has_fired[kept], self._has_earlier[kept]
        parts = PartColumns(self.rows.parts)
        parts.reserve(len(kept))
        parts.put(slice(0, len(kept)), self._parts.at(kept))
        self._index, self._parts, self._most = index, parts, 0
        self._earlier = replace(self._earlier, slots=new_slots[self._earlier.slots])
        self._deadlines.renumber(new_slots)
        if self.changes is not None:
            self.changes.start_over()


def _later(times: Times, ms: int) -> Times:
    """So much later, within 64 bits."""
    later: Times = np.minimum(times, END_OF_TIME - ms) + ms
    return later


def _grown(values: Any, size: int, new: Any) -> Any:
    grown = np.full(size, new, values.dtype)
    grown[: len(values)] = values
    return grown
