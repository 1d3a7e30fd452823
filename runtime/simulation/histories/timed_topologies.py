"""Timed topologies: jobs with event time. The output that each must commit is recomputed from all events at once.

The times of records are out of order, but by no more than the watermarks allow for, so that nothing is late and the
output is determined: timers by hand (`reminders`), windows by hand with sources that are far apart (`apart`), the
library's windows and sessions (`windows`, `sessions`). Of `latecomers` some are later than that, and each of their
numbers comes out once, in a window or as late. `clocked` has timers of the clock, which may fire at any time or never.

An operator that sees what must not be says so in a record of its own, which no expected output holds: see `Watching`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ....actors.flow.elements import NO_WATERMARK
from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.timers import KeyedTimer
from ....actors.operators.watermark_generators import bounded_out_of_orderness
from ....actors.windows.window import TimeWindow
from ....actors.windows.window_makers import session, sliding, tumbling
from ....messages import CheckpointId
from ....state import ListState, MapState, OperatorListState, ValueState
from ...api.environment import StreamEnvironment
from .demanding_topologies import Ragged, _key
from .topologies import OUTPUT, Topology, Workload, environment

TICK_MS = 1_000
"""From one number to the next, but for the disorder."""

DISORDER_MS = 2_800
"""How far a record may be behind the newest one."""

WIDE_DISORDER_MS = 12_000

APART_MS = 20_000
"""How far the times of one source are behind those of the other."""

WINDOW_MS, SLIDE_MS = 6_000, 3_000
GAP_MS = 3_500
LATENESS_MS = 2_000

_EARLY, _AGAIN, _BACK, _LATE, _LEFT = "early", "again", "went back", "late", "left"
"""What must not be."""


def time_of(number: int) -> int:
    """In ms. In the order of numbers, but for a disorder of at most DISORDER_MS."""
    return TICK_MS * number - 700 * (7 * number % 5)


def _wide_time_of(number: int) -> int:
    return TICK_MS * number - 3_000 * (7 * number % 5)


def _late_time_of(number: int) -> int:
    """Every sixth number is far behind."""
    return time_of(number) - (APART_MS if number % 6 == 5 else 0)


class Watching(KeyedOperator):
    """Sees to it that event time never goes back, be it over a restore: what it was at a barrier is part of state."""

    _fired_at_once: ClassVar[int] = 2

    _watermarks: OperatorListState[Any] = OperatorListState(object, mode="union", name="watermarks")
    """(subtask, parallelism, watermark), of all subtasks."""
    _before_ms = NO_WATERMARK

    def open(self) -> None:
        where, restored = self.context, self._watermarks.get()
        own = [ms for index, of, ms in restored if (index, of) == (where.subtask_index, where.parallelism)]
        self._before_ms = own[0] if own else min((ms for _, _, ms in restored), default=NO_WATERMARK)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._watermarks.update([(self.context.subtask_index, self.context.parallelism, self.watermark)])

    def look(self, out: Collector) -> None:
        """To be called with each record and timer."""
        if self.watermark < self._before_ms:
            out.collect((_BACK, self.watermark, self._before_ms))
        self._before_ms = self.watermark

    def look_at_record(self, record: Any, out: Collector) -> None:
        self.look(out)
        if self.timestamp <= self.watermark:
            out.collect((_LATE, self.key, record))

    def look_at_timer(self, timer: KeyedTimer, out: Collector) -> None:
        self.look(out)
        if not self.timestamp == timer.time_ms <= self.watermark:
            out.collect((_EARLY, self.key, timer.time_ms))

    def on_end(self, out: Collector) -> None:
        for key in self.keys():
            out.collect((_LEFT, key))


class Reminders(Watching):
    """(key, number, due) when event time has come to `due`, unless the key's next number is a multiple of three."""

    due = MapState(int, int)

    def __init__(self, keys: int) -> None:
        self._step = keys

    def process(self, number: int, out: Collector) -> None:
        self.look_at_record(number, out)
        timer = self.timers.at_event_time(due_of(number, self._step), (number,))
        self.timers.at_event_time(timer.time_ms, (number,))  # is the same one
        self.timers.delete(self.timers.at_event_time(timer.time_ms + 1, (number,)))
        self.due.put(number, timer.time_ms)
        before = number - self._step
        if number % 3 == 0 and before >= 0:
            if not self.timers.delete_event_time(due_of(before, self._step), (before,)):
                out.collect((_EARLY, self.key, before))
            self.due.remove(before)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        self.look_at_timer(timer, out)
        (number,) = timer.namespace
        if self.due.get(number) != timer.time_ms:
            out.collect((_AGAIN, self.key, number))
        self.due.remove(number)
        out.collect((self.key, number, timer.time_ms))


