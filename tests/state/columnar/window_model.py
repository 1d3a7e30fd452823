"""Windows by the definition, in plain Python: each record in each of its windows. What the tables are compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol


class Row(NamedTuple):
    key: str
    value: int | None
    time: int


class Window(NamedTuple):
    start: int
    end: int


Result = tuple[str, int, int, int, int | None, int | None]
"""Key, start, end, count of rows, sum and greatest value."""

Assign = Callable[[int], list[Window]]


def tumbling(size: int, offset: int = 0) -> Assign:
    return sliding(size, size, offset)


def sliding(size: int, slide: int, offset: int = 0) -> Assign:
    def assign(time: int) -> list[Window]:
        last = time - (time - offset) % slide
        starts = range(last, time - size, -slide)
        return [Window(start, start + size) for start in starts]

    return assign


def cumulative(step: int, size: int, offset: int = 0) -> Assign:
    def assign(time: int) -> list[Window]:
        start = time - (time - offset) % size
        return [Window(start, end) for end in range(start + step, start + size + 1, step) if end > time]

    return assign


def result_of(key: str, window: Window, rows: Iterable[Row]) -> Result:
    values = [row.value for row in rows]
    known = [value for value in values if value is not None]
    return key, window.start, window.end, len(values), sum(known) if known else None, max(known, default=None)


class Model(Protocol):
    """Takes batches and watermarks in turn; `results` are in no particular order."""

    late: list[Row]

    def take(self, rows: Sequence[Row]) -> list[Result]:
        """What fires at once: results of windows that had fired already, after the batch."""

    def advance(self, watermark: int) -> list[Result]: ...


class AlignedModel:
    """Flink: WindowOperator with an EventTimeTrigger."""

    def __init__(self, assign: Assign, lateness: int = 0) -> None:
        self._assign, self._lateness = assign, lateness
        self._open: dict[tuple[str, Window], list[Row]] = defaultdict(list)
        self._watermark = -(2**63)
        self.late: list[Row] = []

    def take(self, rows: Sequence[Row]) -> list[Result]:
        again = set()
        for row in rows:
            windows = self._assign(row.time)
            alive = [window for window in windows if window.end - 1 + self._lateness > self._watermark]
            if not alive and row.time + self._lateness <= self._watermark:
                self.late.append(row)
            for window in alive:
                self._open[row.key, window].append(row)
                if window.end - 1 <= self._watermark:
                    again.add((row.key, window))
        return [result_of(key, window, self._open[key, window]) for key, window in again]

    def advance(self, watermark: int) -> list[Result]:
        fired = [
            result_of(key, window, rows)
            for (key, window), rows in self._open.items()
            if self._watermark < window.end - 1 <= watermark
        ]
        self._watermark = watermark
        for key, window in list(self._open):
            if window.end - 1 + self._lateness <= watermark:
                del self._open[key, window]
        return fired


class SessionModel:
    """Flink: EventTimeSessionWindows in a WindowOperator with an EventTimeTrigger: record by record."""

    def __init__(self, gap: int, lateness: int = 0) -> None:
        self._gap, self._lateness = gap, lateness
        self._open: dict[str, list[list[Row]]] = defaultdict(list)
        self._fired: set[int] = set()
        self._watermark = -(2**63)
        self.late: list[Row] = []

    def take(self, rows: Sequence[Row]) -> list[Result]:
        touched: dict[int, tuple[str, list[Row]]] = {}
        for row in rows:
            there, apart = [row], []
            for session in self._open[row.key]:
                start, end = self._bounds(session)
                if start <= row.time + self._gap and row.time <= end:
                    there += session
                    touched.pop(id(session), None)
                else:
                    apart.append(session)
            if self._bounds(there)[1] - 1 + self._lateness <= self._watermark:
                self.late.append(row)
                continue
            self._open[row.key] = [*apart, there]
            touched[id(there)] = row.key, there
        return [
            result_of(key, self._bounds(session), session)
            for key, session in touched.values()
            if self._bounds(session)[1] - 1 <= self._watermark
        ]

    def advance(self, watermark: int) -> list[Result]:
        fired = []
        for key, sessions in self._open.items():
            for session in sessions:
                window = self._bounds(session)
                if self._watermark < window.end - 1 <= watermark:
                    fired.append(result_of(key, window, session))
            self._open[key] = [each for each in sessions if self._bounds(each)[1] - 1 + self._lateness > watermark]
        self._watermark = watermark
        return fired

    def _bounds(self, session: Sequence[Row]) -> Window:
        times = [row.time for row in session]
        return Window(min(times), max(times) + self._gap)


def sessions_of(rows: Iterable[Row], gap: int) -> list[Result]:
    """Of records none of which is late: the sessions are runs of each key's records in order of their times."""
    found: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row.key, row.time)):
        if found and found[-1][-1].key == row.key and row.time - found[-1][-1].time <= gap:
            found[-1].append(row)
        else:
            found.append([row])
    return [result_of(run[0].key, Window(run[0].time, run[-1].time + gap), run) for run in found]


def windows_of(rows: Iterable[Row], assign: Assign) -> list[Result]:
    """Of records none of which is late."""
    model = AlignedModel(assign)
    model.take(list(rows))
    return model.advance(2**63 - 1)
