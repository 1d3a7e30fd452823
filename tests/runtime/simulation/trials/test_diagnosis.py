"""What the report of a failed history says about its cause: order, chance of the job's own, or faults."""

from __future__ import annotations

import functools
import itertools
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from understudy import (
    END,
    Collector,
    KeyedOperator,
    KeyedTimer,
    Operator,
    OperatorListState,
    ProcessWindowFunction,
    Source,
    StreamEnvironment,
    Ttl,
    TwoPhaseCommitSink,
    ValueState,
    count_window,
)
from understudy.actors.windows.window import Window
from understudy.testing import FakeService, FreezeProcess, KillProcess, Rescale, TransactionalLog, assert_exactly_once


def _env() -> StreamEnvironment:
    return StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)


class Latest(KeyedOperator):
    """With each record the one that came before it, from whichever input."""

    latest = ValueState(int, default=-1)

    def process(self, record: int, out: Any) -> None:
        out.collect((self.latest.value(), record))
        self.latest.update(record)


def _racing() -> StreamEnvironment:
    env = _env()
    left = env.from_collection(range(10), parallelism=1)
    right = env.from_collection(range(100, 110), parallelism=1)
    left.union(right).key_by(lambda number: 0).process(Latest).collect(name="out")
    return env


def test_an_order_race_is_called_one_and_not_a_freeze() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(_racing, faults=[FreezeProcess(at_ms=2_000, for_ms=900, who=0)], histories=10)
    told = str(caught.value)
    assert told.startswith("exactly-once: sink 'out' ")
    assert "0 recoveries: order. " in told
    assert "No\nfailure is needed for it. Make the result the same in every order" in told
    assert "coroutines" not in told


class Waiting(Operator):
    """Its answers take time."""

    async def process(self, record: int, out: Any) -> None:
        await SLOW.call(record)
        out.collect(record)


SLOW = FakeService(lambda record: record, name="slow", delay_ms=(5, 300))


def _overtaking() -> StreamEnvironment:
    env = _env()
    asked = (
        env.from_collection(range(8), records_per_second=20, parallelism=1)
        .process(Waiting, name="ask")
        .async_settings(ordered=False)
    )
    asked.key_by(lambda number: 0).process(Latest).collect(name="out")
    return env


def test_coroutines_whose_results_overtake_each_other_are_named_where_only_the_order_matters() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(_overtaking, faults=[], histories=2)
    told = " ".join(str(caught.value).split())
    assert "0 recoveries: order. " in told
    assert "coroutines of 'ask' leave as they come" in told
    assert "write .async_settings(ordered=True) behind it" in told