def due_of(number: int, step: int) -> int:
    """When its reminder is due: not before the key's next number has come."""
    return time_of(number) + TICK_MS * step + DISORDER_MS


class Sums(Watching):
    """(key, start, how many, sum) of each window of WINDOW_MS; both inputs go into the same windows."""

    inputs = 2
    sums: MapState[int, Any] = MapState(int, object)
    """(how many, sum) by the start of the window."""

    def process(self, number: int, out: Collector) -> None:
        self.look_at_record(number, out)
        start = self.timestamp - self.timestamp % WINDOW_MS
        count, total = self.sums.get(start) or (0, 0)
        self.sums.put(start, (count + 1, total + number))
        self.timers.at_event_time(start + WINDOW_MS - 1, (start, start + WINDOW_MS))

    def process_2(self, number: int, out: Collector) -> None:
        self.process(number, out)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        self.look_at_timer(timer, out)
        start, end = timer.namespace
        held = self.sums.get(start)
        if held is None or end != timer.time_ms + 1:
            out.collect((_AGAIN, self.key, start))
        else:
            out.collect((self.key, start, *held))
        self.sums.remove(start)


class Clocked(KeyedOperator):
    """Keeps numbers until its clock is so much further, or data ends."""

    kept = ListState(int)
    due = ValueState(int, default=0)

    def process(self, number: int, out: Collector) -> None:
        self.kept.add(number)
        if not self.due.value():
            timer = self.timers.at_processing_time(self.processing_time() + 1_500)
            self.due.update(timer.time_ms)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        if timer.time_ms != self.due.value():
            out.collect((_AGAIN, self.key, timer.time_ms))
        if self.processing_time() < timer.time_ms:
            out.collect((_EARLY, self.key, timer.time_ms))
        self._emit(out)

    def on_end(self, out: Collector) -> None:
        for key in self.keys():
            due_ms = self.due.value()
            if bool(due_ms) != self.timers.delete_processing_time(due_ms):
                out.collect((_LEFT, key))
            self._emit(out)

    def _emit(self, out: Collector) -> None:
        for number in self.kept.get():
            out.collect((self.key, number))
        self.kept.clear()
        self.due.clear()


# ---- the jobs


