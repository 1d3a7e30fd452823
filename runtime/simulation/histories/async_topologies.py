"""Async topologies: jobs whose operators ask an outside service. Their output is recomputed at once.

`asked` has a counter per key, a hot key, and hardly any room in flight; `bursts` gets more at a time than it may take;
`answered` keeps the order of its input over retries, and `silent` where some are never answered; `reminded` has timers
that are coroutines; `gathered` has windows behind it, for which no record may be late; `batched` asks for several
records at once; `refused` gives records up; `paid` has idempotency keys of its own, and a second operator with
coroutines behind the first; `waking` has timers of the clock.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from ....actors.operators.collector import Collector
from ....actors.operators.operator import Operator
from ....actors.windows.window import TimeWindow
from ....actors.windows.window_makers import tumbling
from ...api.environment import StreamEnvironment
from .async_operators import (
    PATIENT,
    TRIES,
    Answered,
    Asked,
    AskedInAnyOrder,
    Batched,
    Ordinal,
    Patient,
    Placed,
    Refusing,
    Reminding,
    Unordered,
    Waking,
    service,
)
from .event_times import WINDOW_MS, time_of, timed
from .keyed_numbers import by_key, everywhere, key_of, with_keys
from .timed_topologies import due_of
from .topologies import OUTPUT, Topology, Workload, by_name, environment, one_source

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


_asking = partial(Topology, answer_ms=2_000.0, outside=_ledger)

ASYNC = by_name(
    _asking("asked", _asked, _in_turn, counts_up=True),
    _asking("bursts", _bursts, _in_fives, counts_up=True),
    _asking("answered", _answered, _in_place, counts_up=True),
    _asking("silent", _silent, _in_place, counts_up=True),
    _asking("reminded", _reminded, _reminders, tells_at_the_end=True),
    _asking("gathered", _gathered, _windows, tells_at_the_end=True),
    _asking("batched", _batched, _of_each, counts_up=True),
    _asking("refused", _refused, _given_up, counts_up=True),
    _asking("paid", _paid, _paid_and_asked, counts_up=True, outside=_payments),
    _asking("waking", _waking, with_keys, counts_up=True),
)