class Unsteady(Operator):
    """Emits what `draw` gives."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        self.draw = draw

    def process_batch(self, batch: Any, out: Any) -> None:
        for record in batch:
            out.collect((record, self.draw()))


_counter = itertools.count()


def _counted() -> int:
    return next(_counter)


def _numbered(memo: list[int] = []) -> int:  # noqa: B006 - on purpose
    memo.append(1)
    return len(memo)


@pytest.mark.parametrize(
    ("draw", "cause"),
    [
        (time.time_ns, "attribute 'draw' of Unsteady calls time.time_ns, which gives something else in each run"),
        (lambda: random.random(), r"its lambda calls random.random \(\S+test_diagnosis.py:\d+\), which"),
        (lambda: str(uuid.uuid4()), r"its lambda calls uuid.uuid4 \(\S+test_diagnosis.py:\d+\), which"),
        (_counted, "_counted changes the count '_counter' of your program"),
        (_numbered, "_numbered changes the default list 'memo' of your program"),
    ],
    ids=["real time", "random numbers", "ids", "a global variable", "a default"],
)
def test_a_job_that_changes_from_run_to_run_is_told_what_to_do(draw: Callable[[], Any], cause: str) -> None:
    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(5)).process(Unsteady(draw)).collect(name="out")
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, histories=3)
    told = str(caught.value)
    assert told.startswith("unrepeatable: the same seed gave two different outputs: sink 'out' has committed (0, ")
    assert "reads real time, random numbers or ids" in told
    assert "Use self.context.clock for the time" in told
    assert re.search(f"Likely cause: {cause}", told)
    assert "FAULT" not in told


class Forgetful(KeyedOperator):
    """Counts in an attribute."""

    def __init__(self) -> None:
        self.count = 0

    def process(self, record: int, out: Any) -> None:
        self.count += 1
        out.collect(self.count)


class CountsInAGenerator(KeyedOperator):
    def open(self) -> None:
        self.counting = self.count()

    def count(self) -> Iterator[int]:
        number = 0
        while True:
            number += 1
            yield number

    def process(self, record: int, out: Any) -> None:
        out.collect((record, next(self.counting)))


class RemembersState(KeyedOperator):
    total = ValueState(int, default=0)

    @functools.lru_cache  # noqa: B019 - on purpose
    def first(self) -> int:
        return self.total.value()

    def process(self, record: int, out: Any) -> None:
        self.total.update(self.total.value() + 1)
        out.collect((record, self.first()))


class OnceInAWhile(KeyedOperator):
    seen = ValueState(bool, default=False, ttl=Ttl(700))

    def process(self, record: int, out: Any) -> None:
        if not self.seen.value():
            self.seen.update(True)
            out.collect(record)


@pytest.mark.parametrize(
    ("operator", "cause"),
    [
        (
            OnceInAWhile,
            "state 'seen' of OnceInAWhile expires by the clock, after 700 ms: what is there depends on",
        ),
        (CountsInAGenerator, "attribute 'counting' of CountsInAGenerator is a generator, and no checkpoint holds the"),
        (RemembersState, "RemembersState.first remembers what it has returned (functools.lru_cache), in its process"),
    ],
)
def test_what_nobody_can_look_into_is_a_likely_cause_where_nothing_else_is(
    operator: type[KeyedOperator], cause: str
) -> None:
    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(40)).key_by(lambda number: 0).process(operator).collect(name="out")
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, histories=10)
    assert f"Likely cause: {cause}" in str(caught.value)


def test_faults_that_matter_are_said_to_matter() -> None:
    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(12)).key_by(lambda number: 0).process(Forgetful).collect(name="out")
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, faults=[KillProcess(at_ms=3_000, who=0)], histories=5)
    told = str(caught.value)
    assert (
        "The same seed was run again, with the same outcome.\nWithout faults and savepoints it commits what was" in told
    )
    assert "0 recoveries" not in told


# ---- likely causes


class Remembering(Operator):
    """With each number, how many there have been: in an attribute."""

    def __init__(self) -> None:
        self.seen = 0

    def process_batch(self, batch: Any, out: Any) -> None:
        for number in batch:
            self.seen += 1
            out.collect((number, self.seen))


class Collected(Operator):
    """The same, in state that is kept in an attribute meanwhile; but a number is lost at each restore."""

    saved = OperatorListState(int)

    def open(self) -> None:
        self.seen = max(self.saved.get(), default=0)
        self.is_first = bool(self.seen)

    def process_batch(self, batch: Any, out: Any) -> None:
        for number in batch:
            self.seen += 1
            if not self.is_first:
                out.collect((number, self.seen))
            self.is_first = False

    def on_checkpoint(self, checkpoint_id: int) -> None:
        self.saved.update([self.seen])


class AtOnce(TwoPhaseCommitSink[str]):
    """Its outside system shows what is written at once."""

    log = TransactionalLog("orders")

    def begin_transaction(self) -> str:
        return "none"

    def write(self, transaction: str, batch: Any) -> None:
        self.log.write(batch)

    def pre_commit(self, transaction: str) -> None:
        pass

    def commit(self, transaction: str) -> None:
        pass

    def abort(self, transaction: str) -> None:
        pass


def _told(job: Callable[[StreamEnvironment], object]) -> str:
    def build() -> StreamEnvironment:
        env = _env()
        job(env)
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, faults=[KillProcess(at_ms=3_300, who=0)], histories=5)
    return str(caught.value)


def test_an_attribute_that_is_no_state_is_named() -> None:
    told = _told(lambda env: env.from_collection(range(30)).process(Remembering, name="count").collect(name="out"))
    assert (
        "Likely cause: attribute 'seen' of Remembering is not declared as state, so no checkpoint holds it: 0" in told
    )


class Numberer:
    def __init__(self) -> None:
        self.given = 0

    def __call__(self, record: int) -> tuple[int, int]:
        self.given += 1
        return record, self.given


class Numbers:
    def __init__(self) -> None:
        self.given = 0

    def number(self, record: int) -> tuple[int, int]:
        self.given += 1
        return record, self.given


@pytest.mark.parametrize("function", [Numberer(), Numbers().number])
def test_an_attribute_of_an_object_in_place_of_a_function_is_named(function: Callable[[int], Any]) -> None:
    told = _told(lambda env: env.from_collection(range(30)).map(function).collect(name="out"))
    assert "Likely cause: the attribute 'given' of Number" in told
    assert "Write an operator in place of the function, and declare it there" in told


class Numbering(ProcessWindowFunction):
    longest = ValueState(int, default=0)

    def __init__(self) -> None:
        self.windows = 0

    def process(self, window: Window, records: Sequence[int], out: Collector) -> None:
        self.windows += 1
        out.collect((self.windows, len(records)))


def test_an_attribute_of_a_window_function_is_named() -> None:
    told = _told(
        lambda env: (
            env.from_collection(range(30))
            .key_by(lambda number: 0)
            .window(count_window(2))
            .process(Numbering())
            .collect(name="out")
        )
    )
    assert "Likely cause: the attribute 'windows' of Numbering is not declared as state" in told
    assert "Declare it, as a ValueState or MapState for example" in told


class Rolling(Operator):
    """Draws from a generator of its own, which begins anew with each attempt."""

    def open(self) -> None:
        self.dice = random.Random(7)

    def process_batch(self, batch: Any, out: Any) -> None:
        for number in batch:
            out.collect((number, self.dice.randrange(1_000)))


def test_a_generator_of_random_numbers_is_named_with_what_to_do() -> None:
    told = _told(lambda env: env.from_collection(range(30)).process(Rolling, name="roll").collect(name="out"))
    assert (
        "Likely cause: attribute 'dice' of Rolling is not declared as state, so no checkpoint holds it: a Random, "
        "which had changed at the barrier, and holds something else after the restore. "
        "Make random numbers from the record: "
        "random.Random(record_id)" in told
    )
    assert " 0x" not in told


def test_a_variable_of_a_function_is_named() -> None:
    seen: list[int] = []

    def count(number: int) -> int:
        seen.append(number)
        return len(seen)

    told = _told(lambda env: env.from_collection(range(30)).map(count).collect(name="out"))
    assert "Likely cause: variable 'seen' of the function count is not declared as state" in told


class Idle(KeyedOperator):
    """Emits a key's count, and when, as soon as nothing has come for 300 ms by the clock."""

    seen = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        self.seen.update(self.seen.value() + 1)
        self.timers.at_processing_time(self.processing_time() + 300)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect((self.key, self.seen.value(), self.processing_time()))


