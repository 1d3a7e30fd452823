"""Timed topologies: jobs with timers and watermarks, by hand. The output that each must commit is recomputed at once.

Nothing is late, so the output is determined. `reminders` has timers that are set, set again and deleted; `apart` has
windows by hand over sources whose clocks are far apart, and of which one has nothing to give at first; `quiet` has a
source that falls silent; `clocked` has timers of the clock, which may fire at any time or never.

An operator that sees what must not be says so in a record of its own, which no expected output holds: see `Watching`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ....actors.flow.elements import NO_WATERMARK
from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.timers import KeyedTimer
from ....messages import CheckpointId
from ....state import ListState, MapState, OperatorListState, ValueState
from ...api.environment import StreamEnvironment
from .event_times import DISORDER_MS, TICK_MS, WINDOW_MS, time_behind, time_of, timed
from .keyed_numbers import Ragged, by_key, everywhere, key_of, with_keys
from .topologies import OUTPUT, Topology, Workload, by_name, environment, one_source

IDLE_AFTER_MS = 1_000

_EARLY, _AGAIN, _BACK, _LATE, _LEFT = "early", "again", "went back", "late", "left"
"""What must not be."""


class Watching(KeyedOperator):
    """Sees to it that event time never goes back, be it over a restore: what it was at a barrier is part of state."""

    _fired_at_once: ClassVar[int] = 1

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
        if self.timestamps is not None and self.timestamp <= self.watermark:  # what comes of the end has no time
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


class OneSums(Sums):
    """The same of one input."""

    inputs = 1


class Onward(Watching):
    """Each result, as it is: it must come before the watermark of its time."""

    def process(self, record: Any, out: Collector) -> None:
        self.look_at_record(record, out)
        out.collect(record)


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


class Waiting(Ragged):
    """Has nothing to give for the first `wait_ms` of each attempt; of several subtasks, of the whole job's rate."""

    def __init__(self, records: int, records_per_second: float, wait_ms: float) -> None:
        super().__init__(records, records_per_second)
        self.wait_ms = wait_ms

    def open(self) -> None:
        super().open()
        self._begins_ms = self.context.clock.now_ms() + self.wait_ms

    def poll(self) -> Any:
        return super().poll() if self._left_ms() <= 0 else None

    def poll_delay_ms(self) -> float | None:
        left_ms = self._left_ms()
        return left_ms if left_ms > 0 else super().poll_delay_ms()

    def _left_ms(self) -> float:
        return self._begins_ms - self.context.clock.now_ms()


class Silent(Ragged):
    """One number at first, and no other one; it ends when the other sources do."""

    def __init__(self, lasts_ms: float) -> None:
        super().__init__(1, 1_000.0)
        self.lasts_ms = lasts_ms

    def open(self) -> None:
        super().open()
        self._ends_ms = self.context.clock.now_ms() + self.lasts_ms

    def poll(self) -> Any:
        return super().poll() if self.left or self.context.clock.now_ms() >= self._ends_ms else None

    def poll_delay_ms(self) -> float | None:
        return super().poll_delay_ms() if self.left else self._ends_ms - self.context.clock.now_ms()


# ---- the jobs


def _reminders(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keyed = by_key(timed(one_source(env, workload)), workload)
    keyed.process(Reminders(workload.keys), name="reminders").collect(name=OUTPUT)
    return env


def _apart(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    behind = Waiting(workload.records // 2, workload.records_per_second, workload.duration_ms / 4)
    other = timed(env.from_source(behind, name="behind", parallelism=1), time_behind)
    both = by_key(timed(everywhere(env, workload)).union(other), workload)
    sums = both.process(OneSums, name="sums")
    sums.key_by(lambda each: each[0]).process(Onward, name="onward").collect(name=OUTPUT)
    return env


def _quiet(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    one = by_key(timed(one_source(env, workload)), workload)
    silent = env.from_source(Silent(workload.duration_ms), name="silent", parallelism=1)
    # in the source's own task: over a slow link its one record might come when nobody waits for it, and be late
    other = by_key(timed(silent, idle_after_ms=IDLE_AFTER_MS, parallelism=1), workload)
    one.connect(other).process(Sums, name="sums").collect(name=OUTPUT)
    return env


def _clocked(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    by_key(one_source(env, workload), workload).process(Clocked, name="clocked").collect(name=OUTPUT)
    return env


# ---- what comes of them


def _reminded(workload: Workload) -> list[Any]:
    step, records = workload.keys, workload.records
    return [
        (key_of(number, step), number, due_of(number, step))
        for number in range(records)
        if (number + step) % 3 or number + step >= records
    ]


def _apart_sums(workload: Workload) -> list[Any]:
    events = [(number, time_of(number)) for number in range(workload.records)]
    return _summed(workload, [*events, *((number, time_behind(number)) for number in range(workload.records // 2))])


def _quiet_sums(workload: Workload) -> list[Any]:
    return _summed(workload, [*((number, time_of(number)) for number in range(workload.records)), (0, time_of(0))])


def _summed(workload: Workload, events: list[tuple[int, int]]) -> list[Any]:
    held: dict[tuple[int, int], list[int]] = {}
    for number, time_ms in events:
        start = time_ms - time_ms % WINDOW_MS
        held.setdefault((key_of(number, workload.keys), start), []).append(number)
    return [(key, start, len(numbers), sum(numbers)) for (key, start), numbers in held.items()]


TIMED = by_name(
    Topology("reminders", _reminders, _reminded, tells_at_the_end=True),
    Topology("apart", _apart, _apart_sums, tells_at_the_end=True),
    Topology("quiet", _quiet, _quiet_sums, tells_at_the_end=True, emits_meanwhile=True),
    Topology("clocked", _clocked, with_keys, counts_up=True),
)
