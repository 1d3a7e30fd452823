"""Async topologies: jobs whose operators ask an outside service. Their output is recomputed at once.

`asked` has a counter per key, a hot key, and hardly any room in flight; `bursts` gets more at a time than it may take;
`answered` keeps the order of its input over retries, and `silent` where some are never answered; `reminded` has timers
that are coroutines; `gathered` has windows behind it, for which no record may be late; `batched` asks for several
records at once; `refused` gives records up; `paid` has idempotency keys of its own, and a second operator with
coroutines behind the first; `waking` has timers of the clock.

An operator that sees what must not be says so in a record of its own, which no expected output holds: see `Asking`.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Multiset
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ....actors.async_calls.retry import Retry
from ....actors.async_calls.settings import AsyncSettings
from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.operator import Operator
from ....actors.operators.timers import KeyedTimer
from ....actors.windows.window import TimeWindow
from ....actors.windows.window_makers import tumbling
from ....messages import CheckpointId
from ....state import ListState, MapState, OperatorListState, ValueState
from ...api.environment import StreamEnvironment
from ..world.fake_service import FakeService, ServiceError
from .event_times import WINDOW_MS, by_key, everywhere, key_of, one_source, time_of, timed
from .timed_topologies import Onward, due_of
from .topologies import OUTPUT, Topology, Workload, environment

_AGAIN, _OTHER_KEY, _TOO_OFTEN, _MIXED, _LEFT, _ON_TIMER = (
    "asked again", "other key", "too often", "mixed", "left", "timer",
)  # fmt: skip
"""What must not be, but for the last."""

PATIENT = Retry(attempts=200, first_delay_ms=40, max_delay_ms=400)
TRIES = 3
"""Of a record that is given up."""


def service(name: str = "service", **changes: Any) -> FakeService:
    """One that has a bad day, and answers with three times the number."""
    usual: dict[str, Any] = {"error_rate": 0.15, "lost_rate": 0.1, "doubled_rate": 0.1, "delay_ms": (5, 900)}
    return FakeService(_answer, name=name, **(usual | changes))


def _answer(request: Any) -> Any:
    return [3 * number for number in request] if isinstance(request, list | tuple) else 3 * request


class Asking(Operator):
    """Keeps account of what it asks, in state of its own: what was asked at a barrier must be asked with the same key
    after a restore, and not more often than is allowed; what was answered must not be asked any more.
    """

    _answered: OperatorListState[Any] = OperatorListState(object, mode="union", name="answered")
    """Idempotency keys."""
    _begun: OperatorListState[Any] = OperatorListState(object, mode="union", name="asked")
    """(what is asked, idempotency key, tries that have failed)"""

    def open(self) -> None:
        self._paid: set[str] = set(self._answered.get())
        self._known = {what: (key, failures) for what, key, failures in self._begun.get()}
        self._under_way: dict[Any, tuple[str, int]] = {}
        self._new: list[str] = []
        self._wrong: list[Any] = []
        """To be said by a record that is done: what others emit may be taken back."""

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        """What was restored and has not begun again is as it was."""
        self._answered.update(sorted({*self._paid, *self._new}))
        self._begun.update([(what, *held) for what, held in {**self._known, **self._under_way}.items()])

    @contextmanager
    def asks(self, what: Any, out: Collector) -> Iterator[None]:
        """Around all that is done for a record, a batch or a timer; nothing may be awaited behind it."""
        key = self.idempotency_key
        if key in self._paid:
            self._wrong.append((_AGAIN, what, key))
        known_as, failures = self._under_way.get(what) or self._known.pop(what, (key, 0))
        if known_as != key:
            self._wrong.append((_OTHER_KEY, what, known_as, key))
        if failures >= self.async_settings.retry.attempts:
            self._wrong.append((_TOO_OFTEN, what, failures))
        self._under_way[what] = known_as, failures
        try:
            yield
        except BaseException:
            self._under_way[what] = known_as, failures + 1
            raise
        self._new.append(self._under_way.pop(what)[0])
        self._say(out)

    def on_end(self, out: Collector) -> None:
        self._say(out)

    def _say(self, out: Collector) -> None:
        for each in self._wrong:
            out.collect(each)
        self._wrong.clear()


class AskingByKey(Asking, KeyedOperator):
    """The same with keys, which must stay what they are over an await."""

    async def ask(self, service: FakeService, number: int, out: Collector) -> int:
        """Ask, and see whether all is as it was before."""
        before = self.key, self.idempotency_key
        answer: int = await service.call(number, key=self.idempotency_key)
        if before != (self.key, self.idempotency_key):
            out.collect((_MIXED, number, before, self.key, self.idempotency_key))
        return answer


class Asked(AskingByKey):
    """(key, number, answer, n, n) for the n-th number of its key, which must come in its turn: the numbers of a key are
    counted before it asks, and behind.
    """

    async_settings = AsyncSettings(max_in_flight=2, retry=PATIENT)
    begun = ValueState(int, default=0)
    count = ValueState(int, default=0)
    numbers = ListState(int)

    _in_turn = True

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def open(self) -> None:  # type: ignore[override]
        super().open()
        await asyncio.sleep(0.2)

    async def process(self, number: int, out: Collector) -> None:
        with self.asks(number, out):
            self.begun.update(self.begun.value() + 1)
            self.numbers.add(number)
            answer = await self.ask(self._service, number, out)
            self.count.update(self.count.value() + 1)
            seen = list(self.numbers.get())
            if len(seen) != self.count.value() or (self._in_turn and seen != sorted(seen)):
                out.collect((_MIXED, number, seen))
            out.collect((self.key, number, answer, self.begun.value(), self.count.value()))

    async def close(self) -> None:
        await asyncio.sleep(0.05)


class AskedInAnyOrder(Asked):
    """The same where the numbers of a key come by way of several subtasks."""

    _in_turn = False


class Answered(Asking):
    """(number, answer), in the order of the input."""

    async_settings = AsyncSettings(max_in_flight=5, retry=PATIENT, ordered=True)

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def process(self, number: int, out: Collector) -> None:
        with self.asks(number, out):
            answer = await self._service.call(number, key=self.idempotency_key)
            out.collect((number, answer))


class Unordered(Answered):
    """The same as they come."""

    async_settings = AsyncSettings(max_in_flight=3, retry=PATIENT, ordered=False)


class Patient(Answered):
    """Some requests are never answered: those are cancelled, and tried again."""

    async_settings = AsyncSettings(max_in_flight=3, retry=PATIENT, ordered=True, timeout_ms=1_000)


class Placed(KeyedOperator):
    """(place, record): the records of the only key, counted."""

    place = ValueState(int, default=-1)

    def process(self, record: Any, out: Collector) -> None:
        self.place.update(self.place.value() + 1)
        out.collect((self.place.value(), record))


class Reminding(AskingByKey):
    """(key, number, answer, due) when event time has come to `due`, unless the key's next number is a multiple of 3. It
    asks with each number, and again with each timer.
    """

    async_settings = AsyncSettings(max_in_flight=4, retry=PATIENT)
    due = MapState(int, int)
    fired = ValueState(int, default=0)

    def __init__(self, keys: int, service: FakeService) -> None:
        self._step = keys
        self._service = service

    async def process(self, number: int, out: Collector) -> None:
        with self.asks(number, out):
            if self.timestamp != time_of(number):
                out.collect((_MIXED, number, self.timestamp))
            if overdue := [each for each, due_ms in self.due.items() if due_ms <= self.watermark]:
                out.collect((_MIXED, number, self.watermark, overdue))
            timer = self.timers.at_event_time(due_of(number, self._step), (number,))
            self.timers.delete(self.timers.at_event_time(timer.time_ms + 1, (number,)))
            self.due.put(number, timer.time_ms)
            before = number - self._step
            if number % 3 == 0 and before >= 0:
                if not self.timers.delete_event_time(due_of(before, self._step), (before,)):
                    out.collect((_LEFT, self.key, before))
                self.due.remove(before)
            await self.ask(self._service, number, out)

    async def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        (number,) = timer.namespace
        what = _ON_TIMER, number
        with self.asks(what, out):
            self.fired.update(self.fired.value() + 1)
            answer = await self.ask(self._service, -number, out)
            if self.due.get(number) != timer.time_ms or self.timestamp != timer.time_ms:
                out.collect((_MIXED, self.key, number, self.due.get(number), self.timestamp))
            self.due.remove(number)
            out.collect((self.key, number, answer, timer.time_ms, self.fired.value()))

    def on_end(self, out: Collector) -> None:
        super().on_end(out)
        for key in self.keys():
            left = self.due.keys()
            out.extend((_LEFT, key, number) for number in left)


class Ordinal(Onward):
    """Each result, whose last field says which one of its key it is; they must come in turn."""

    count = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.count.update(self.count.value() + 1)
        if record[-1] != self.count.value():
            out.collect((_MIXED, record, self.count.value()))
        super().process(record[:-1], out)

    def on_end(self, out: Collector) -> None:
        """Its counters are there at the end."""


class Batched(Asking):
    """(number, answer), asked for several at a time."""

    async_settings = AsyncSettings(max_in_flight=2, retry=PATIENT, batch_size=3, batch_wait_ms=700)

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def process_batch(self, numbers: list[int], out: Collector) -> None:
        what = tuple(numbers)
        with self.asks(what, out):
            for number, answer in zip(numbers, await self._service.call(what, key=self.idempotency_key), strict=True):
                out.collect((number, answer))


class Refusing(AskingByKey):
    """(number, n): n numbers of its key were not refused. Each number that can be divided by four is, after TRIES."""

    async_settings = AsyncSettings(
        max_in_flight=3, retry=Retry(attempts=TRIES, first_delay_ms=150, on=(ServiceError,)), on_error="errors"
    )
    count = ValueState(int, default=0)
    last = ValueState(int, default=-1)

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def process(self, number: int, out: Collector) -> None:
        with self.asks(number, out):
            self.count.update(self.count.value() + 1)
            await self.ask(self._service, number, out)
            if number % 4 == 0:
                raise ServiceError("no")
            out.collect((number, self.count.value()))


class Waking(AskingByKey):
    """Keeps numbers until its clock is so much further, asks for all of them, and emits them one by one."""

    async_settings = AsyncSettings(max_in_flight=3, retry=PATIENT)
    kept = ListState(int)
    due = ValueState(int, default=0)

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def process(self, number: int, out: Collector) -> None:
        with self.asks(number, out):
            await self.ask(self._service, number, out)
            self.kept.add(number)
            if not self.due.value():
                timer = self.timers.at_processing_time(self.processing_time() + 1_200)
                self.due.update(timer.time_ms)

    async def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        if timer.time_ms != self.due.value():
            out.collect((_AGAIN, self.key, timer.time_ms, self.due.value()))
        self.due.clear()
        numbers = list(self.kept.get())
        self.kept.clear()
        await self.ask(self._service, -1 - numbers[0], out)
        for number in numbers:
            out.collect((self.key, number))

    def on_end(self, out: Collector) -> None:
        super().on_end(out)
        for key in self.keys():
            due_ms = self.due.value()
            if bool(due_ms) != self.timers.delete_processing_time(due_ms):
                out.collect((_LEFT, key, due_ms))
            for number in self.kept.get():
                out.collect((key, number))
            self.kept.clear()
            self.due.clear()


# ---- the jobs


def _asked(workload: Workload) -> StreamEnvironment:
    """Half of the numbers are of one key."""
    env = environment(workload)
    keyed = one_source(env, workload).key_by(lambda number: hot_key_of(number, workload.keys))
    keyed.process(Asked(service()), name="asked").collect(name=OUTPUT)
    return env


def hot_key_of(number: int, keys: int) -> int:
    """Half of the numbers are of the first key."""
    return key_of(0 if number % 2 else number // 2, keys)


def _bursts(workload: Workload) -> StreamEnvironment:
    """Numbers come five at a time, and more of them than it may take."""
    env = environment(workload)
    fives = one_source(env, workload).flat_map(_five, name="fives", parallelism=1)
    asked = fives.key_by(lambda number: hot_key_of(number, workload.keys)).process(Asked(service()), name="asked")
    asked.async_settings(max_in_flight=1).collect(name=OUTPUT)
    return env


def _five(number: int) -> Iterable[int]:
    return range(number - 4, number + 1) if number % 5 == 4 else ()


def _answered(workload: Workload) -> StreamEnvironment:
    return _in_order(workload, Answered(service()))


def _silent(workload: Workload) -> StreamEnvironment:
    return _in_order(workload, Patient(service(silent_rate=0.2)))


def _in_order(workload: Workload, operator: Operator) -> StreamEnvironment:
    env = environment(workload)
    answers = one_source(env, workload).process(operator, name="answered", parallelism=1)
    answers.key_by(lambda _: 0).process(Placed, name="placed").collect(name=OUTPUT)
    return env


def _reminded(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keyed = by_key(timed(one_source(env, workload)), workload)
    results = keyed.process(Reminding(workload.keys, service()), name="reminded")
    results.key_by(lambda each: each[0]).process(Ordinal, name="onward").collect(name=OUTPUT)
    return env


def _gathered(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    answers = timed(everywhere(env, workload)).rebalance().process(Unordered(service()), name="answered")
    windows = answers.key_by(lambda each: key_of(each[0], workload.keys)).window(tumbling(WINDOW_MS))
    whole = windows.process(_whole, name="windows")
    late = whole.late.map(lambda each: ("late", *each), name="late")
    whole.union(late).collect(name=OUTPUT)
    return env


def _batched(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    one_source(env, workload).rebalance().process(Batched(service()), name="batched").collect(name=OUTPUT)
    return env


def _refused(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    asking = Refusing(service(error_rate=0.0, lost_rate=0.0))
    done = by_key(one_source(env, workload), workload).process(asking, name="refused")
    errors = done.errors.map(lambda each: (each.record, each.tries, each.key), name="given up")
    done.union(errors).collect(name=OUTPUT)
    return env


def _paid(workload: Workload) -> StreamEnvironment:
    env = environment(workload)

    async def pay(number: int) -> int:
        answer: int = await service("bank").call(number, key=f"payment {number}")
        return answer

    paid = one_source(env, workload).rebalance().map(pay, name="paid").async_settings(max_in_flight=1, retry=PATIENT)
    twice = paid.key_by(lambda amount: key_of(amount // 3, workload.keys))
    asked = twice.process(AskedInAnyOrder(service()), name="asked").async_settings(max_in_flight=5)
    asked.map(lambda each: each[:3], name="plain").collect(name=OUTPUT)
    return env


def _waking(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    by_key(one_source(env, workload), workload).process(Waking(service()), name="waking").collect(name=OUTPUT)
    return env


def _whole(key: int, window: TimeWindow, answers: list[Any], out: Collector) -> None:
    out.collect((key, window.start, *sorted(answers)))


# ---- what comes of them


def _in_turn(workload: Workload) -> list[Any]:
    seen: dict[int, int] = {}
    found = []
    for number in range(workload.records):
        key = hot_key_of(number, workload.keys)
        seen[key] = seen.get(key, 0) + 1
        found.append((key, number, 3 * number, seen[key], seen[key]))
    return found


def _in_fives(workload: Workload) -> list[Any]:
    return _in_turn(replace(workload, records=workload.records - workload.records % 5))


def _in_place(workload: Workload) -> list[Any]:
    return [(number, (number, 3 * number)) for number in range(workload.records)]


def _reminders(workload: Workload) -> list[Any]:
    step, records = workload.keys, workload.records
    return [
        (key_of(number, step), number, -3 * number, due_of(number, step))
        for number in range(records)
        if (number + step) % 3 or number + step >= records
    ]


def _windows(workload: Workload) -> list[Any]:
    held: dict[tuple[int, int], list[Any]] = {}
    for number in range(workload.records):
        start = time_of(number) - time_of(number) % WINDOW_MS
        held.setdefault((key_of(number, workload.keys), start), []).append((number, 3 * number))
    return [(key, start, *sorted(answers)) for (key, start), answers in held.items()]


def _given_up(workload: Workload) -> list[Any]:
    seen: dict[int, int] = {}
    found: list[Any] = []
    for number in range(workload.records):
        key = key_of(number, workload.keys)
        if number % 4 == 0:
            found.append((number, TRIES, key))
        else:
            seen[key] = seen.get(key, 0) + 1
            found.append((number, seen[key]))
    return found


def _of_each(workload: Workload) -> list[Any]:
    return [(number, 3 * number) for number in range(workload.records)]


def _keyed(workload: Workload) -> list[Any]:
    return [(key_of(number, workload.keys), number) for number in range(workload.records)]


def _paid_and_asked(workload: Workload) -> list[Any]:
    return [(key_of(number, workload.keys), 3 * number, 9 * number) for number in range(workload.records)]


def _ledger(workload: Workload, is_whole: bool) -> str:
    """What is wrong with what the service has done; nothing, if all is right. A key stands for one request."""
    services = service(), service("bank")
    if reused := [key for each in services for key in each.keys_reused()]:
        return f"an idempotency key came with two requests: {reused[0]}"
    return ""


def _payments(workload: Workload, is_whole: bool) -> str:
    """Each number was paid, and once."""
    payments = Multiset(number for numbers in service("bank").effects().values() for number in numbers)
    if twice := [number for number, times in payments.items() if times > 1]:
        return f"paid more than once: {twice}"
    if is_whole and (missing := set(range(workload.records)) - payments.keys()):
        return f"never paid: {sorted(missing)}"
    return _ledger(workload, is_whole)


ASYNC: dict[str, Topology] = {
    each.name: replace(each, answer_ms=2_000.0, outside=_payments if each.name == "paid" else _ledger)
    for each in (
        Topology("asked", _asked, _in_turn, counts_up=True),
        Topology("bursts", _bursts, _in_fives, counts_up=True),
        Topology("answered", _answered, _in_place, counts_up=True),
        Topology("silent", _silent, _in_place, counts_up=True),
        Topology("reminded", _reminded, _reminders, tells_at_the_end=True),
        Topology("gathered", _gathered, _windows, tells_at_the_end=True),
        Topology("batched", _batched, _of_each, counts_up=True),
        Topology("refused", _refused, _given_up, counts_up=True),
        Topology("paid", _paid, _paid_and_asked, counts_up=True),
        Topology("waking", _waking, _keyed, counts_up=True),
    )
}
"""By name."""