def test_an_operator_that_goes_by_the_clock_is_named_and_attributes_of_our_classes_are_not() -> None:
    def idle(env: StreamEnvironment) -> None:
        numbers = env.from_collection(range(60), records_per_second=3)
        numbers.key_by(lambda number: number % 2).process(Idle, name="idle").collect(name="out")

    told = _told(idle)
    assert re.search(r"Likely cause: operator 'idle' goes by the clock \(self\.(timers\.at_)?processing_time\)", told)
    assert "attribute '_" not in told


class Completed(Operator):
    """Tells with each record how many checkpoints have completed; the number is restored."""

    done = OperatorListState(int)
    count = 0

    def open(self) -> None:
        self.count = sum(self.done.get())

    def process_batch(self, batch: Any, out: Collector) -> None:
        for record in batch:
            out.collect((record, self.count))

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self.done.update([self.count])

    def on_checkpoint_complete(self, checkpoint_id: Any) -> None:
        self.count += 1


class CompletedInState(Completed):
    def on_checkpoint(self, checkpoint_id: Any) -> None: ...

    def on_checkpoint_complete(self, checkpoint_id: Any) -> None:
        self.done.update([sum(self.done.get()) + 1])

    def process_batch(self, batch: Any, out: Collector) -> None:
        for record in batch:
            out.collect((record, sum(self.done.get())))


