"""Sessions as columns, and what is worked out over all of them at once. Pure: no table, no watermark.

A session of a key is the span from its first record to its last; records, and sessions, of a key that are at most `gap`
apart are one session. Its window ends `gap` after its last record. Flink: EventTimeSessionWindows, MergingWindowSet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.timed_batch import Times
from ..keys.word_table import Slots
from ..kinds.aggregates import Part
from .part_columns import PartColumns, Values, joined_values

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Any number of sessions, row by row. Nobody changes the arrays."""

    slots: Slots
    """The key of each."""
    first: Times
    """The time of its first record."""
    last: Times
    """The time of its last record."""
    fired: Flags
    """Whether it has had a result."""
    values: Values

    def take(self, rows: Slots | Flags) -> Sessions:
        by_array = {id(values): values[rows] for values in self.values.values()}
        values = {part: by_array[id(values)] for part, values in self.values.items()}
        return Sessions(self.slots[rows], self.first[rows], self.last[rows], self.fired[rows], values)

    def __len__(self) -> int:
        return len(self.slots)


def no_sessions(parts: Mapping[Part, pa.DataType]) -> Sessions:
    return sessions_without_rows(np.empty(0, np.int64), parts)


def sessions_without_rows(slots: Slots, parts: Mapping[Part, pa.DataType]) -> Sessions:
    """One of each key, as if it had begun with no record."""
    columns, times = PartColumns(parts), np.zeros(len(slots), np.int64)
    columns.reserve(len(slots))
    return Sessions(slots, times, times, np.zeros(len(slots), np.bool_), columns.at(slice(0, len(slots))))


def all_of(several: Sequence[Sessions]) -> Sessions:
    """Of several columns, one after the other."""
    values = joined_values([each.values for each in several])
    slots, first, last = (
        np.concatenate(columns)
        for columns in zip(*((each.slots, each.first, each.last) for each in several), strict=True)
    )
    return Sessions(slots, first, last, np.concatenate([each.fired for each in several]), values)


def spans_of(slots: Slots, first: Times, last: Times, gap_ms: int) -> tuple[Slots, Slots, Slots]:
    """Which of these spans of time are one session: the order of spans by key and time; in that order, where each
    session begins; and for each span, in the order they were given, the number of its session.
    """
    order = _by_key_and_time(slots, first)
    ordered_slots, ordered_first = slots[order], first[order]
    begins = np.empty(len(order), np.bool_)
    begins[:1] = True
    np.not_equal(ordered_slots[1:], ordered_slots[:-1], out=begins[1:])
    reached = last[order] if first is last else _last_so_far(begins, last[order])
    begins[1:] |= ordered_first[1:] - reached[:-1] > gap_ms
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return order, np.flatnonzero(begins), numbers


def merged(sessions: Sessions, gap_ms: int, parts: Mapping[Part, pa.DataType]) -> Sessions:
    """The same where those that are one session are one: by key and time. It has fired if all of them had."""
    order, begins, numbers = spans_of(sessions.slots, sessions.first, sessions.last, gap_ms)
    columns = PartColumns(parts)
    columns.reserve(len(begins))
    columns.merge_values(numbers, sessions.values)
    return Sessions(
        sessions.slots[order[begins]],
        sessions.first[order[begins]],
        np.maximum.reduceat(sessions.last[order], begins),
        np.logical_and.reduceat(sessions.fired[order], begins),
        columns.at(slice(0, len(begins))),
    )


def late_ones(open_sessions: Sessions, slots: Slots, times: Times, bounds: Times, gap_ms: int) -> list[int]:
    """Which of these records are late, when they come one after the other: those whose session, with all that it joins,
    ends at their bound or before. `open_sessions`: all of the records' keys.
    """
    opened: dict[int, list[tuple[int, int]]] = {}
    columns = (open_sessions.slots, open_sessions.first, open_sessions.last)
    for slot, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        opened.setdefault(slot, []).append((begin, end))
    late = []
    for row, (slot, time, bound) in enumerate(zip(slots.tolist(), times.tolist(), bounds.tolist(), strict=True)):
        touched: list[tuple[int, int]] = []
        apart: list[tuple[int, int]] = []
        for each in opened.get(slot, ()):
            (touched if time <= each[1] + gap_ms and each[0] <= time + gap_ms else apart).append(each)
        touched.append((time, time))
        joined = (min(each[0] for each in touched), max(each[1] for each in touched))
        if joined[1] <= bound:
            late.append(row)
        else:
            opened[slot] = [*apart, joined]
    return late


def _by_key_and_time(slots: Slots, times: Times) -> Slots:
    least, most = int(times.min()), int(times.max())
    span = most - least + 1
    if (int(slots.max()) + 1) * span < 1 << 63:
        # One word of both sorts several times as fast as two columns do.
        return np.argsort(slots * span + (times - least))
    return np.lexsort((times, slots))


def _last_so_far(begins: Flags, last: Times) -> Times:
    """The greatest of each key's times up to here; `begins` is where a key begins."""
    least = int(last.min())
    span = int(last.max()) - least + 1
    keys = np.cumsum(begins)
    if int(keys[-1] + 1) * span < 1 << 63:
        reached: Times = np.maximum.accumulate(keys * span + (last - least)) - keys * span + least
        return reached
    found = last.copy()
    for start, stop in zip(np.flatnonzero(begins), [*np.flatnonzero(begins)[1:], len(last)], strict=True):
        found[start:stop] = np.maximum.accumulate(last[start:stop])
    return found
