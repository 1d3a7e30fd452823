"""Mutants where histories seldom came: 1,500 of them found none of these. Each is looked for where it shows."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from understudy.actors.barriers.input_gate import InputGate
from understudy.actors.checkpoints.checkpoint_effects import Discard, Schedule
from understudy.actors.checkpoints.checkpoint_events import RetryFinal
from understudy.actors.checkpoints.checkpoint_requests import CheckpointRequests
from understudy.actors.flow.elements import CheckpointBarrier
from understudy.actors.job_manager import job_files
from understudy.actors.restore.restore_points import RestorePoints
from understudy.actors.tasks.task import Task
from understudy.messages import AbortReason, KeyedStateHandle, OperatorSubtaskState, StateHandle
from understudy.runtime.connectors.files.output_directory import OutputDirectory
from understudy.runtime.simulation.histories import mix
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.world.faults import KillProcess
from understudy.state import CheckpointStorage, storage
from understudy.state.checkpoints import assignment
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint

from .mutant import CALM, LIVENESS, OUTPUT, Patch, Scenarios, also, mutant

DANGLING = "no-dangling-metadata"
TAKEN_BACK = "nothing-taken-back"


def led_by(theme: mix.Theme, **workload: Any) -> Scenarios:
    """Histories of one theme."""

    def scenario(seed: int) -> Scenario:
        drawn = mix.themed(theme, seed)
        return replace(drawn, workload=replace(drawn.workload, **workload))

    return scenario


def calm(seed: int) -> Scenario:
    """Nothing goes wrong."""
    return replace(Scenario.of(seed), faults=(), actions=())


# ---- in flight


@mutant(OUTPUT, within=40, scenarios=led_by(mix.in_flight))
def only_the_first_batch_in_flight_is_restored(patch: Patch) -> None:
    restore = InputGate.restore

    def forgetful(self: InputGate, in_flight: Any) -> None:
        restore(self, {channel: list(batches)[:1] for channel, batches in in_flight.items()})

    patch.setattr(InputGate, "restore", forgetful)


@mutant(OUTPUT, within=60, scenarios=led_by(mix.in_flight))
def batches_in_flight_are_restored_in_reverse(patch: Patch) -> None:
    restore = InputGate.restore

    def reverse(self: InputGate, in_flight: Any) -> None:
        restore(self, {channel: list(reversed(batches)) for channel, batches in in_flight.items()})

    patch.setattr(InputGate, "restore", reverse)


# ---- rescaling


@mutant(OUTPUT, within=20, scenarios=led_by(mix.rescaled))
def the_remainder_of_a_list_is_not_dealt_out(patch: Patch) -> None:
    split = assignment._split

    def even(lists: assignment.Lists, shares: assignment.Shares, start: int) -> int:
        items = sum(len(handle.offsets) - 1 for _, handle in lists)
        superfluous = items % len(shares)
        kept = []
        for index, handle in reversed(lists):
            dropped = min(superfluous, len(handle.offsets) - 1)
            superfluous -= dropped
            kept.append((index, replace(handle, offsets=handle.offsets[: len(handle.offsets) - dropped])))
        return split(kept[::-1], shares, start)

    patch.setattr(assignment, "_split", even)


# ---- what lies where


@mutant(OUTPUT, within=60, scenarios=led_by(mix.rescaled, inline_threshold_bytes=1_500))
def inline_state_is_not_dealt_out(patch: Patch) -> None:
    own_keyed = assignment._own_keyed

    def in_files(old: list[OperatorSubtaskState], own: range) -> Iterator[KeyedStateHandle]:
        return (handle for handle in own_keyed(old, own) if handle.handle.path is not None)

    patch.setattr(assignment, "_own_keyed", in_files)


@mutant(OUTPUT, LIVENESS, within=60, scenarios=led_by(mix.rotten))
def checksums_are_not_compared(patch: Patch) -> None:
    verified = storage.verified

    def trusting(data: bytes, handle: StateHandle) -> bytes:
        return verified(data, replace(handle, checksum=zlib.crc32(data)))

    patch.setattr(storage, "verified", trusting)


@mutant(DANGLING, within=20, scenarios=led_by(mix.powerless))
def state_is_deleted_before_its_metadata(patch: Patch) -> None:
    def hasty(checkpoints: CheckpointStorage, discard: Discard) -> None:
        job_files.delete_files(checkpoints, [path for path in job_files._paths(discard) if path not in discard.kept])
        if discard.metadata_path:
            checkpoints.delete(discard.metadata_path)

    patch.setattr(job_files, "delete_discarded", hasty)


# ---- going back


@mutant(TAKEN_BACK, within=40, scenarios=also(lambda at_ms: KillProcess(at_ms, 0), since=0.6))
def the_second_newest_checkpoint_is_restored(patch: Patch) -> None:
    """What its job commits is right all the same: what came after that checkpoint is taken back, and comes again."""

    def second(self: RestorePoints) -> CompletedCheckpoint | None:
        found = [one for one in self._restorable() if one.checkpoint_id not in self._condemned]
        return found[min(1, len(found) - 1)] if found else None

    patch.setattr(RestorePoints, "_newest", second)


# ---- power failures right after a sync


@mutant(LIVENESS, OUTPUT, within=20, scenarios=led_by(mix.powerless))
def the_folder_of_sealed_output_is_not_synced(patch: Patch) -> None:
    def seal(self: OutputDirectory, file: Any) -> None:
        self._files.seal(file)
        self._files.sync_folder(self.root)

    patch.setattr(OutputDirectory, "seal", seal)


# ---- needless trouble


@mutant(CALM, within=20, scenarios=calm)
def every_third_checkpoint_is_declined(patch: Patch) -> None:
    trigger = Task._trigger

    def moody(self: Task, barrier: CheckpointBarrier, stop: bool) -> None:
        if barrier.checkpoint_id % 3 == 2:
            self._own_checkpoints().decline(barrier.checkpoint_id, AbortReason.NOT_RUNNING, "not now")
        else:
            trigger(self, barrier, stop)

    patch.setattr(Task, "_trigger", moody)


@mutant(CALM, within=20, scenarios=calm)
def the_final_checkpoint_comes_a_minute_late(patch: Patch) -> None:
    try_final = CheckpointRequests._try_final
    late: set[CheckpointRequests] = set()

    def waiting(self: CheckpointRequests, *arguments: Any) -> Any:
        if self in late:
            return try_final(self, *arguments)
        late.add(self)
        return [Schedule(60_000, RetryFinal())]

    patch.setattr(CheckpointRequests, "_try_final", waiting)
