"""Mutants of checkpoints that write what has changed: the runs of keyed state, and the files that checkpoints share."""

from __future__ import annotations

from typing import Any

from understudy.actors.checkpoints.checkpoint_effects import Discard
from understudy.actors.checkpoints.checkpoint_files import CheckpointFiles
from understudy.runtime.simulation.histories import mix
from understudy.runtime.simulation.world.faults import KillProcess
from understudy.state.backends.changed_keys import NotingTimerQueue, RunKeys
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.backends.run_ledger import RunLedger
from understudy.state.backends.timer_queue import TimerQueue
from understudy.state.checkpoints.shared_state import DoomedMetadata, SharedStateRegistry

from .blind_spot_mutants import led_by
from .mutant import CUT, DANGLING, LIVENESS, LOST, OUTPUT, TRANSACTIONS, Patch, also, mutant


@mutant(OUTPUT, CUT, TRANSACTIONS, within=60, scenarios=also(lambda at_ms: KillProcess(at_ms, 0), since=0.6))
def keys_that_hold_nothing_any_more_are_not_in_a_run(patch: Patch) -> None:
    """So they hold again what they held in the run before."""
    frozen = HeapBackend._frozen

    def held(self: HeapBackend, some: list[Any] | None) -> Any:
        writer = frozen(self, some)
        for view in writer._views:
            if isinstance(view, RunKeys):
                there = {key for state in self._states.values() for keys in state.namespaces.values() for key in keys}
                there |= {key for queue in self._timers or () for _, key, _ in queue}
                view._keys = [key for key in view._keys if key in there]
        return writer

    patch.setattr(HeapBackend, "_frozen", held)


@mutant(OUTPUT, CUT, TRANSACTIONS, within=60, scenarios=also(lambda at_ms: KillProcess(at_ms, 0), since=0.6))
def changes_of_a_checkpoint_that_was_given_up_are_in_no_run(patch: Patch) -> None:
    plan = RunLedger.plan

    def forgetful(self: RunLedger, *arguments: Any) -> Any:
        self._unconfirmed[:] = False
        return plan(self, *arguments)

    patch.setattr(RunLedger, "plan", forgetful)


@mutant(OUTPUT, CUT, within=60, scenarios=led_by(mix.between_timers))
def a_key_whose_timer_fires_is_not_in_the_next_run(patch: Patch) -> None:
    patch.setattr(NotingTimerQueue, "due", TimerQueue.due)


@mutant(LOST, DANGLING, LIVENESS, within=20, scenarios=led_by(mix.rescaled))
def a_run_of_the_new_checkpoint_goes_with_the_old_one(patch: Patch) -> None:
    discard = CheckpointFiles._discard

    def greedy(self: CheckpointFiles, *arguments: Any) -> Discard | None:
        found = discard(self, *arguments)
        return None if found is None else Discard(found.states, found.metadata_path, frozenset(), found.savepoints)

    patch.setattr(CheckpointFiles, "_discard", greedy)


@mutant(DANGLING, within=20, scenarios=led_by(mix.rescaled))
def a_run_goes_before_the_metadata_of_an_older_checkpoint(patch: Patch) -> None:
    register = SharedStateRegistry.register

    def hasty(self: SharedStateRegistry, owner: Any, files: Any) -> None:
        if not isinstance(owner, DoomedMetadata):
            register(self, owner, files)

    patch.setattr(SharedStateRegistry, "register", hasty)
