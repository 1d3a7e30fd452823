"""Mutants of state that expires: what `expiring` must find there, and must not."""

from __future__ import annotations

from typing import Any

from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.state.backends.backend import NO_TIME
from understudy.state.backends.expiring_state import ExpiringState
from understudy.state.backends.expiring_view import ExpiringView

from .mutant import OUTPUT, Patch, mutant


def expiring(seed: int) -> Scenario:
    """Any history of the job whose state expires."""
    return standard_history(seed, "expiring")


@mutant(OUTPUT, within=60, scenarios=expiring)
def a_restore_lets_state_live_anew(patch: Patch) -> None:
    load = ExpiringState.load

    def forgetful(self: Any, namespace: Any, keys: Any, values: Any, times: Any, clock: Any) -> None:
        load(self, namespace, keys, values, None, None)

    patch.setattr(ExpiringState, "load", forgetful)


@mutant(OUTPUT, within=10, scenarios=expiring)
def what_has_expired_is_returned_until_it_is_cleaned_up(patch: Patch) -> None:
    patch.setattr(ExpiringState, "_limit", lambda self: NO_TIME)


@mutant(OUTPUT, within=60, scenarios=expiring)
def a_snapshot_leaves_out_what_expires_soon(patch: Patch) -> None:
    """As if the barrier came half a life later."""
    limit_now = ExpiringState._limit_now
    view = ExpiringState.view

    def early(self: Any, some: Any = None) -> ExpiringView:
        with Patch.context() as within:
            within.setattr(ExpiringState, "_limit_now", lambda state: limit_now(state) + state._ttl.duration_ms // 2)
            return view(self, some)  # type: ignore[return-value]

    patch.setattr(ExpiringState, "view", early)
