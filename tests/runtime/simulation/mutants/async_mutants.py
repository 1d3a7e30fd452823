"""Mutants of coroutines: records in flight that are lost or come twice, keys and state that are another record's, order
and watermarks that do not hold, answers that are paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from understudy.actors.async_calls import frozen_calls, restored_calls
from understudy.actors.async_calls.async_calls import AsyncCalls
from understudy.actors.async_calls.backlog import Backlog
from understudy.actors.async_calls.call import Call
from understudy.actors.async_calls.call_order import CallOrder
from understudy.actors.async_calls.frozen_calls import CallInFlight, FrozenCalls
from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK
from understudy.actors.operators.of_call import OfCall
from understudy.actors.operators.operator import Operator
from understudy.runtime.coroutines.call_runner import LoopRunner
from understudy.runtime.simulation.histories import async_themes, mix
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.state.backends.shared_backend import SharedBackend
from understudy.state.backends.shared_timers import SharedTimers
from understudy.state.backends.unit_of_work import CURRENT, UnitOfWork

from .mutant import CUT, LIVENESS, OUTPUT, Patch, Scenarios, mutant, nothing

EFFECTS = "effects"


def of(theme: mix.Theme, *topologies: str) -> Scenarios:
    """The histories of a theme, with these jobs in turn."""

    def scenario(seed: int) -> Scenario:
        return replace(mix.themed(theme, seed), topology=topologies[seed % len(topologies)])

    return scenario


def _frozen(patch: Patch, change: Callable[[AsyncCalls, list[CallInFlight]], list[CallInFlight]]) -> None:
    """Snapshots hold something else of the calls that there are."""
    freeze = AsyncCalls.freeze

    def changed(self: AsyncCalls) -> FrozenCalls:
        frozen = freeze(self)
        calls = change(self, [*frozen.calls, *frozen.later()])
        frozen.calls, frozen.later, frozen.has_later = calls, list, False
        return frozen

    patch.setattr(AsyncCalls, "freeze", changed)


def _restored(patch: Patch, change: Callable[[CallInFlight], CallInFlight]) -> None:
    calls_of = frozen_calls.calls_of
    patch.setattr(restored_calls, "calls_of", lambda stored: map(change, calls_of(stored)))


# ---- what a snapshot holds


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "asked", "answered"))
def records_in_flight_are_lost_at_a_barrier(patch: Patch) -> None:
    _frozen(patch, lambda _, calls: [each for each in calls if each.results is not None])


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "answered", "gathered"))
def results_that_wait_for_earlier_ones_are_lost_at_a_barrier(patch: Patch) -> None:
    _frozen(patch, lambda _, calls: [each for each in calls if each.results is None])


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "bursts"))
def the_backlog_is_not_in_the_snapshot(patch: Patch) -> None:
    patch.setattr(Backlog, "rest", lambda *_: lambda: [])


@mutant(OUTPUT, within=60, scenarios=of(mix.in_flight, "batched"))
def what_joins_a_group_behind_a_barrier_is_in_the_snapshot(patch: Patch) -> None:
    """Which is written later: campaigns had found this one in the product."""
    group_batch = Backlog._group_batch
    patch.setattr(Backlog, "_group_batch", lambda self: group_batch(self) if self._group_times else self._group)


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "answered"))
def a_done_result_is_asked_again(patch: Patch) -> None:
    _frozen(patch, lambda _, calls: [each._replace(results=None) for each in calls])


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "answered", "asked"))
def a_result_comes_twice_after_a_restore(patch: Patch) -> None:
    """A snapshot holds what has left last, too."""
    leaving = CallOrder.leaving

    def remembering(self: CallOrder) -> Iterator[Call]:
        for call in leaving(self):
            results = call.results or [("", list(call.out))]
            where = call.kind, call.record, call.time_ms, call.watermark, 0, 0, 0, NO_WATERMARK, 0
            self.left = [CallInFlight(call.key, call.number, "left", *where, results)]  # type: ignore[attr-defined]
            yield call

    patch.setattr(CallOrder, "leaving", remembering)
    _frozen(patch, lambda self, calls: [*calls, *getattr(self._table.order, "left", [])])


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "answered", "gathered"))
def done_results_are_emitted_twice_when_they_are_restored(patch: Patch) -> None:
    _restored(patch, lambda each: each._replace(results=each.results and each.results * 2))


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "asked"))
def idempotency_keys_are_not_restored(patch: Patch) -> None:
    _restored(patch, lambda each: each._replace(identity=""))


@mutant(OUTPUT, within=60, scenarios=of(async_themes.asked_again, "refused"))
def tries_are_not_restored(patch: Patch) -> None:
    _restored(patch, lambda each: each._replace(tries=0))


@mutant(OUTPUT, within=60, scenarios=of(async_themes.asked_again, "refused"))
def a_try_that_was_cut_off_counts(patch: Patch) -> None:
    _frozen(patch, lambda self, calls: [each._replace(tries=_begun(self, each)) for each in calls])


def _begun(calls: AsyncCalls, each: CallInFlight) -> int:
    held = calls._table._held.get(each.number)
    return each.tries if held is None else held.tries


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "asked", "answered"))
def the_order_of_the_input_is_lost_on_restore(patch: Patch) -> None:
    _restored(patch, lambda each: each._replace(number=-each.number))


@mutant(OUTPUT, within=40, scenarios=of(async_themes.asked_again, "reminded"))
def what_was_behind_a_watermark_goes_before_it_after_a_restore(patch: Patch) -> None:
    _restored(patch, lambda each: each._replace(behind_ms=NO_WATERMARK))


# ---- state of unfinished records


@mutant(OUTPUT, within=30, scenarios=of(async_themes.asked_again, "asked", "reminded"))
def state_of_unfinished_records_is_in_the_snapshot(patch: Patch) -> None:
    patch.setattr(SharedBackend, "_as_committed", lambda self: nullcontext())


@mutant(OUTPUT, LIVENESS, within=10, scenarios=of(async_themes.asked_again, "asked"))
def what_a_failed_try_wrote_stays(patch: Patch) -> None:
    def forget(self: SharedBackend, unit: UnitOfWork) -> None:
        unit.is_over, unit.before, unit.timers = True, None, None
        self.written.pop(unit, None)

    patch.setattr(SharedBackend, "roll_back", forget)


@mutant(OUTPUT, within=60, scenarios=of(async_themes.asked_again, "reminded", "waking"))
def timers_of_unfinished_records_are_in_the_snapshot(patch: Patch) -> None:
    def change(self: SharedTimers, timer: Any, *, is_added: bool) -> bool:
        return self._inner.add(timer) if is_added else self._inner.remove(timer)

    patch.setattr(SharedTimers, "_change", change)


# ---- while it runs


@mutant(OUTPUT, EFFECTS, within=10, scenarios=of(async_themes.asked_again, "asked", "answered"))
def after_an_await_the_key_is_that_of_another_record(patch: Patch) -> None:
    """It is that of the record that began last."""
    get = OfCall.__get__

    def latest(self: OfCall, operator: Any, owner: Any = None) -> Any:
        call: Any = CURRENT.get()
        if operator is None or call is None:
            return get(self, operator, owner)
        if not hasattr(call, "met"):
            call.met = True
            operator.latest = call
        return self._of(operator.latest)

    patch.setattr(OfCall, "__get__", latest)


@mutant(OUTPUT, within=10, scenarios=of(async_themes.asked_again, "answered"))
def a_retry_loses_its_place(patch: Patch) -> None:
    settle = AsyncCalls._settle

    def behind(self: AsyncCalls, call: Call) -> None:
        settle(self, call)
        if not call.is_done:
            call.epoch.order.remove(call)
            call.epoch.order.append(call)

    patch.setattr(AsyncCalls, "_settle", behind)


@mutant(OUTPUT, within=10, scenarios=of(async_themes.asked_again, "asked"))
def the_next_record_of_a_key_does_not_wait_for_a_retry(patch: Patch) -> None:
    settle = AsyncCalls._settle

    def let_go(self: AsyncCalls, call: Call) -> None:
        settle(self, call)
        following, call.following = call.following, None
        if following is not None and not call.is_done:
            self._table.ready.append(following)

    patch.setattr(AsyncCalls, "_settle", let_go)


@mutant(OUTPUT, within=10, scenarios=of(async_themes.asked_again, "gathered", "reminded"))
def a_watermark_passes_records_in_flight(patch: Patch) -> None:
    patch.setattr(Operator, "_passes", lambda self, _: True)


@mutant(OUTPUT, CUT, within=10, scenarios=of(async_themes.asked_again, "answered", "asked"))
def the_data_ends_before_all_has_left(patch: Patch) -> None:
    advance = AsyncCalls.advance

    def at_once(self: AsyncCalls, watermark_ms: int) -> bool:
        if watermark_ms != END_OF_TIME:
            return advance(self, watermark_ms)
        self._take_restored(watermark_ms)
        return False

    patch.setattr(AsyncCalls, "advance", at_once)


@mutant(LIVENESS, within=40, scenarios=of(async_themes.asked_in_flight, "paid", "asked"))
def what_a_barrier_has_settled_leaves_with_the_next_one_alone(patch: Patch) -> None:
    patch.setattr(CallOrder, "may_leave", False)


@mutant(LIVENESS, within=10, scenarios=of(async_themes.asked_again, "silent"))
def what_is_never_answered_does_not_time_out(patch: Patch) -> None:
    patch.setattr(LoopRunner, "_expire", nothing)
