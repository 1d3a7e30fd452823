"""Mutants where histories seldom came: 1,500 of them found none of these. Each is looked for where it shows."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from understudy.actors.barriers.input_gate import InputGate
from understudy.actors.checkpoints.checkpoint_coordinator import CheckpointCoordinator
from understudy.actors.checkpoints.checkpoint_effects import Discard, Schedule
from understudy.actors.checkpoints.checkpoint_events import MetadataStored, RetryFinal
from understudy.actors.checkpoints.checkpoint_requests import CheckpointRequests
from understudy.actors.checkpoints.final_checkpoint import FinalCheckpoint
from understudy.actors.checkpoints.finished_checkpoints import FinishedCheckpoints
from understudy.actors.checkpoints.pending_checkpoint import PendingCheckpoint
from understudy.actors.flow.elements import CheckpointBarrier
from understudy.actors.job_manager import job_files
from understudy.actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from understudy.actors.restore.restore_points import RestorePoints
from understudy.actors.restore.restored_operators import RestoredOperators
from understudy.actors.tasks.task_loop import TaskLoop
from understudy.messages import (
    AbortReason,
    JobVertex,
    KeyedStateHandle,
    OperatorSubtaskState,
    StateHandle,
    SubtaskState,
)
from understudy.runtime.connectors.files.output_directory import OutputDirectory
from understudy.runtime.connectors.files.split_source import SplitSource
from understudy.runtime.simulation.histories import mix
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.world.faults import KillProcess
from understudy.state import CheckpointStorage, handle_bytes, storage
from understudy.state.checkpoints import assignment
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, StandaloneCompletedCheckpointStore
from understudy.state.checkpoints.shared_state import RestoredJob, SharedStateRegistry
from understudy.state.durable_files import DurableFiles

from .mutant import (
    CALM,
    CUT,
    DANGLING,
    KEPT,
    LEAKED,
    LIVENESS,
    LOST,
    OUTPUT,
    TRANSACTIONS,
    Patch,
    Scenarios,
    also,
    mutant,
    nothing,
)

TAKEN_BACK = "nothing-taken-back"
ENDED = "drained-is-the-end"


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
    verified = handle_bytes.verified

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
    def seal(self: OutputDirectory, file: Any, _name: str) -> int:
        size_bytes: int = file.tell()
        self._files.seal(file)
        self._files.sync_folder(self.root)
        return size_bytes

    patch.setattr(OutputDirectory, "seal", seal)


@mutant(LOST, within=20, scenarios=led_by(mix.unsealed, inline_threshold_bytes=1_000_000))
def the_folders_of_metadata_are_not_synced(patch: Patch) -> None:
    def unsealed(self: CheckpointStorage, path: str, data: bytes) -> None:
        with pytest.MonkeyPatch.context() as only_here:
            only_here.setattr(DurableFiles, "sync_folder", nothing)
            only_here.setattr(DurableFiles, "sync_up", nothing)
            write_sealed(self, path, data)

    write_sealed = CheckpointStorage.write_sealed
    patch.setattr(CheckpointStorage, "write_sealed", unsealed)


# ---- two savepoints at a time


@mutant(TAKEN_BACK, OUTPUT, within=20, scenarios=led_by(mix.crossing_savepoints))
def the_savepoint_that_is_complete_last_is_the_newest(patch: Patch) -> None:
    def replaced(self: StandaloneCompletedCheckpointStore, savepoint: CompletedCheckpoint) -> None:
        latest = self.latest()
        if latest is None or latest.checkpoint_id < savepoint.checkpoint_id:
            self._savepoint = savepoint

    patch.setattr(StandaloneCompletedCheckpointStore, "_add_savepoint", replaced)


# ---- restarts at a bad moment


@mutant(KEPT, LEAKED, within=20, scenarios=led_by(mix.while_storing))
def metadata_stored_after_a_restart_stays(patch: Patch) -> None:
    stored = CheckpointCoordinator._metadata_stored

    def forgotten(self: CheckpointCoordinator, event: MetadataStored) -> Any:
        return [] if self._abandoned.pop(event.checkpoint_id, None) else stored(self, event)

    patch.setattr(CheckpointCoordinator, "_metadata_stored", forgotten)


@mutant(DANGLING, within=20, scenarios=led_by(mix.while_storing))
def a_restart_takes_the_state_whose_metadata_is_being_stored(patch: Patch) -> None:
    abort = CheckpointCoordinator._abort

    def hasty(self: CheckpointCoordinator, pending: PendingCheckpoint, *more: Any) -> Any:
        states = pending.states() if pending.is_storing else ()
        return [*abort(self, pending, *more), *([Discard(states, "")] if states else [])]

    patch.setattr(CheckpointCoordinator, "_abort", hasty)


@mutant(OUTPUT, CUT, LIVENESS, within=20, scenarios=led_by(mix.behind_the_data))
def data_that_had_ended_counts_as_ended_after_a_restart(patch: Patch) -> None:
    patch.setattr(FinalCheckpoint, "restarting", nothing)


# ---- around a restored job's first checkpoint


@mutant(LIVENESS, LOST, within=20, scenarios=led_by(mix.around_the_first_checkpoint))
def a_job_does_not_keep_the_savepoint_that_it_was_started_from(patch: Patch) -> None:
    register = SharedStateRegistry.register

    def others(self: SharedStateRegistry, owner: Any, files: Any) -> None:
        if not isinstance(owner, RestoredJob):
            register(self, owner, files)

    patch.setattr(SharedStateRegistry, "register", others)


@mutant(TAKEN_BACK, OUTPUT, within=40, scenarios=led_by(mix.around_the_first_checkpoint, retained_checkpoints=1))
def a_job_goes_back_behind_its_first_checkpoint(patch: Patch) -> None:
    patch.setattr(RestorePoints, "completed", nothing)


# ---- behind the end of data


@mutant(ENDED, within=20, scenarios=led_by(mix.drained))
def a_rescaled_job_that_was_drained_runs_on(patch: Patch) -> None:
    """Its subtasks do not hear that their data had ended."""
    vertex_states = RestoredOperators._vertex_states

    def running(self: RestoredOperators, vertex: JobVertex) -> Iterator[SubtaskState]:
        old = self._checkpoint.vertices[vertex.vertex_id].parallelism
        for state in vertex_states(self, vertex):
            yield state if old == vertex.parallelism else replace(state, data_ended=False)

    patch.setattr(RestoredOperators, "_vertex_states", running)


# ---- splits, and transactions of others


@mutant(OUTPUT, within=40, scenarios=led_by(mix.rescaled))
def a_split_that_was_begun_is_read_from_its_beginning(patch: Patch) -> None:
    rescale = SplitSource.rescale

    def begun(self: SplitSource, offsets: Any) -> None:
        rescale(self, offsets)
        self._begun = [[index, 0] for index, _ in self._begun]

    patch.setattr(SplitSource, "rescale", begun)


@mutant(TRANSACTIONS, within=20)
def the_open_transaction_of_another_attempt_is_not_aborted(patch: Patch) -> None:
    transact = TwoPhaseCommitSink._transact

    def others(self: TwoPhaseCommitSink[Any], method: str, *arguments: Any) -> Any:
        return None if method == "recover_and_abort" else transact(self, method, *arguments)

    patch.setattr(TwoPhaseCommitSink, "_transact", others)


# ---- needless trouble


@mutant(CALM, within=20, scenarios=calm)
def every_third_checkpoint_is_declined(patch: Patch) -> None:
    trigger = TaskLoop.trigger

    def moody(self: TaskLoop, barrier: CheckpointBarrier) -> None:
        if barrier.checkpoint_id % 3 == 2:
            self.checkpoints.decline(barrier.checkpoint_id, AbortReason.NOT_RUNNING, "not now")
        else:
            trigger(self, barrier)

    patch.setattr(TaskLoop, "trigger", moody)


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


# ---- answers that come late


@mutant(KEPT, LEAKED, DANGLING, within=60, scenarios=led_by(mix.while_storing))
def a_pointer_that_is_stored_after_its_savepoint_was_given_up_stays(patch: Patch) -> None:
    give_up = CheckpointCoordinator._give_up

    def without(self: CheckpointCoordinator, pending: Any, path: str = "", _: tuple[str, ...] = ()) -> list[Discard]:
        return give_up(self, pending, path)

    patch.setattr(CheckpointCoordinator, "_give_up", without)


@mutant(KEPT, LEAKED, within=60, scenarios=led_by(mix.overtaken_savepoints))
def state_that_comes_when_its_checkpoint_is_forgotten_stays(patch: Patch) -> None:
    """More have ended since than are remembered."""
    settle = FinishedCheckpoints.settle

    def remembered(self: FinishedCheckpoints, ack: Any) -> bool:
        return ack.checkpoint_id in self and settle(self, ack)

    patch.setattr(FinishedCheckpoints, "settle", remembered)
