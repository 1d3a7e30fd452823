"""Mutants of the JobManager, TaskManagers, channels and key groups."""

from __future__ import annotations

from typing import Any

from understudy.actors.checkpoints.checkpoint_coordinator import CheckpointCoordinator
from understudy.actors.checkpoints.checkpoint_effects import CheckpointEffect
from understudy.actors.flow.elements import EndOfData, EndOfPartition
from understudy.actors.flow.outputs import TaskOutputs
from understudy.actors.flow.partitioner import HashByKey
from understudy.actors.jobs.execution_graph import ExecutionGraph
from understudy.actors.jobs.job_effects import JobEffect
from understudy.actors.jobs.job_master import JobMaster
from understudy.actors.jobs.slot_pool import SlotPool
from understudy.actors.jobs.task_manager_roster import TaskManagerRoster
from understudy.actors.tasks.task_manager import TaskManager
from understudy.runtime.simulation.world.faults import JOB_MANAGER, KillProcess, SlowLink
from understudy.runtime.transport.frames import FrameKind
from understudy.runtime.transport.remote_input import RemoteInputChannel
from understudy.runtime.transport.remote_output import RemoteOutputChannel

from .mutant import CALM, CUT, LIVENESS, PROCESSES, Patch, also, mutant, no_effects, nothing

# ---- the JobManager


@mutant(LIVENESS, within=40)
def tasks_of_a_lost_task_manager_are_not_failed(patch: Patch) -> None:
    lose = JobMaster._lose

    def overlook(self: JobMaster, event: Any) -> list[JobEffect]:
        self._attempt_ended = no_effects  # type: ignore[method-assign]
        effects = lose(self, event)
        del self._attempt_ended
        return effects

    patch.setattr(JobMaster, "_lose", overlook)


@mutant(LIVENESS, within=40)
def the_slots_of_ended_tasks_stay_taken(patch: Patch) -> None:
    patch.setattr(SlotPool, "release", nothing)


@mutant(LIVENESS, within=40)
def a_task_manager_that_ended_is_not_replaced(patch: Patch) -> None:
    ended = TaskManagerRoster.ended

    def forget(self: TaskManagerRoster, index: int, reason: str) -> Any:
        ended(self, index, reason)
        return []

    patch.setattr(TaskManagerRoster, "ended", forget)


@mutant(LIVENESS, within=40)
def reports_about_earlier_attempts_count_for_the_current_one(patch: Patch) -> None:
    def execution(self: ExecutionGraph, attempt_id: Any) -> Any:
        for subtask, earlier in self._earlier.items():
            if any(attempt_id == each.attempt_id for each in earlier):
                return self._current[subtask]
        return self._by_id.get(attempt_id)

    patch.setattr(ExecutionGraph, "execution", execution)


@mutant(LIVENESS, within=300)
def a_restart_does_not_give_up_pending_checkpoints(patch: Patch) -> None:
    restarting = CheckpointCoordinator._region_restarting

    def keep(self: CheckpointCoordinator) -> list[CheckpointEffect]:
        self._abort_all = no_effects  # type: ignore[method-assign]
        effects = restarting(self)
        del self._abort_all
        return effects

    patch.setattr(CheckpointCoordinator, "_region_restarting", keep)


# ---- TaskManagers


@mutant(PROCESSES, within=40, scenarios=also(lambda at_ms: KillProcess(at_ms, JOB_MANAGER)))
def a_task_manager_goes_on_without_a_job_manager(patch: Patch) -> None:
    end = TaskManager._end

    def stay(self: TaskManager, reason: str) -> None:
        if "JobManager" not in reason:
            end(self, reason)

    patch.setattr(TaskManager, "_end", stay)


@mutant(CALM, PROCESSES, LIVENESS, within=60)
def task_managers_send_no_heartbeats(patch: Patch) -> None:
    patch.setattr(TaskManager, "_beat", nothing)


@mutant(LIVENESS, within=20)
def the_partition_ends_before_the_final_checkpoint(patch: Patch) -> None:
    broadcast = TaskOutputs.broadcast

    def hasty(self: TaskOutputs, control: Any) -> None:
        broadcast(self, EndOfPartition() if isinstance(control, EndOfData) else control)

    patch.setattr(TaskOutputs, "broadcast", hasty)


# ---- channels


@mutant(LIVENESS, within=40)
def credit_is_not_returned(patch: Patch) -> None:
    patch.setattr(RemoteInputChannel, "_return_credit", nothing)


@mutant(LIVENESS, within=60)
def half_of_the_credit_is_dropped(patch: Patch) -> None:
    """Each time that it is returned."""
    tell = RemoteInputChannel._tell

    def stingy(self: RemoteInputChannel, kind: FrameKind, credit: int = 0) -> None:
        tell(self, kind, credit // 2 if kind is FrameKind.CREDIT else credit)

    patch.setattr(RemoteInputChannel, "_tell", stingy)


@mutant(CUT, within=40)
def a_lost_frame_is_not_noticed(patch: Patch) -> None:
    """Every tenth batch is lost on the way, and nobody looks at the numbers."""
    _unnumbered(patch)
    transmit = RemoteOutputChannel._transmit_to

    def lossy(self: RemoteOutputChannel, consumer: bytes, content: Any) -> None:
        if content.kind.is_batch and self._next_sent % 10 == 9:
            self._next_sent += 1
        else:
            transmit(self, consumer, content)

    patch.setattr(RemoteOutputChannel, "_transmit_to", lossy)


@mutant(CUT, within=40)
def a_repeated_frame_is_not_noticed(patch: Patch) -> None:
    _unnumbered(patch)
    transmit = RemoteOutputChannel._transmit_to

    def repeating(self: RemoteOutputChannel, consumer: bytes, content: Any) -> None:
        transmit(self, consumer, content)
        if content.kind.is_batch and self._next_sent % 10 == 9:
            transmit(self, consumer, content)

    patch.setattr(RemoteOutputChannel, "_transmit_to", repeating)


def _unnumbered(patch: Patch) -> None:
    problem_with = RemoteInputChannel._problem_with

    def credulous(self: RemoteInputChannel, header: Any, payload: Any) -> str | None:
        return problem_with(self, header._replace(sequence=self._next_received), payload)

    patch.setattr(RemoteInputChannel, "_problem_with", credulous)


@mutant(LIVENESS, within=60)
def the_loss_of_a_channel_is_not_told(patch: Patch) -> None:
    patch.setattr(RemoteInputChannel, "producer_lost", nothing)
    patch.setattr(RemoteOutputChannel, "consumer_lost", nothing)


@mutant(CUT, within=60, scenarios=also(lambda at_ms: SlowLink(at_ms, 10_000, 0, 1, 800), since=0.1, until=0.5))
def barriers_overtake_what_waits_for_credit(patch: Patch) -> None:
    forward = RemoteOutputChannel._forward

    def impatient(self: RemoteOutputChannel) -> None:
        forward(self)
        if self._consumer is not None:
            for content in [each for each in self._waiting if not each.kind.is_batch]:
                self._waiting.remove(content)
                self._transmit_to(self._consumer, content)

    patch.setattr(RemoteOutputChannel, "_forward", impatient)


# ---- key groups


@mutant(LIVENESS, within=20)
def records_are_dealt_out_by_another_rule_than_state(patch: Patch) -> None:
    split = HashByKey.split

    def elsewhere(self: HashByKey, batch: Any) -> Any:
        return [((channel + 1) % self._channels, part) for channel, part in split(self, batch)]

    patch.setattr(HashByKey, "split", elsewhere)
