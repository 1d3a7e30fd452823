"""JobMaster: one job from submission to its end. A value machine: events in, effects out.

It joins the machines that each know a part: ExecutionGraph (vertices, attempts, states), SlotPool (who runs where),
RestartStrategy (when, and whether, to try again) and CheckpointCoordinator (what to restore from). It touches no
clock, socket or disk.

    CREATED -> RUNNING -> FINISHED
                 |  ^
                 v  |
    RESTARTING --+       (a region was cancelled and waits for its delay, its tasks' end, and slots)
                 |
                 v
    FAILING -> FAILED,   CANCELLING -> CANCELED
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..messages import (
    AcknowledgeCheckpoint,
    CancelTask,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionAttemptId,
    ExecutionState,
    FailureCause,
    FirstBatchProcessed,
    Heartbeat,
    JobDetails,
    JobGraph,
    JobStatus,
    JobStatusChanged,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    RegisterTaskManager,
    StopTask,
    SubmitTask,
    TaskManagerChanged,
    TaskManagerExited,
    TaskManagerId,
    UpdateTaskExecutionState,
)
from ..state.checkpoint_ids import CheckpointIdCounter
from ..state.completed_checkpoints import CompletedCheckpointStore
from . import checkpoint_effects as checkpoint
from .checkpoint_coordinator import CheckpointCoordinator
from .checkpoint_plan import CheckpointPlan
from .errors import NoResourceAvailable
from .execution import Execution, UpdateResult
from .execution_graph import ExecutionGraph, Region
from .failure import lost_task_manager
from .failure_history import FailureHistory
from .job_effects import (
    CancelOverdue,
    JobEffect,
    JobEnded,
    KillTaskManager,
    RepeatFinalNotify,
    RestartDue,
    Schedule,
    SlotsOverdue,
    StartDue,
    StartTaskManager,
    TaskManagerLost,
    Tell,
    Tidings,
)
from .job_ending import JobEnding
from .job_graph import SubtaskKey
from .restart_strategy import RestartStrategy
from .restore_points import RestorePoints
from .slot_pool import SlotId, SlotPool
from .task_manager_roster import TaskManagerRoster

FINAL_NOTIFY_REPEAT_MS = 2000
NO_CHECKPOINT_LEFT = "no retained checkpoint can be read any more; to begin anew would repeat what was committed"


@dataclass(frozen=True, slots=True)
class JobMasterSettings:
    task_managers: int
    slots_per_task_manager: int
    slot_timeout_ms: int
    cancel_timeout_ms: int


class JobMaster:
    """Owns one job's machines. Each `on` takes one event and returns what has to be done, in order."""

    def __init__(
        self,
        graph: JobGraph,
        settings: JobMasterSettings,
        restart: RestartStrategy,
        ids: CheckpointIdCounter,
        store: CompletedCheckpointStore,
        new_id: Callable[[str], str],
    ) -> None:
        self.graph = ExecutionGraph(graph)
        self.coordinator = CheckpointCoordinator(graph.job_id, graph.checkpoints, CheckpointPlan.of(graph), ids, store)
        self.restarts = 0
        self._job = graph
        self._settings = settings
        self._restart = restart
        self._history = FailureHistory(graph.name)
        self._lost: dict[int, TaskManagerId] = {}
        """TaskManager index -> its last life, which was lost while its process may have been there."""
        self._new_id = new_id
        self._restore_points = RestorePoints(graph, store)
        self._slots = SlotPool()
        self._roster = TaskManagerRoster(settings.task_managers)
        self._waiting: set[Region] = set()
        """Regions whose delay is over and that wait for their old attempts to end and for slots."""
        self._delayed: set[Region] = set()
        self._ending = JobEnding(graph.job_id)
        self._generation = 0
        self._is_stopping = False
        self._completed = 0
        self._latest: CheckpointCompleted | None = None
        self._now_ms = 0.0
        self._wall_ms = 0
        self._effects: list[JobEffect] = []

    @property
    def status(self) -> JobStatus:
        return self.graph.status

    @property
    def failures(self) -> tuple[FailureCause, ...]:
        return self._history.all

    # -- events

    def start(self, now_ms: float, wall_ms: int) -> list[JobEffect]:
        """The job was submitted: ask for its TaskManagers."""
        self._begin(now_ms, wall_ms)
        self._effects.extend(self._roster.start_all())
        self._await_slots(self.graph.regions())
        return self._effects

    def cancel(self, now_ms: float, wall_ms: int) -> list[JobEffect]:
        """The user wants the job to end now. Idempotent."""
        self._begin(now_ms, wall_ms)
        if self.status in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING):
            self._stop_everything(JobStatus.CANCELLING)
        return self._effects

    def stop(self, now_ms: float, wall_ms: int) -> list[JobEffect]:
        """The user wants the job to end as if its data had: sources stop, a final checkpoint is taken. Idempotent."""
        self._begin(now_ms, wall_ms)
        if not self.status.is_terminal:
            self._is_stopping = True
            self._stop_sources()
        return self._effects

    def on(self, event: Any, now_ms: float, wall_ms: int) -> list[JobEffect]:
        """Take one event: a TaskManager's message, a timer that came due, or an answer of storage."""
        self._begin(now_ms, wall_ms)
        if self.status.is_terminal:
            if isinstance(event, (checkpoint.MetadataStored, checkpoint.MetadataFailed, AcknowledgeCheckpoint)):
                self._coordinate(event)
            return self._effects
        match event:
            case RegisterTaskManager():
                self._register(event)
            case TaskManagerLost():
                self._lose(event)
            case TaskManagerExited(index=index, reason=reason):
                self._process_ended(index, reason)
            case StartDue(index):
                self._effects.append(StartTaskManager(index))
            case Heartbeat():
                self._heartbeat(event)
            case UpdateTaskExecutionState():
                self._update(event)
            case NotifyEndOfData(attempt_id=attempt_id):
                self._end_of_data(attempt_id)
            case FirstBatchProcessed():
                self._effects.append(Tidings(event))
            case RestartDue(region):
                self._restart_due(region)
            case SlotsOverdue(generation):
                self._slots_overdue(generation)
            case CancelOverdue(generation):
                self._cancel_overdue(generation)
            case RepeatFinalNotify():
                self._repeat_final_notify()
            case _:
                self._coordinate(event)
        return self._effects

    def details(self) -> JobDetails:
        """Everything a client may want to know, now."""
        latest = self._latest
        return JobDetails(
            job_id=self._job.job_id,
            name=self._job.name,
            status=self.status,
            restarts=self.restarts,
            failures=self.failures,
            completed_checkpoints=self._completed,
            latest_checkpoint_id=latest.checkpoint_id if latest else CheckpointId(0),
            latest_checkpoint_path=latest.path if latest else "",
            tasks=tuple(
                metrics for metrics in self._roster.metrics() if self.graph.execution(metrics.attempt_id) is not None
            ),
        )

    def holder_of(self, operator: str, subtask_of: Callable[[int, int], int]) -> Execution | None:
        """The running attempt that hosts this operator; `subtask_of(parallelism, max_parallelism)` picks the
        subtask.
        """
        for vertex in self._job.vertices:
            if any(operator in (one.name, one.operator_id) for one in vertex.operators):
                return self.graph.current(vertex.vertex_id, subtask_of(vertex.parallelism, vertex.max_parallelism))
        return None

    # -- TaskManagers

    def _register(self, message: RegisterTaskManager) -> None:
        if message.task_manager_id in self._roster:
            return
        earlier = self._roster.register(message)
        if earlier is not None:
            self._lose(TaskManagerLost(earlier.task_manager_id, "another process took its place", process_ended=True))
        self._slots.add(message.task_manager_id, message.index, message.slots)
        self._tell_worker(message, registered=True, reason="")
        self._deploy_waiting()

    def _lose(self, event: TaskManagerLost) -> None:
        registration = self._roster.remove(event.task_manager_id)
        if registration is None:
            return
        self._slots.lose(event.task_manager_id)
        self._tell_worker(registration, registered=False, reason=event.reason)
        if not event.process_ended:
            self._lost[registration.index] = event.task_manager_id
            self._effects.append(KillTaskManager(registration.index))
        cause = lost_task_manager(event.task_manager_id, event.reason)
        for execution in self.graph.executions():
            if _host(execution) == event.task_manager_id and not execution.state.is_terminal:
                self._attempt_ended(execution, ExecutionState.FAILED, cause)

    def _process_ended(self, index: int, reason: str) -> None:
        lost = self._lost.pop(index, None)
        if lost is not None:
            self._history.process_ended(lost, reason)
        self._effects.append(self._roster.ended(index, reason))

    def _tell_worker(self, worker: RegisterTaskManager, *, registered: bool, reason: str) -> None:
        self._effects.append(
            Tidings(
                TaskManagerChanged(
                    self._job.job_id,
                    worker.task_manager_id,
                    worker.index,
                    worker.pid,
                    registered,
                    reason,
                    self._wall_ms,
                )
            )
        )

    def _heartbeat(self, message: Heartbeat) -> None:
        """Besides being alive, it says what its attempts do: a state report that was lost is made good here."""
        if not self._roster.heard(message):
            return
        for metrics in message.metrics:
            state = ExecutionState(metrics.status)
            if state in (ExecutionState.RUNNING, ExecutionState.FINISHED, ExecutionState.CANCELED):
                self._update(UpdateTaskExecutionState(self._job.job_id, metrics.attempt_id, state))

    # -- deployment

    def _await_slots(self, regions: Iterable[Region]) -> None:
        self._waiting.update(regions)
        self._effects.append(Schedule(self._settings.slot_timeout_ms, SlotsOverdue(self._generation)))
        self._deploy_waiting()

    def _deploy_waiting(self) -> None:
        """Deploy each waiting region whose old attempts have ended and for which there are slots."""
        for region in sorted(self._waiting, key=sorted):
            is_over = all(execution.state.is_terminal for execution in self.graph.executions(region))
            if is_over and region in self._waiting:  # the one before may have failed the job
                try:
                    placement = self._slots.place(self._job, region)
                except NoResourceAvailable:
                    continue
                self._waiting.discard(region)
                self._deploy(region, placement)

    def _deploy(self, region: Region, placement: Mapping[SubtaskKey, SlotId]) -> None:
        restored = self._restore_points.choose(region)
        if restored is None and self._restore_points.are_used_up:
            self._fail_job(FailureCause("NoRestorableCheckpoint", NO_CHECKPOINT_LEFT, cause=self._history.latest))
            return
        self._history.settled(region)
        self._ending.region_restored(region, restored.checkpoint_id if restored and restored.is_final else None)
        attempts = self.graph.new_attempts(region, self._new_id)
        deployments = self.graph.deployments(
            region,
            placement,
            self._roster.data_endpoints(),
            self._restore_points.states(restored, region) if restored else None,
            restored.checkpoint_id if restored else None,
        )
        if not self._waiting and not self._delayed:
            self._move(JobStatus.RUNNING)
        for execution, deployment in zip(attempts, deployments, strict=True):
            self._attempt_changed(execution)
            self._tell(execution, SubmitTask(deployment))

    # -- what attempts say

    def _update(self, message: UpdateTaskExecutionState) -> None:
        execution = self.graph.execution(message.attempt_id)
        if execution is None or execution.state.is_terminal:
            return
        if message.state.is_terminal:
            self._attempt_ended(execution, message.state, message.failure)
        elif self.graph.update(message.attempt_id, message.state) is UpdateResult.APPLIED:
            self._attempt_changed(execution)
            self._all_may_run(self.graph.region_of(execution.vertex_id))

    def _all_may_run(self, region: Region) -> None:
        """Once all tasks run, checkpoints start. A region restored from the final checkpoint has only to commit it."""
        if self.graph.all_running():
            self._coordinate(checkpoint.StartScheduler())
        if self._is_stopping:
            self._stop_sources()
        if self.graph.all_running(region):
            attempts = [execution.attempt_id for execution in self.graph.executions(region)]
            for notice in self._ending.notices_for(region, attempts, self._wall_ms):
                self._send(notice.attempt_id, notice)

    def _attempt_changed(self, execution: Execution) -> None:
        self._coordinate(
            checkpoint.AttemptChanged(
                execution.subtask,
                execution.attempt_id,
                execution.state is ExecutionState.RUNNING,
            )
        )

    def _attempt_ended(self, execution: Execution, state: ExecutionState, failure: FailureCause | None) -> None:
        was_running = execution.state is ExecutionState.RUNNING
        self.graph.update(execution.attempt_id, state, failure)
        self._ending.attempt_over(execution.attempt_id)
        self._slots.release(execution.subtask)
        self._coordinate(checkpoint.AttemptFailed(execution.attempt_id))
        if execution.state is ExecutionState.FAILED:
            if failure is not None and not was_running:
                self._restore_points.failed_to_restore(self.graph.region_of(execution.vertex_id), failure)
            self._fail(
                execution, failure or FailureCause("TaskCanceled", "a task was cancelled and nobody asked for it")
            )
        elif failure is not None:
            self._history.explain(self.graph.region_of(execution.vertex_id), failure)
        self._settle()

    def _end_of_data(self, attempt_id: ExecutionAttemptId) -> None:
        """An attempt that is given up says it in vain: the one that takes its place has its data to read again."""
        execution = self.graph.execution(attempt_id)
        if execution is None or execution.state is ExecutionState.CANCELING or execution.state.is_terminal:
            return
        if self._ending.data_ended(attempt_id, [execution.attempt_id for execution in self.graph.executions()]):
            self._coordinate(checkpoint.AllDataEnded())

    def _stop_sources(self) -> None:
        fed = {edge.target for edge in self._job.edges}
        for execution in self.graph.executions():
            if execution.vertex_id not in fed and execution.state is ExecutionState.RUNNING:
                self._tell(execution, StopTask(self._job.job_id, execution.attempt_id))

    # -- failure and the end

    def _fail(self, execution: Execution, cause: FailureCause) -> None:
        """One attempt failed: cancel its region and restart it, or give the job up."""
        if self.status not in (JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.CREATED):
            return
        region = self.graph.region_of(execution.subtask.vertex_id)
        if region in self._waiting or region in self._delayed:
            return
        cause = self._history.add(cause, region)
        delay_ms = self._restart.on_failure(self._now_ms)
        if delay_ms is None:
            self._stop_everything(JobStatus.FAILING, cause)
            return
        self.restarts += 1
        self._coordinate(checkpoint.RegionRestarting())
        self._move(JobStatus.RESTARTING, cause)
        self._delayed.add(region)
        self._generation += 1
        self._cancel(self.graph.executions(region))
        self._effects.append(Schedule(delay_ms, RestartDue(region)))

    def _fail_checkpoints(self, cause: FailureCause) -> None:
        """Too many checkpoints failed: restart the whole job, as after any failure. Flink: CheckpointFailureManager."""
        for region in self.graph.regions():
            executions = self.graph.executions(region)
            if executions:
                self._fail(executions[0], cause)

    def _fail_job(self, cause: FailureCause) -> None:
        self._stop_everything(JobStatus.FAILING, self._history.add(cause))

    def _stop_everything(self, status: JobStatus, cause: FailureCause | None = None) -> None:
        self._waiting.clear()
        self._delayed.clear()
        self._generation += 1
        self._coordinate(checkpoint.StopScheduler())
        self._move(status, cause)
        self._cancel(self.graph.executions())
        self._settle()

    def _cancel(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            if execution.cancel():
                self._tell(execution, CancelTask(self._job.job_id, execution.attempt_id))
            self._coordinate(checkpoint.AttemptFailed(execution.attempt_id))
        self._effects.append(Schedule(self._settings.cancel_timeout_ms, CancelOverdue(self._generation)))

    def _settle(self) -> None:
        """After an attempt's end: is the job over, or a region ready to be deployed again?"""
        executions = self.graph.executions()
        if not all(execution.state.is_terminal for execution in executions):
            self._deploy_waiting()
            return
        match self.status:
            case JobStatus.RUNNING if executions and self.graph.all_finished():
                self._conclude(JobStatus.FINISHED)
            case JobStatus.CANCELLING:
                self._conclude(JobStatus.CANCELED)
            case JobStatus.FAILING:
                self._conclude(JobStatus.FAILED)
            case _:
                self._deploy_waiting()

    def _conclude(self, status: JobStatus) -> None:
        cause = self._history.latest if status is JobStatus.FAILED else None
        self._coordinate(checkpoint.Shutdown(status))
        self._move(status, cause)
        self._effects.append(JobEnded(status, cause))

    def _move(self, status: JobStatus, cause: FailureCause | None = None) -> None:
        previous = self.status
        if previous is status:
            return
        self.graph.move(status)
        self._effects.append(Tidings(JobStatusChanged(self._job.job_id, status, previous, self._wall_ms, cause)))

    # -- timers

    def _restart_due(self, region: Region) -> None:
        if region in self._delayed:
            self._delayed.discard(region)
            self._await_slots([region])

    def _slots_overdue(self, generation: int) -> None:
        if generation != self._generation or not self._waiting:
            return
        for region in sorted(self._waiting, key=sorted):
            try:
                self._slots.place(self._job, region)
            except NoResourceAvailable as error:
                why = f"; {self._roster.last_stillbirth}" if self._roster.last_stillbirth else ""
                waited = f"after {self._settings.slot_timeout_ms} ms: {error}{why}"
                self._fail_job(FailureCause("NoResourceAvailable", waited))
                return

    def _cancel_overdue(self, generation: int) -> None:
        if generation != self._generation:
            return
        for execution in self.graph.executions():
            index = self._roster.index_of(_host(execution))
            if execution.state is ExecutionState.CANCELING and index is not None:
                self._effects.append(KillTaskManager(index))

    def _repeat_final_notify(self) -> None:
        unheard = self._ending.unheard()
        for notice in unheard:
            self._send(notice.attempt_id, notice)
        if unheard:
            self._effects.append(Schedule(FINAL_NOTIFY_REPEAT_MS, RepeatFinalNotify()))

    # -- the coordinator

    def _coordinate(self, event: checkpoint.CheckpointEvent | DeclineCheckpoint) -> None:
        for effect in self.coordinator.on(event, self._now_ms, self._wall_ms):
            match effect:
                case checkpoint.Send(attempt_id, message):
                    self._send(attempt_id, message)
                case checkpoint.Publish(message):
                    self._published(message)
                case checkpoint.FailJob(cause):
                    self._fail_checkpoints(cause)
                case checkpoint.Refused() | checkpoint.AckIgnored():
                    pass
                case _:
                    self._effects.append(effect)

    def _published(self, message: CheckpointCompleted | CheckpointAborted) -> None:
        if isinstance(message, CheckpointCompleted):
            self._completed += 1
            self._latest = message
        self._effects.append(Tidings(message))

    def _send(self, attempt_id: ExecutionAttemptId, message: Any) -> None:
        execution = self.graph.execution(attempt_id)
        if execution is None:
            return
        self._tell(execution, message)
        if isinstance(message, NotifyCheckpointComplete) and message.final and self._ending.told(message):
            self._effects.append(Schedule(FINAL_NOTIFY_REPEAT_MS, RepeatFinalNotify()))

    def _tell(self, execution: Execution, message: Any) -> None:
        assert execution.slot is not None, f"{execution!r} was never deployed"
        self._effects.append(Tell(execution.slot.task_manager_id, message))

    def _begin(self, now_ms: float, wall_ms: int) -> None:
        self._now_ms, self._wall_ms, self._effects = now_ms, wall_ms, []


def _host(execution: Execution) -> TaskManagerId:
    """The TaskManager it was deployed to; an id that no TaskManager has before that."""
    return execution.slot.task_manager_id if execution.slot is not None else TaskManagerId("")
