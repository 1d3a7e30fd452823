"""Mutants of checkpoints that write what has changed: the runs of keyed state, and the files that checkpoints share."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from understudy.actors.checkpoints.checkpoint_effects import Discard
from understudy.actors.checkpoints.checkpoint_files import CheckpointFiles
from understudy.runtime.simulation.histories import mix
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.topologies import Workload
from understudy.runtime.simulation.world.faults import KillProcess, SlowStorage
from understudy.state.backends.changed_keys import RunKeys
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.backends.run_ledger import RunLedger
from understudy.state.checkpoints.shared_state import DoomedMetadata, SharedStateRegistry

from .blind_spot_mutants import led_by
from .mutant import CUT, DANGLING, LIVENESS, LOST, OUTPUT, TRANSACTIONS, Patch, mutant


def forgetful(seed: int) -> Scenario:
    """Of 48 keys of the job some change from checkpoint to checkpoint, and its TaskManager is killed now and then."""
    chance = random.Random(f"forgetful {seed}")
    workload = Workload(
        records=140,
        records_per_second=20.3,
        parallelism=chance.choice((1, 2)),
        checkpoint_interval_ms=chance.choice((300, 500)),
        retained_checkpoints=chance.choice((1, 2, 3)),
        max_concurrent_checkpoints=chance.choice((1, 2)),
        batch_rows=chance.choice((1, 4)),
    )
    at_ms = [round(chance.uniform(share, share + 0.3) * workload.duration_ms, 1) for share in (0.4, 0.8)]
    faults = tuple(KillProcess(each, 0) for each in at_ms)
    return Scenario(seed, "forgetful", workload, task_managers=1, slots=2, faults=faults)


def overlapping(seed: int) -> Scenario:
    """The same, where storage is slow: most checkpoints begin before the one before them is complete."""
    plain, chance = forgetful(seed), random.Random(f"overlapping {seed}")
    workload = replace(
        plain.workload, records_per_second=10.3, checkpoint_interval_ms=300, max_concurrent_checkpoints=3
    )
    span_ms = workload.duration_ms
    slow = SlowStorage(round(0.2 * span_ms, 1), round(0.8 * span_ms, 1), chance.choice((60.0, 100.0, 150.0)))
    kills = [KillProcess(round(chance.uniform(share, share + 0.2) * span_ms, 1), 0) for share in (0.4, 0.6, 0.8)]
    return replace(plain, workload=workload, faults=(slow, *kills))


@mutant(OUTPUT, CUT, TRANSACTIONS, within=20, scenarios=forgetful)
def keys_that_hold_nothing_any_more_are_not_in_a_run(patch: Patch) -> None:
    """So they hold again what they held in the run before."""
    frozen = HeapBackend._frozen

    def held(self: HeapBackend, some: list[Any] | None) -> Any:
        writer = frozen(self, some)
        for view in writer._views:
            if isinstance(view, RunKeys):
                there = {key for state in self._states.values() for keys in state.namespaces.values() for key in keys}
                view._keys = [key for key in view._keys if key in there]
        return writer

    patch.setattr(HeapBackend, "_frozen", held)


@mutant(OUTPUT, within=10, scenarios=overlapping)
def a_change_is_written_once_though_its_checkpoint_is_not_complete(patch: Patch) -> None:
    """The next checkpoint, which completes, has neither the change nor the run with it."""
    take_changes = RunLedger._take_changes

    def only_new(self: RunLedger, count: int) -> None:
        self._unconfirmed[:] = False
        take_changes(self, count)

    patch.setattr(RunLedger, "_take_changes", only_new)


@mutant(LOST, DANGLING, LIVENESS, within=20, scenarios=led_by(mix.rescaled))
def a_run_of_the_new_checkpoint_goes_with_the_old_one(patch: Patch) -> None:
    discard = CheckpointFiles._discard

    def greedy(self: CheckpointFiles, *arguments: Any) -> Discard | None:
        found = discard(self, *arguments)
        return None if found is None else Discard(found.states, found.metadata_path, frozenset(), found.savepoints)

    patch.setattr(CheckpointFiles, "_discard", greedy)


@mutant(DANGLING, within=100, scenarios=led_by(mix.overtaken_savepoints))
def a_run_goes_before_the_metadata_of_an_older_checkpoint(patch: Patch) -> None:
    register = SharedStateRegistry.register

    def hasty(self: SharedStateRegistry, owner: Any, files: Any) -> None:
        if not isinstance(owner, DoomedMetadata):
            register(self, owner, files)

    patch.setattr(SharedStateRegistry, "register", hasty)
