"""An operator that sets timers and defines no `on_timer` is refused where the stream is built."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import InvalidOperator, JobFailed, KeyedOperator, Operator, StreamEnvironment, ValueState
from understudy.testing import OperatorHarness, SimulatedCluster


class Direct(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        self.timers.at_event_time(self.timestamp + 5)  # it is set here


class OnTimerInCamelCase(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        self.timers.at_processing_time(self.processing_time() + 5)  # it is set here

    def onTimer(self, timer: Any, out: Any) -> None:
        out.collect(timer)


class ByAHelper(KeyedOperator):
    async def process(self, record: Any, out: Any) -> None:
        self._remind()

    def _remind(self) -> None:
        (lambda: self.timers.at_event_time(5))()  # it is set here


class AsItsBase(Direct):
    def process(self, record: Any, out: Any) -> None:
        super().process(record, out)


class Reminding(KeyedOperator):
    """Timers are set by those who want them."""

    def remind(self) -> None:
        self.timers.at_event_time(5)


class WithoutReminders(Reminding):
    timer = ValueState(int)

    def process(self, record: Any, out: Any) -> None:
        out.collect(record)


class OtherThanItsBase(Direct):
    def process(self, record: Any, out: Any) -> None:
        out.collect(record)


class Silenced(ByAHelper):
    _remind = staticmethod(lambda: None)  # type: ignore[assignment]


class OfItsOwnKind(KeyedOperator):
    """What is called like that is no method of its timers."""

    alarms: Any

    def process(self, record: Any, out: Any) -> None:
        self.alarms.at_event_time(5)


class WithAState(Direct):
    ontimer = ValueState(int)


class WithOnTimer(Direct):
    def on_timer(self, timer: Any, out: Any) -> None:
        out.collect(timer)


class RemindingIfWanted(KeyedOperator):
    """A base for others: who wants reminders says so, and defines `on_timer`."""

    every_ms = 0

    def process(self, record: Any, out: Any) -> None:
        if self.every_ms:
            self.remind()
        out.collect(record)

    def on_end(self, out: Any) -> None:
        if not self.every_ms:
            return
        self.timers.at_event_time(5)

    def remind(self) -> None:
        self.timers.at_event_time(5)


class WithoutItsBasesReminders(RemindingIfWanted):
    pass


class AfterAComprehension(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        parts = {each: [part for part in each if part] for each in record if each}
        self.timers.at_event_time(len(parts))  # it is set here


class AsAfterAComprehension(AfterAComprehension):
    pass


class RemindingOfSome(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        [self.timers.at_event_time(each) for each in record if each]  # type: ignore[func-returns-value]


class WithoutThose(RemindingOfSome):
    pass


class Plan:
    """Another's `timers`."""

    def __init__(self) -> None:
        self.timers = self

    def at_event_time(self, time_ms: int) -> None: ...


class WithAPlan(KeyedOperator):
    def open(self) -> None:
        self.plan = Plan()

    def process(self, record: Any, out: Any) -> None:
        self.plan.timers.at_event_time(5)


class MakingAnother(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        class Other(KeyedOperator):
            def process(self, record: Any, out: Any) -> None:
                self.timers.at_event_time(5)

        out.collect(Other)


@pytest.mark.parametrize("kind", [Direct, OnTimerInCamelCase, ByAHelper, AsItsBase, AsAfterAComprehension])
def test_it_is_refused_with_its_line(kind: type[KeyedOperator]) -> None:
    stream = StreamEnvironment().from_collection([1]).key_by(lambda record: record)
    with pytest.raises(InvalidOperator, match=f"{kind.__name__} registers a timer and defines no on_timer") as caught:
        stream.process(kind)
    path, line = str(caught.value).split(": ")[0].rsplit(":", 1)
    with open(path) as source:
        assert "# it is set here" in source.readlines()[int(line) - 1]
    assert f"define `{'async ' * (kind is ByAHelper)}def on_timer(self, timer, out)`" in str(caught.value)


def test_a_method_that_is_called_much_like_it_is_named() -> None:
    with pytest.raises(InvalidOperator, match=r"; it defines onTimer: rename it$"):
        OperatorHarness(OnTimerInCamelCase, key_by=lambda record: record)
    for without in (Direct, WithAState):
        with pytest.raises(InvalidOperator, match=r"out\)`$"):
            OperatorHarness(without, key_by=lambda record: record)


class TakesTimers:
    def on_timer(self, timer: Any, out: Any) -> None:
        out.collect(timer)


class BehindOurs(Direct, TakesTimers):
    pass


class OnTheInstance(Direct):
    def __init__(self) -> None:
        self.on_timer = lambda timer, out: out.collect(timer)  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (BehindOurs, "TakesTimers.on_timer stands behind KeyedOperator's: name TakesTimers first among the bases"),
        (OnTheInstance, "it sets one on the instance, which is not called: define it in the class"),
    ],
)
def test_one_that_is_not_reached_is_named(kind: type[KeyedOperator], told: str) -> None:
    stream = StreamEnvironment().from_collection([1]).key_by(lambda record: record)
    with pytest.raises(InvalidOperator, match=f"; {told}$"):
        stream.process(kind)


@pytest.mark.parametrize(
    "kind",
    [
        WithoutReminders,
        OtherThanItsBase,
        Silenced,
        OfItsOwnKind,
        WithOnTimer,
        WithoutItsBasesReminders,
        WithoutThose,
        WithAPlan,
        MakingAnother,
    ],
)
def test_one_that_sets_none_or_takes_them_is_not(kind: type[KeyedOperator]) -> None:
    StreamEnvironment().from_collection([1]).key_by(lambda record: record).process(kind)


def set_timer(timers: Any) -> None:
    timers.at_event_time(5)


class Elsewhere(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        set_timer(self.timers)


class Untimed(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        out.collect(self.timestamp)


@pytest.mark.parametrize(
    ("kind", "told"), [(Elsewhere, "defines no on_timer"), (Untimed, "self.timestamp was asked for")]
)
def test_what_shows_in_a_task_alone_ends_the_job_at_once(kind: type[KeyedOperator], told: str) -> None:
    env = StreamEnvironment(parallelism=1)
    env.from_collection([1]).key_by(lambda record: record).process(kind).collect(name="out")
    with SimulatedCluster(1) as cluster, pytest.raises(JobFailed, match=told) as caught:
        cluster.submit(env).wait(60)
    assert caught.value.details.restarts == 0


class Ticking(Operator):
    def process_batch(self, batch: Any, out: Any) -> None: ...

    def on_timer(self, timer: Any, out: Any) -> None: ...


class Setting(Operator):
    def process_batch(self, batch: Any, out: Any) -> None:
        self.timers.at_processing_time(1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Ticking, Setting])
def test_an_operator_without_a_key_has_no_timers(kind: type[Operator]) -> None:
    with pytest.raises(InvalidOperator, match="timers belong to a key: subclass KeyedOperator"):
        StreamEnvironment().from_collection([1]).process(kind)