def _one_source(env: StreamEnvironment, workload: Workload, name: str = "numbers", share: int = 1) -> Any:
    return env.from_collection(
        range(workload.records // share), records_per_second=workload.records_per_second, name=name, parallelism=1
    )


def _everywhere(env: StreamEnvironment, workload: Workload) -> Any:
    """The first subtask has the smallest numbers, and ends first."""
    numbers = Ragged(workload.records, workload.records_per_second)
    return env.from_source(numbers, name="numbers", parallelism=workload.parallelism)


def _timed(stream: Any, time: Any = time_of, delay_ms: int = DISORDER_MS) -> Any:
    return stream.assign_timestamps(time, watermarks=bounded_out_of_orderness(delay_ms))


def _by_key(stream: Any, workload: Workload) -> Any:
    keys = workload.keys
    return stream.key_by(lambda number: _key(number, keys))


def _reminders(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keyed = _by_key(_timed(_one_source(env, workload)), workload)
    keyed.process(Reminders(workload.keys), name="reminders").collect(name=OUTPUT)
    return env


def _apart(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    one = _by_key(_timed(_everywhere(env, workload)), workload)
    other = _timed(_one_source(env, workload, "behind", 2), lambda number: time_of(number) - APART_MS)
    one.connect(_by_key(other, workload)).process(Sums, name="sums").collect(name=OUTPUT)
    return env


def _windows(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    windows = _by_key(_timed(_everywhere(env, workload)), workload).window(sliding(WINDOW_MS, SLIDE_MS))
    windows.process(_whole, name="windows").collect(name=OUTPUT)
    return env


def _sessions(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    timed = _timed(_one_source(env, workload), _wide_time_of, WIDE_DISORDER_MS)
    _by_key(timed, workload).window(session(GAP_MS)).process(_whole, name="sessions").collect(name=OUTPUT)
    return env


def _latecomers(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    timed = _timed(_everywhere(env, workload), _late_time_of)
    windows = _by_key(timed, workload).window(tumbling(WINDOW_MS)).allowed_lateness(LATENESS_MS).discarding()
    results = windows.process(_each, name="windows")
    on_time = results.map(lambda number: (number, number % 6 == 5), name="on time")
    late = results.late.map(lambda number: (number, number % 6 == 5), name="too late")
    on_time.union(late).collect(name=OUTPUT)
    return env


def _clocked(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    _by_key(_one_source(env, workload), workload).process(Clocked, name="clocked").collect(name=OUTPUT)
    return env


def _whole(key: int, window: TimeWindow, numbers: list[int], out: Collector) -> None:
    out.collect((key, window.start, window.end, *sorted(numbers)))


def _each(key: int, window: TimeWindow, numbers: list[int], out: Collector) -> None:
    for number in numbers:
        out.collect(number)


# ---- what comes of them


def _reminded(workload: Workload) -> list[Any]:
    step, records = workload.keys, workload.records
    return [
        (_key(number, step), number, due_of(number, step))
        for number in range(records)
        if (number + step) % 3 or number + step >= records
    ]


def _summed(workload: Workload) -> list[Any]:
    held: dict[tuple[int, int], list[int]] = {}
    events = [(number, time_of(number)) for number in range(workload.records)]
    events += [(number, time_of(number) - APART_MS) for number in range(workload.records // 2)]
    for number, time_ms in events:
        start = time_ms - time_ms % WINDOW_MS
        held.setdefault((_key(number, workload.keys), start), []).append(number)
    return [(key, start, len(numbers), sum(numbers)) for (key, start), numbers in held.items()]


def _slid(workload: Workload) -> list[Any]:
    held: dict[tuple[int, int], list[int]] = {}
    for number in range(workload.records):
        last = time_of(number) - time_of(number) % SLIDE_MS
        for start in range(last, last - WINDOW_MS, -SLIDE_MS):
            held.setdefault((_key(number, workload.keys), start), []).append(number)
    return [(key, start, start + WINDOW_MS, *numbers) for (key, start), numbers in held.items()]


def _gathered(workload: Workload) -> list[Any]:
    found: list[Any] = []
    for place in range(workload.keys):
        numbers = range(place, workload.records, workload.keys)
        key = _key(place, workload.keys)
        found += [(key, start, end, *sorted(held)) for start, end, held in _sessions_of(numbers)]
    return found


def _sessions_of(numbers: range) -> Iterator[tuple[int, int, list[int]]]:
    held: list[int] = []
    for number in sorted(numbers, key=_wide_time_of):
        if held and _wide_time_of(number) > _wide_time_of(held[-1]) + GAP_MS:
            yield _wide_time_of(held[0]), _wide_time_of(held[-1]) + GAP_MS, held
            held = []
        held.append(number)
    if held:
        yield _wide_time_of(held[0]), _wide_time_of(held[-1]) + GAP_MS, held


def _kept(workload: Workload) -> list[Any]:
    return [(_key(number, workload.keys), number) for number in range(workload.records)]


TIMED: dict[str, Topology] = {
    each.name: each
    for each in (
        Topology("reminders", _reminders, _reminded, tells_at_the_end=True),
        Topology("apart", _apart, _summed, tells_at_the_end=True),
        Topology("windows", _windows, _slid, tells_at_the_end=True),
        Topology("sessions", _sessions, _gathered, tells_at_the_end=True),
        Topology("latecomers", _latecomers, lambda work: [(n, n % 6 == 5) for n in range(work.records)]),
        Topology("clocked", _clocked, _kept, counts_up=True),
    )
}
"""By name."""
