"""Mutants of restoring, of sinks and of storage."""

from __future__ import annotations

from typing import Any

from understudy.actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from understudy.actors.restore import restored_operators
from understudy.actors.restore.restore_points import RestorePoints
from understudy.actors.tasks.task_checkpoints import TaskCheckpoints
from understudy.actors.tasks.task_state import TaskState
from understudy.runtime.connectors.files.file_sink import FileSink
from understudy.runtime.simulation.world.faults import PowerFailure, RottenFile
from understudy.state.checkpoints.assignment import assign_operator
from understudy.state.durable_files import DurableFiles

from .mutant import EARLY, LEAKED, LIVENESS, OUTPUT, TRANSACTIONS, UNREADABLE, Patch, also, mutant, nothing

# ---- restoring


@mutant(OUTPUT, within=20)
def nothing_is_restored(patch: Patch) -> None:
    patch.setattr(RestorePoints, "choose", nothing)


@mutant(OUTPUT, within=20)
def keyed_state_is_not_restored(patch: Patch) -> None:
    restore = TaskState.restore

    def forget(self: TaskState) -> None:
        for state in self._states.values():
            if state.keyed is not None:
                state.keyed.restore = nothing  # type: ignore[method-assign]
        restore(self)

    patch.setattr(TaskState, "restore", forget)


@mutant(OUTPUT, within=20)
def the_state_of_one_subtask_is_not_restored(patch: Patch) -> None:
    states = RestorePoints.states

    def all_but_one(self: RestorePoints, *args: Any) -> dict[Any, Any]:
        return {subtask: state for subtask, state in states(self, *args).items() if subtask.subtask_index != 1}

    patch.setattr(RestorePoints, "states", all_but_one)


@mutant(OUTPUT, within=20)
def subtasks_get_each_others_state(patch: Patch) -> None:
    assign = assign_operator
    patch.setattr(restored_operators, "assign_operator", lambda *args: list(reversed(assign(*args))))


@mutant(OUTPUT, within=20)
def sources_begin_anew(patch: Patch) -> None:
    patch.setattr(TaskState, "restored_offsets", lambda self: [])


@mutant(OUTPUT, within=20)
def sources_are_one_record_ahead(patch: Patch) -> None:
    """The offset in a snapshot is that of the record after the next."""
    offset_of = TaskCheckpoints._offset_of
    patch.setattr(
        TaskCheckpoints,
        "_offset_of",
        lambda self, *asked: {**offset_of(self, *asked), "next": offset_of(self, *asked)["next"] + 1},
    )


@mutant(OUTPUT, within=100, scenarios=also(RottenFile))
def what_came_after_the_restored_checkpoint_is_not_taken_back(patch: Patch) -> None:
    patch.setattr(FileSink, "_take_back_what_came_after", nothing)


@mutant(LIVENESS, within=100, scenarios=also(RottenFile))
def unreadable_checkpoints_are_restored_again_and_again(patch: Patch) -> None:
    patch.setattr(RestorePoints, "failed_to_restore", nothing)


# ---- sinks


@mutant(EARLY, within=20)
def sinks_commit_at_the_barrier(patch: Patch) -> None:
    on_checkpoint = TwoPhaseCommitSink.on_checkpoint

    def hasty(self: Any, checkpoint_id: Any) -> None:
        on_checkpoint(self, checkpoint_id)
        self.commit(self._pending[-1].handle)

    patch.setattr(TwoPhaseCommitSink, "on_checkpoint", hasty)


@mutant(EARLY, within=60)
def sinks_commit_more_than_was_completed(patch: Patch) -> None:
    """Also what was pre-committed for later checkpoints."""
    complete = TwoPhaseCommitSink.on_checkpoint_complete
    patch.setattr(
        TwoPhaseCommitSink, "on_checkpoint_complete", lambda self, checkpoint_id: complete(self, checkpoint_id + 100)
    )


@mutant(OUTPUT, TRANSACTIONS, within=100)
def sinks_do_not_commit_what_they_restored(patch: Patch) -> None:
    patch.setattr(TwoPhaseCommitSink, "_recover_and_commit", nothing)


@mutant(OUTPUT, TRANSACTIONS, within=100)
def sinks_abort_what_they_restored(patch: Patch) -> None:
    patch.setattr(TwoPhaseCommitSink, "_recover_and_commit", lambda self, one: self.recover_and_abort(one.handle))


@mutant(OUTPUT, TRANSACTIONS, within=100)
def sinks_forget_what_they_have_prepared(patch: Patch) -> None:
    """The transaction that a checkpoint covers is not in it."""
    patch.setattr(TwoPhaseCommitSink, "_uncommitted", lambda self: [] if self._current is None else [self._current])


@mutant(EARLY, within=60)
def sinks_commit_all_when_they_are_closed(patch: Patch) -> None:
    close = TwoPhaseCommitSink.close

    def finish(self: Any) -> None:
        for transaction in getattr(self, "_pending", ()):
            self.commit(transaction.handle)
        close(self)

    patch.setattr(TwoPhaseCommitSink, "close", finish)


@mutant(LEAKED, within=40)
def leftovers_of_earlier_attempts_stay(patch: Patch) -> None:
    patch.setattr(FileSink, "_remove_leftovers", nothing)


@mutant(LIVENESS, within=100)
def leftovers_are_removed_though_they_are_needed(patch: Patch) -> None:
    remove = FileSink._remove_leftovers

    def rash(self: FileSink, _needed: set[str]) -> None:
        for name in self._opened_directory().in_progress(""):
            if str(name).split("-")[0] != str(self.context.subtask_index):
                self._opened_directory().remove(name)
        remove(self, set())

    patch.setattr(FileSink, "_remove_leftovers", rash)


# ---- storage


@mutant(UNREADABLE, LIVENESS, within=60, scenarios=also(PowerFailure))
def files_are_not_synced(patch: Patch) -> None:
    patch.setattr(DurableFiles, "sync", lambda self, file: file.flush())


@mutant(LIVENESS, OUTPUT, within=60, scenarios=also(PowerFailure))
def renames_are_not_synced(patch: Patch) -> None:
    patch.setattr(DurableFiles, "sync_folder", nothing)


@mutant(LIVENESS, OUTPUT, within=60, scenarios=also(PowerFailure))
def new_folders_are_not_synced(patch: Patch) -> None:
    patch.setattr(DurableFiles, "sync_up", nothing)
