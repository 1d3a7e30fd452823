"""Windowed topologies: jobs with the library's windows and joins. Their output is recomputed from all events at once.

`windows` slide, and `sessions` merge, since their times are far out of order; `panes` and `visits` are the same over
Arrow batches; `pairs` joins two streams by the interval between their times, `either` keeps what has no match. Nothing
is late there. Of `latecomers` some numbers are late; it is determined which, for their source is one subtask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ....actors.operators.aggregate import Count, Sum
from ....actors.operators.collector import Collector
from ....actors.windows.window import TimeWindow
from ....actors.windows.window_makers import session, sliding, tumbling
from ...api.environment import StreamEnvironment
from .event_times import APART_MS, DISORDER_MS, TICK_MS, WINDOW_MS, time_behind, time_of, timed
from .keyed_numbers import by_key, everywhere, key_of
from .timed_topologies import Onward
from .topologies import OUTPUT, Topology, Workload, by_name, environment, one_source

WIDE_DISORDER_MS = 10_200

SLIDE_MS = 3_000
GAP_MS = 3_500
LATENESS_MS = 5_000
_NEAR_MS = (-24_000, -16_000)
"""Of a pair, how far the record of the source behind is from the other."""

_COLUMNS = pa.schema([("key", pa.int64()), ("number", pa.int64()), ("at", pa.int64())])


def wide_time_of(number: int) -> int:
    """Far out of order, with a pause after each ten numbers."""
    return TICK_MS * number + 9_000 * (number // 10) - 1_700 * (5 * number % 7)


def _late_time_of(number: int) -> int:
    """Every sixth number is far behind, and every seventh by less than is allowed."""
    if number % 6 == 5:
        return time_of(number) - APART_MS
    return time_of(number) - (9_000 if number % 7 == 3 else 0)


# ---- the jobs


def _windows(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    windows = by_key(timed(everywhere(env, workload)), workload).window(sliding(WINDOW_MS, SLIDE_MS))
    whole = windows.process(_whole, name="windows")
    whole.key_by(lambda each: each[0]).process(Onward, name="onward").collect(name=OUTPUT)
    return env


def _few_keys(workload: Workload) -> Workload:
    """So few that a record may come between two sessions of its key."""
    return replace(workload, keys=1 + workload.keys % 3)


def _sessions(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    times = timed(one_source(env, workload), wide_time_of, WIDE_DISORDER_MS)
    by_key(times, _few_keys(workload)).window(session(GAP_MS)).process(_whole, name="sessions").collect(name=OUTPUT)
    return env


def _latecomers(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    times = timed(one_source(env, workload), _late_time_of)
    windows = by_key(times, workload).window(tumbling(WINDOW_MS)).allowed_lateness(LATENESS_MS).discarding()
    results = windows.process(_each, name="windows")
    on_time = results.map(lambda number: (number, False), name="on time")
    on_time.union(results.late.map(lambda number: (number, True), name="too late")).collect(name=OUTPUT)
    return env


def _columns(workload: Workload, time: Callable[[int], int], delay_ms: int, window: Any) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys

    def batch(start: int, rows: int) -> pa.RecordBatch:
        numbers = range(start, start + rows)
        columns = [[key_of(number, keys) for number in numbers], list(numbers), [time(number) for number in numbers]]
        return pa.record_batch(columns, schema=_COLUMNS)

    rate = workload.records_per_second
    numbers = env.generate(batch, workload.records, schema=_COLUMNS, records_per_second=rate, name="numbers")
    totals = timed(numbers, "at", delay_ms).key_by("key").window(window)  # type: ignore[arg-type]
    rows = totals.aggregate(rows=Count(), total=Sum("number"), name="totals")
    rows.map(tuple, name="plain").collect(name=OUTPUT)
    return env


def _panes(workload: Workload) -> StreamEnvironment:
    return _columns(workload, time_of, DISORDER_MS, sliding(WINDOW_MS, SLIDE_MS))


def _visits(workload: Workload) -> StreamEnvironment:
    return _columns(_few_keys(workload), wide_time_of, WIDE_DISORDER_MS, session(GAP_MS))


def _joined(how: str) -> Callable[[Workload], StreamEnvironment]:
    def build(workload: Workload) -> StreamEnvironment:
        env = environment(workload)
        left = by_key(timed(everywhere(env, workload)), workload)
        right = by_key(timed(one_source(env, workload, "behind", 2), time_behind), workload)
        left.interval_join(right, *_NEAR_MS, how=how, name="join").map(tuple, name="plain").collect(name=OUTPUT)
        return env

    return build


def _whole(key: int, window: TimeWindow, numbers: list[int], out: Collector) -> None:
    out.collect((key, window.start, window.end, *sorted(numbers)))


def _each(key: int, window: TimeWindow, numbers: list[int], out: Collector) -> None:
    for number in numbers:
        out.collect(number)


# ---- what comes of them


def _slid(workload: Workload) -> Iterator[tuple[int, int, int, list[int]]]:
    held: dict[tuple[int, int], list[int]] = {}
    for number in range(workload.records):
        last = time_of(number) - time_of(number) % SLIDE_MS
        for start in range(last, last - WINDOW_MS, -SLIDE_MS):
            held.setdefault((key_of(number, workload.keys), start), []).append(number)
    for (key, start), numbers in held.items():
        yield key, start, start + WINDOW_MS, numbers


def _gathered(workload: Workload) -> Iterator[tuple[int, int, int, list[int]]]:
    keys = _few_keys(workload).keys
    for place in range(keys):
        numbers = sorted(range(place, workload.records, keys), key=wide_time_of)
        for held in _together(numbers):
            yield key_of(place, keys), wide_time_of(held[0]), wide_time_of(held[-1]) + GAP_MS, held


def _together(numbers: list[int]) -> Iterator[list[int]]:
    """Cut where a session ends. `numbers` in the order of their times."""
    held: list[int] = []
    for number in numbers:
        if held and wide_time_of(number) > wide_time_of(held[-1]) + GAP_MS:
            yield held
            held = []
        held.append(number)
    if held:
        yield held


def _with_records(windows: Iterable[tuple[int, int, int, list[int]]]) -> list[Any]:
    return [(key, start, end, *sorted(numbers)) for key, start, end, numbers in windows]


def _with_sums(windows: Iterable[tuple[int, int, int, list[int]]]) -> list[Any]:
    return [(key, start, end, len(numbers), sum(numbers)) for key, start, end, numbers in windows]


def _sorted_out(workload: Workload) -> list[Any]:
    """Each number, and whether it is late: when it comes its window has been over for longer than is allowed."""
    found, newest_ms = [], None
    for number in range(workload.records):
        time_ms = _late_time_of(number)
        over_ms = time_ms - time_ms % WINDOW_MS + WINDOW_MS - 1 + LATENESS_MS
        found.append((number, newest_ms is not None and over_ms <= newest_ms - DISORDER_MS - 1))
        newest_ms = time_ms if newest_ms is None else max(newest_ms, time_ms)
    return found


def _pairs(workload: Workload) -> list[Any]:
    return [
        (left, right)
        for right in range(workload.records // 2)
        for left in range(right % workload.keys, workload.records, workload.keys)
        if _NEAR_MS[0] <= time_behind(right) - time_of(left) <= _NEAR_MS[1]
    ]


def _pairs_and_others(workload: Workload) -> list[Any]:
    pairs = _pairs(workload)
    lefts, rights = {left for left, _ in pairs}, {right for _, right in pairs}
    found = [*pairs, *((number, None) for number in range(workload.records) if number not in lefts)]
    return [*found, *((None, number) for number in range(workload.records // 2) if number not in rights)]


WINDOWED = by_name(
    Topology("windows", _windows, lambda work: _with_records(_slid(work)), tells_at_the_end=True),
    Topology("sessions", _sessions, lambda work: _with_records(_gathered(work)), tells_at_the_end=True),
    Topology("panes", _panes, lambda work: _with_sums(_slid(work)), tells_at_the_end=True),
    Topology("visits", _visits, lambda work: _with_sums(_gathered(work)), tells_at_the_end=True),
    Topology("latecomers", _latecomers, _sorted_out),
    Topology("pairs", _joined("inner"), _pairs),
    Topology("either", _joined("full"), _pairs_and_others, tells_at_the_end=True),
)
