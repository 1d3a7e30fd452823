"""Mistakes with `async def`: each is found within seconds, and the text names the operator and the remedy."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import cloudpickle
import pytest

from understudy import (
    AsyncSettings,
    Cluster,
    Collector,
    InvalidOperator,
    InvalidSetting,
    JobFailed,
    KeyedOperator,
    Operator,
    OutputTag,
    Retry,
    StreamEnvironment,
    ValueState,
)
from understudy.actors.errors import UserCodeError
from understudy.runtime.api.stream import DataStream
from understudy.testing import OperatorHarness

from .clusters import cluster_named

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # TaskManagers cannot import test modules

WAIT_S = 100


async def fetch(record: Any) -> Any:
    await asyncio.sleep(0)
    return record


class ForgotAwait(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        out.collect(fetch(record))  # without await


class ForgotAwaitAfterAWait(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(0.001)
        out.collect(fetch(record))  # without await


class Returning(Operator):
    async def process(self, record: Any, out: Collector) -> Any:
        return await fetch(record)


class ReturningAtOnce(Operator):
    async def process(self, record: Any, out: Collector) -> Any:
        return record


class RunningItself(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        coroutine = fetch(record)
        try:
            out.collect(asyncio.run(coroutine))
        finally:
            coroutine.close()


class SessionInPlainOpen(Operator):
    def open(self) -> None:
        self.loop = asyncio.get_running_loop()  # as a client of asyncio does

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class OpenRaises(Operator):
    async def open(self) -> None:
        await asyncio.sleep(0)
        raise ConnectionError("nobody there")

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class TooShort(Operator):
    async_settings = AsyncSettings(timeout_ms=20, retry=Retry(attempts=2, first_delay_ms=1))

    async def process(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(60)  # it waits here


class Raising(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(0.001)
        out.collect(1 / (record - 1))  # it raises here


class Cancelling(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task


class OutlivingState(KeyedOperator):
    seen = ValueState(int, default=0)

    async def process(self, record: Any, out: Collector) -> None:
        if not hasattr(self, "before"):
            self.before = asyncio.create_task(self.later())
        else:
            await self.before

    async def later(self) -> None:
        await asyncio.sleep(0.01)
        self.seen.update(1)


class NeverAwaitedState(OutlivingState):
    async def process(self, record: Any, out: Collector) -> None:
        asyncio.create_task(self.later())  # noqa: RUF006 - it is begun here


class OutlivingOut(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        if not hasattr(self, "before"):
            self.before = asyncio.create_task(self.later(record, out))
        else:
            await self.before

    async def later(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(0.01)
        out.collect(record)


class NeverAwaitedOut(OutlivingOut):
    async def process(self, record: Any, out: Collector) -> None:
        asyncio.create_task(self.later(record, out))  # noqa: RUF006 - it is begun here


class NeverAwaitedAfterAWait(NeverAwaitedOut):
    async def process(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(0.001)
        await super().process(record, out)


class NeverAwaitedTwice(NeverAwaitedOut):
    """A task that nobody awaits begins another one."""

    async def process(self, record: Any, out: Collector) -> None:
        asyncio.create_task(self.begin(record, out))  # noqa: RUF006

    async def begin(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(0.001)
        asyncio.create_task(self.later(record, out))  # noqa: RUF006 - it is begun here


class LeftTimer(Operator):
    """Emits when all data has ended, if nobody waits for it."""

    async def process(self, record: Any, out: Collector) -> None:
        asyncio.get_running_loop().call_later(0.3, out.collect, record)  # - it is begun here


class LeftTimerOfState(KeyedOperator):
    seen = ValueState(int, default=0)

    async def process(self, record: Any, out: Collector) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        loop.call_at(loop.time() + 0.3, lambda: self.seen.update(1))  # - it is begun here


class LeftTimerOfATimer(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        loop = asyncio.get_running_loop()
        later = lambda: loop.call_later(0.15, out.collect, record)  # noqa: E731 - it is begun here
        loop.call_later(0.15, later)


class LeftThread(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        asyncio.get_running_loop().run_in_executor(None, self.later, record, out)  # - it is begun here

    def later(self, record: Any, out: Collector) -> None:
        time.sleep(0.3)
        out.collect(record)


def plain_lambda(numbers: DataStream) -> DataStream:
    return numbers.map(lambda n: fetch(n), name="op")


async def twice_async(record: Any) -> Any:
    return fetch(record)


def half_awaited(numbers: DataStream) -> DataStream:
    return numbers.map(twice_async, name="op")


def half_awaited_filter(numbers: DataStream) -> DataStream:
    return numbers.filter(twice_async, name="op")


def using(operator: type[Operator]) -> Callable[[DataStream], DataStream]:
    keyed = issubclass(operator, KeyedOperator)
    return lambda numbers: (numbers.key_by(lambda n: 0) if keyed else numbers).process(operator, name="op")


FOUND: dict[str, tuple[Callable[[DataStream], DataStream], list[str]]] = {
    "forgot await": (using(ForgotAwait), ["emitted a coroutine (fetch)", "write `await` before it", "mistakes.py:"]),
    "forgot it after a wait": (
        using(ForgotAwaitAfterAWait),
        ["emitted a coroutine (fetch)", "write `await` before it"],
    ),
    "returns": (using(Returning), ["Returning.process returned 1 (int)", "out.collect(x)"]),
    "returns at once": (using(ReturningAtOnce), ["ReturningAtOnce.process returned 1 (int)", "out.collect(x)"]),
    "asyncio.run": (using(RunningItself), ["write `await ...` in place of `asyncio.run(...)`", "mistakes.py"]),
    "session in a plain open": (using(SessionInPlainOpen), ["no running event loop", "`async def open(self)`"]),
    "open raises": (using(OpenRaises), ["ConnectionError: nobody there", "in open"]),
    "too short a timeout": (
        using(TooShort),
        [
            "took longer than 20 ms in try 2",
            "raise timeout_ms",
            "Both are in milliseconds",
            "# it waits here",
            "record ",
        ],
    ),
    "raises": (using(Raising), ["ZeroDivisionError", "# it raises here", "record 0"]),
    "cancels": (using(Cancelling), ["CancelledError", "catch asyncio.CancelledError where it is awaited"]),
    "state after the record": (using(OutlivingState), ["seen was used by code that outlived its record", "await all"]),
    "out after the record": (using(OutlivingOut), ["out was used by code that outlived its record", "await all"]),
    **{
        f"a task is never awaited: {each.__name__}": (
            using(each),
            [
                "was used by code that outlived its record",
                "mistakes.py:",
                "# noqa: RUF006 - it is begun here",
                "await all",
                "failed once",
            ],
        )
        for each in (NeverAwaitedState, NeverAwaitedOut, NeverAwaitedAfterAWait, NeverAwaitedTwice)
    },
    **{
        f"a callback of the loop is never awaited: {each.__name__}": (
            using(each),
            ["was used by code that outlived its record", "mistakes.py:", "- it is begun here", "await all"],
        )
        for each in (LeftTimer, LeftTimerOfState, LeftTimerOfATimer)
    },
    "a plain lambda": (
        plain_lambda,
        ["returned a coroutine (fetch), which nothing awaits here", "`async def` function"],
    ),
    "map awaits half": (half_awaited, ["the function of map returned a coroutine (fetch)"]),
    "filter awaits half": (half_awaited_filter, ["the condition of filter returned a coroutine (fetch)"]),
}


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with cluster_named("local") as cluster:
        yield cluster


@pytest.mark.parametrize(("build", "told"), FOUND.values(), ids=FOUND)
@pytest.mark.processes
def test_on_local_processes(local: Cluster, build: Callable[[DataStream], DataStream], told: list[str]) -> None:
    _fails(local, build, told)


@pytest.mark.processes
def test_a_thread_that_nobody_awaits_on_local_processes(local: Cluster) -> None:
    """In the simulator it is done at once."""
    _fails(local, using(LeftThread), ["out was used by code that outlived its record", "- it is begun here"])


@pytest.mark.parametrize(("build", "told"), FOUND.values(), ids=FOUND)
def test_in_the_simulator(build: Callable[[DataStream], DataStream], told: list[str]) -> None:
    with cluster_named("simulated") as cluster:
        _fails(cluster, build, told)


def _fails(cluster: Cluster, build: Callable[[DataStream], DataStream], told: list[str]) -> None:
    env = StreamEnvironment(parallelism=1)
    build(env.from_collection([1, 2, 3], name="numbers")).collect(name="out")
    with pytest.raises(JobFailed) as caught:
        cluster.submit(env).wait(WAIT_S)
    text = str(caught.value)
    assert "operator 'op'" in text
    for each in told:
        assert each in text


class Client:
    def __init__(self) -> None:
        self.lock = threading.Lock()


class ClientInInit(Operator):
    def __init__(self) -> None:
        self.client = Client()

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class Compiled(KeyedOperator):
    compiled = True

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class Yielding(Operator):
    async def process(self, record: Any, out: Collector) -> Any:
        yield record


class YieldingByKey(KeyedOperator):
    async def process(self, record: Any, out: Collector) -> Any:
        yield record


class Misspelt(Operator):
    async_setting = AsyncSettings(timeout_ms=3)

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class MisspeltDict(Operator):
    asyncsettings = dict(timeout_ms=3)  # noqa: RUF012, C408 - the mistake

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class OtherName(Operator):
    def __init__(self) -> None:
        self.limits = AsyncSettings(timeout_ms=3)

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class NoCoroutines(KeyedOperator):
    async_settings = AsyncSettings(timeout_ms=3)

    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class WrongSettings(Operator):
    async_settings = dict(timeout_ms=3)  # noqa: RUF012, C408 - the mistake

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class LooseSettings(Operator):
    rate_per_second = 6.0
    max_in_flight = 8

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class SettingsOfItsOwn(Operator):
    """It reads what it calls as a setting is called."""

    timeout_ms = 500
    batch_size = 3

    async def process(self, record: Any, out: Collector) -> None:
        await asyncio.wait_for(asyncio.sleep(0), self.timeout_ms / 1000)
        out.collect([record for _ in range(self.batch_size)])


REFUSED: dict[str, tuple[Callable[[DataStream], Any], type[Exception], str]] = {
    "a generator": (
        using(Yielding),
        InvalidOperator,
        r"^Yielding.process is an async generator \(.*mistakes.py:\d+\), and none .*: write out.collect\(x\) in",
    ),
    "a generator by key": (
        using(YieldingByKey),
        InvalidOperator,
        r"^YieldingByKey.process is an async generator \(.*mistakes.py:\d+\), and none .*: write out.collect",
    ),
    "misspelt settings": (using(Misspelt), InvalidOperator, r"Misspelt.async_setting: .* called async_settings, as in"),
    "misspelt, and a dict": (using(MisspeltDict), InvalidOperator, "MisspeltDict.asyncsettings: .* called async_set"),
    "settings of another name": (using(OtherName), InvalidOperator, "OtherName.limits: .* called async_settings"),
    "settings beside it": (
        using(LooseSettings),
        InvalidOperator,
        r"LooseSettings.rate_per_second, max_in_flight: nothing reads it there: write `async_settings = AsyncSettings\("
        r"rate_per_second=6.0, max_in_flight=8\)`",
    ),
    "settings without coroutines": (
        using(NoCoroutines),
        InvalidOperator,
        "NoCoroutines.async_settings: nothing reads it, as NoCoroutines runs no coroutines: write `async def process`",
    ),
    "all tries shorter than one": (
        lambda numbers: numbers.map(fetch).async_settings(timeout_ms=500, total_timeout_ms=100),
        InvalidSetting,
        r"total_timeout_ms: wanted at least timeout_ms \(500\), as all tries .* found 100",
    ),
    "compiled": (using(Compiled), InvalidOperator, "machine code cannot wait for anything; write `def`"),
    "a misspelt setting": (
        lambda numbers: numbers.map(fetch).async_settings(timeout=100),
        InvalidSetting,
        "found timeout; .*did you mean 'timeout_ms'",
    ),
    "a wrong setting": (
        lambda numbers: numbers.map(fetch).async_settings(max_in_flight=0),
        InvalidSetting,
        "max_in_flight: wanted a whole number of at least 1, found 0",
    ),
    "settings of a plain operator": (
        lambda numbers: numbers.map(abs, name="op").async_settings(timeout_ms=100),
        InvalidOperator,
        "operator 'op' runs no coroutines: its `process`, or its function, is no `async def`",
    ),
    "settings that are none": (
        using(WrongSettings),
        InvalidOperator,
        r"WrongSettings.async_settings: wanted an AsyncSettings, as in",
    ),
    "errors of one that fails": (
        lambda numbers: numbers.map(fetch, name="op").errors,
        InvalidOperator,
        r"operator 'op' fails with its first error.*async_settings\(on_error=\"errors\"\)",
    ),
    "errors of a plain operator": (
        lambda numbers: numbers.map(abs, name="op").errors,
        InvalidOperator,
        "operator 'op' runs no coroutines; only those have a stream of errors",
    ),
}


def test_a_class_may_have_attributes_that_it_reads() -> None:
    using(SettingsOfItsOwn)(StreamEnvironment().from_collection([1]))


@pytest.mark.parametrize(("build", "error", "told"), REFUSED.values(), ids=REFUSED)
def test_what_shows_in_the_program_is_refused_there(
    build: Callable[[DataStream], Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        build(StreamEnvironment().from_collection([1]))


@pytest.mark.parametrize(
    ("kind", "name", "meant"), [(AsyncSettings, "timeout", "timeout_ms"), (Retry, "attempt", "attempts")]
)
def test_an_unknown_name_of_a_setting_says_which_is_meant(kind: Callable[..., Any], name: str, meant: str) -> None:
    with pytest.raises(
        TypeError, match=rf"^{kind.__name__} has no argument '{name}'; did you mean '{meant}'\? There are "
    ):
        kind(**{name: 1})


@pytest.mark.parametrize(
    ("read", "changes", "warned"),
    [(False, {}, True), (True, {}, False), (False, {"default": 0}, False)],
    ids=["unread", "read", "with a default"],
)
def test_errors_that_nobody_reads_are_warned_of(
    read: bool, changes: dict[str, Any], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    env = StreamEnvironment()
    fetched = env.from_collection([1]).map(fetch, name="op").async_settings(on_error="errors", **changes)
    fetched.collect(name="out")
    if read:
        fetched.errors.collect(name="given up")
    with cluster_named("simulated") as cluster, caplog.at_level(logging.WARNING):
        cluster.submit(env).wait(WAIT_S)
    said = [each.getMessage() for each in caplog.records]
    assert any("'op' has on_error=\"errors\", and nothing reads its errors" in each for each in said) == warned


def test_a_client_made_in_init_cannot_travel() -> None:
    env = StreamEnvironment()
    env.from_collection([1]).process(ClientInInit, name="op").collect(name="out")
    with (
        cluster_named("simulated") as cluster,
        pytest.raises(Exception, match=re.compile("'op'.*open", re.S)) as caught,
    ):
        cluster.submit(env)
    assert "lock" in str(caught.value)


class Opening(Operator):
    async def open(self) -> None:
        await asyncio.sleep(12)  # it waits here

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


def test_an_open_that_takes_long_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), OperatorHarness(Opening) as harness:
        harness.process([1])
        harness.advance(9_000)
        assert caplog.records == []
        harness.advance(1_000)
        (said,) = [each.getMessage() for each in caplog.records]
        assert said.startswith(
            "Opening.open has not ended after 10 s, and the operator's records wait for it: it waits at"
        )
        assert "# it waits here" in said
        assert "asyncio.timeout" in said
        harness.advance(2_000)
        assert harness.output() == [1]


class Swallowing(Operator):
    async_settings = AsyncSettings(timeout_ms=100, close_timeout_ms=500)

    async def process(self, record: Any, out: Collector) -> None:
        for _ in range(20):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)  # it waits here
        out.collect(record)


def test_a_coroutine_that_swallows_its_cancellation_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), OperatorHarness(Swallowing) as harness:
        harness.process([1, 2])
        harness.advance(3_000)
        (said,) = [each.getMessage() for each in caplog.records]
        assert said.startswith(
            "Swallowing.process: a coroutine goes on although it was cancelled, as it took longer than"
        )
        assert "it catches asyncio.CancelledError, so no timeout ends it" in said
        assert "# it waits here" in said
    (_, left) = [each.getMessage() for each in caplog.records]
    assert "2 of its coroutines still run after 0.5 s, at " in left
    assert "# it waits here" in left


def test_the_harness_shows_the_users_error() -> None:
    harness = OperatorHarness(Raising)
    harness.process([1])
    with pytest.raises(UserCodeError, match="operator 'raising-1' raised at record 0") as caught:
        harness.advance(1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


class LeftCallback(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        asyncio.get_running_loop().call_later(0.01, lambda: out.collect(record))


class LeftCallbackAfterAWait(LeftCallback):
    async def process(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(0.001)
        await super().process(record, out)


class NeverAwaitedInASecondTry(NeverAwaitedOut):
    async_settings = AsyncSettings(retry=Retry(attempts=2, first_delay_ms=10))
    tries = 0

    async def process(self, record: Any, out: Collector) -> None:
        self.tries += 1
        if self.tries == 1:
            raise ConnectionError("again")
        await super().process(record, out)


@pytest.mark.parametrize(
    ("operator", "what"),
    [
        (NeverAwaitedOut, "what was begun at"),
        (NeverAwaitedInASecondTry, "what was begun at"),
        (LeftCallback, "what was begun at"),
        (LeftCallbackAfterAWait, "what was begun at"),
    ],
)
def test_the_harness_shows_what_code_does_that_nobody_awaits(operator: type[Operator], what: str) -> None:
    harness = OperatorHarness(operator)
    harness.process([1])
    with pytest.raises(UserCodeError) as caught:
        harness.advance(100)
    assert f"or was cancelled, and {what}" in str(caught.value.__cause__)


class LeftCollect(Operator):
    """`out.collect` is a method of lists, which knows nothing of a record that is over."""

    async def process(self, record: Any, out: Collector) -> None:
        if record == "waits":
            await asyncio.sleep(0.001)
        out.collect(record)
        asyncio.get_running_loop().call_later(0.01, out.collect, "late")  # it was to be later


@pytest.mark.parametrize("record", ["waits", "never waits"])
@pytest.mark.parametrize("when", ["checkpoint", "end"])
def test_what_is_collected_later_by_the_method_alone_is_no_silent_loss(record: str, when: str) -> None:
    harness = OperatorHarness(LeftCollect)
    harness.process([record])
    harness.advance(5)
    assert harness.output() == [record]
    if when == "checkpoint":
        harness.advance(100)
    with pytest.raises(UserCodeError) as caught:
        harness.snapshot() if when == "checkpoint" else harness.end()
    assert "out was used by code that outlived its record" in str(caught.value.__cause__)
    assert "# it was to be later" in str(caught.value.__cause__)


LATE = OutputTag("late")


class LeftCollectTo(Operator):
    """The same with a side output, which is emitted to in time, too."""

    async def process(self, record: Any, out: Collector) -> None:
        if record == "waits":
            await asyncio.sleep(0.001)
        out.collect_to(LATE, record)
        asyncio.get_running_loop().call_later(0.01, out.collect_to, LATE, "late")  # to the side


@pytest.mark.parametrize("record", ["waits", "never waits"])
def test_what_is_collected_to_a_side_later_by_the_method_alone_is_no_silent_loss(record: str) -> None:
    harness = OperatorHarness(LeftCollectTo)
    harness.process([record])
    harness.advance(5)
    assert harness.side_output(LATE) == [record]
    assert harness.output() == []
    harness.snapshot()  # nothing was added yet, and something may be
    harness.advance(100)
    with pytest.raises(UserCodeError) as caught:
        harness.snapshot()
    assert "# to the side" in str(caught.value.__cause__)


class LeftInTurn(Operator):
    """Leaves a task that leaves another one."""

    async def process(self, record: Any, out: Collector) -> None:
        self.first = asyncio.create_task(self.begin(record, out))

    async def begin(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(0.05)
        self.second = asyncio.create_task(self.emit(record, out))  # the second one

    async def emit(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(0.05)
        out.collect(record)


def test_what_is_begun_by_what_a_record_has_left_is_waited_for_at_the_end_of_the_data() -> None:
    harness = OperatorHarness(LeftInTurn)
    harness.process([1])
    with pytest.raises(UserCodeError) as caught:
        harness.end()
    assert "# the second one" in str(caught.value.__cause__)


class Refreshing(Operator):
    """What it has begun beside the records fails; it keeps the task, so that asyncio never says it."""

    is_awaited = False

    async def open(self) -> None:
        self.task = asyncio.create_task(self.refresh())  # it fails
        if self.is_awaited:
            with suppress(ConnectionError):
                await self.task

    async def refresh(self) -> None:
        await asyncio.sleep(1)
        raise ConnectionError("no table of rates")

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_task_beside_the_records_that_fails_is_logged_unless_it_is_awaited(
    is_awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Refreshing()
    operator.is_awaited = is_awaited
    with OperatorHarness(operator) as harness:
        harness.process([1])
        harness.advance(5_000)
        assert harness.output() == [1]
    said = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(said) == (not is_awaited)
    for each in said:
        assert "# it fails" in each.getMessage()
        assert "has failed, and nothing awaits it: ConnectionError: no table of rates" in each.getMessage()
        assert each.exc_info is not None


class GoingOn(Operator):
    """Begins what has nothing to do with the record, once for all."""

    async_settings = AsyncSettings(close_timeout_ms=500)
    beside: Any = None

    async def process(self, record: Any, out: Collector) -> None:
        if self.beside is None:
            self.beside = asyncio.create_task(asyncio.sleep(3600))  # it goes on
        out.collect(record)


def test_a_task_that_goes_on_at_the_end_of_the_data_is_waited_for_as_long_as_at_the_close(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), OperatorHarness(GoingOn) as harness:
        harness.process([1, 2])
        harness.end()
        assert harness.output() == [1, 2]
    (said,) = [each.getMessage() for each in caplog.records]
    assert "1 tasks or callbacks that it has begun are not over 0.5 s after the last record" in said
    assert "# it goes on" in said


class Losing(Operator):
    """Awaits the first of two, and no record is lost by the other."""

    async def process(self, record: Any, out: Collector) -> None:
        tasks = [asyncio.create_task(asyncio.sleep(seconds)) for seconds in (1, 2)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        out.collect(record)


class Failing(OutlivingOut):
    """Fails while its task goes on: the record is tried again."""

    async_settings = AsyncSettings(retry=Retry(attempts=2, first_delay_ms=100))
    tries = 0

    async def process(self, record: Any, out: Collector) -> None:
        later = asyncio.create_task(self.later(record, out))
        self.tries += 1
        if self.tries == 1:
            raise ConnectionError("again")
        await later


@pytest.mark.parametrize("operator", [Losing, Failing])
def test_a_task_that_loses_nothing_is_no_failure(operator: type[Operator], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), OperatorHarness(operator) as harness:
        harness.process([1])
        harness.end()
        assert harness.output() == [1]
        gc.collect()
    assert not caplog.records


class ManyInTurn(Operator):
    """Emits how many of the tasks that were begun are still remembered."""

    def __init__(self) -> None:
        self.begun: list[weakref.ref[asyncio.Task[Any]]] = []

    async def begin(self, count: int) -> None:
        for _ in range(count):
            task = asyncio.create_task(asyncio.sleep(0))
            self.begun.append(weakref.ref(task))
            await task

    async def process(self, record: Any, out: Collector) -> None:
        await self.begin(1000)
        self.tell(out)

    def tell(self, out: Collector) -> None:
        gc.collect()
        out.collect(sum(each() is not None for each in self.begun))


class ManyInTurnBeside(ManyInTurn):
    """The same of a task that the first record begins, and that goes on for others."""

    async_settings = AsyncSettings(ordered=False)
    beside: Any = None

    async def process(self, record: Any, out: Collector) -> None:
        if self.beside is None:
            self.beside = asyncio.create_task(self.begin(1000))
        else:
            await self.beside
            self.tell(out)


@pytest.mark.parametrize("operator", [ManyInTurn, ManyInTurnBeside])
def test_tasks_that_are_done_are_forgotten_as_others_are_begun(operator: type[Operator]) -> None:
    with OperatorHarness(operator) as harness:
        harness.process([1, 2])
        harness.end()
        (*_, remembered) = harness.output()
        assert remembered < 100