class PartAtBarrier(Operator):
    """Emits what has come since the last barrier."""

    held = 0

    def process_batch(self, batch: Any, out: Collector) -> None:
        self.held += len(batch)

    def before_barrier(self, checkpoint_id: Any, out: Collector) -> None:
        out.collect(self.held)
        self.held = 0


@pytest.mark.parametrize(
    ("operator", "what"),
    [
        (Completed, r"changes attribute 'count' of Completed when a checkpoint completes \(on_checkpoint_complete\)"),
        (CompletedInState, r"changes state 'done' when a checkpoint completes \(on_checkpoint_complete\)"),
        (PartAtBarrier, r"emits records at a barrier \(before_barrier\)"),
    ],
)
def test_an_operator_that_goes_by_checkpoints_is_named_and_not_the_order(operator: type[Operator], what: str) -> None:
    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(60), records_per_second=10).process(operator, name="count").collect(name="out")
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, faults=[FreezeProcess(at_ms=2_000, for_ms=900, who=0)], histories=10)
    told = str(caught.value)
    assert re.search(f"Likely cause: operator 'count' {what}: what it emits depends on when checkpoints", told)
    assert "order. Nothing" not in told


def test_an_attribute_that_is_restored_is_not_blamed() -> None:
    told = _told(lambda env: env.from_collection(range(30)).process(Collected, name="count").collect(name="out"))
    assert "'seen'" not in told


def test_output_that_is_visible_too_early_is_named() -> None:
    told = _told(lambda env: env.from_collection(range(30)).sink_to(AtOnce, name="orders"))
    assert "Likely cause: 'orders' made records of the log 'orders' visible while it processes a batch" in told


_seen: set[int] = set()


def is_new(number: int) -> bool:
    """Remembers in a global what has come."""
    if number in _seen:
        return False
    _seen.add(number)
    return True


def test_a_global_that_a_function_changes_is_named() -> None:
    """All processes of a simulation share it, so nothing is new in the second run: no matter of order."""
    _seen.clear()
    told = _told(lambda env: env.from_collection(range(30)).filter(is_new).collect(name="out"))
    assert "Likely cause: is_new changes the set '_seen' of your program (" in told
    assert "order" not in told


class Ahead(Source):
    """Its offset says one record too many."""

    def open(self) -> None:
        self.next = 0

    def poll(self) -> Any:
        if self.next == 30:
            return END
        self.next += 1
        return [self.next - 1]

    def offset(self) -> int:
        return self.next + self.skipped

    skipped = 1

    def seek(self, offset: int) -> None:
        self.next = offset


class Right(Ahead):
    """Its offset is right; another operator is wrong."""

    skipped = 0


def test_an_offset_that_other_records_follow_on_is_named() -> None:
    told = _told(lambda env: env.from_source(Ahead, name="numbers").collect(name="out"))
    assert "Likely cause: source 'numbers' gave " in told
    assert "offset() has to say which record poll() gives next, and seek(offset) to go there" in told


class FetchesAhead(Source):
    """Its offset says what it has fetched, and not what it has given."""

    def open(self) -> None:
        self.fetched, self.rows = 0, list[int]()

    def poll(self) -> Any:
        if not self.rows:
            if self.fetched == 40:
                return END
            self.rows = list(range(self.fetched, self.fetched + 10))
            self.fetched += 10
        given, self.rows = self.rows[:3], self.rows[3:]
        return given

    def offset(self) -> int:
        return self.fetched

    def seek(self, offset: int) -> None:
        self.fetched = offset


def test_an_offset_is_named_that_only_a_job_which_goes_on_from_a_savepoint_has_met() -> None:
    def build() -> StreamEnvironment:
        env = _env()
        env.from_source(FetchesAhead).collect(name="out")
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, faults=(), actions=[Rescale(at_ms=2_200, parallelism=2, cancel=True)], histories=1)
    told = str(caught.value)
    assert re.search(r"Likely cause: source '\S+' gave \d+ next when", told)


def test_an_offset_that_is_right_is_not_blamed() -> None:
    told = _told(lambda env: env.from_source(Right).process(Remembering, name="count").collect(name="out"))
    assert "Likely cause: attribute 'seen'" in told
    assert "offset()" not in told
