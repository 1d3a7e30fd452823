"""JobMaster: one job from submission to its end. A value machine: events in, effects out.

It joins the machines that each know a part: ExecutionGraph (vertices, attempts, states), SlotPool (who runs where),
RestartStrategy (when, and whether, to try again), JobCourse (the job's status) and CheckpointCoordinator (what to
restore from). It touches no clock, socket or disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from ...messages import (
    AcknowledgeCheckpoint,
    CheckpointId,
    ExecutionState,
    FailureCause,
    FailureKind,
    FirstBatchProcessed,
    Heartbeat,
    JobGraph,
    JobStatus,
    NotifyEndOfData,
    RegisterTaskManager,
    ReportThrottled,
    ReportWatermark,
    RequestPermits,
    SubmitTask,
    TaskManagerAwaited,
    TaskManagerExited,
    UpdateTaskExecutionState,
)
from ...state.checkpoints.high_availability import KeptJob
from ..checkpoints import checkpoint_events as checkpoint
from ..checkpoints.checkpoint_coordinator import CheckpointCoordinator
from ..checkpoints.checkpoint_effects import AnswerSavepoint, FailJob, Publish, Schedule
from ..checkpoints.checkpoint_files import CheckpointFiles
from ..checkpoints.checkpoint_plan import CheckpointPlan
from ..checkpoints.savepoint_request import SavepointRequest
from ..failure import canceled_without_order, ended_unheard, lost_task_manager
from ..job_graph import Region, SubtaskKey
from ..restore.restore_points import Origin, RestorePoints
from .adoption import adopted_tasks, given_up
from .attempt_orders import AttemptOrders
from .execution import Execution, UpdateResult
from .execution_graph import ExecutionGraph
from .job_checkpoints import JobCheckpoints
from .job_course import JobCourse
from .job_effects import (
    CancelOverdue,
    ExitOverdue,
    FailureKnown,
    JobDoomed,
    JobEffect,
    JobEnded,
    JobEvent,
    JobNews,
    OwnTimerEvent,
    PermitsDue,
    RepeatFinalNotify,
    RestartDue,
    SlotsOverdue,
    StartDue,
    StartTaskManager,
    TaskManagerLost,
)
from .job_ending import JobEnding
from .job_failures import JobFailures
from .job_report import JobReport
from .region_deployment import RegionDeployer, no_checkpoint_left
from .region_restarts import RegionRestarts
from .restart_strategy import RestartStrategy
from .shared_pace import SharedPace
from .slot_pool import SlotId, SlotPool
from .task_manager_roster import TaskManagerRoster, changed, none_can_start

_HEARD_AFTER_THE_END = (
    AcknowledgeCheckpoint,
    checkpoint.MetadataStored,
    checkpoint.MetadataFailed,
    checkpoint.CheckpointRequested,
    checkpoint.TriggerSavepointNow,
)
"""They bring state that has to be discarded, or want an answer."""

_DEPLOYED = (ExecutionState.DEPLOYING, ExecutionState.INITIALIZING, ExecutionState.RUNNING)

EXIT_WAIT_MS = 2_000
"""How long a job that fails of a lost TaskManager waits for word of how its process ended, which its error says."""

_ALIVE = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING)


@dataclass(frozen=True, slots=True)
class JobMasterSettings:
    task_managers: int
    slots_per_task_manager: int
    slot_timeout_ms: int
    cancel_timeout_ms: int


Effects: TypeAlias = list[JobEffect]


class JobMaster:
    """Owns one job's machines. Each `on` takes one event and returns what has to be done, in order."""

    def __init__(
        self,
        graph: JobGraph,
        settings: JobMasterSettings,
        restart: RestartStrategy,
        kept: KeptJob,
        new_id: Callable[[str], str],
        origin: Origin | None = None,
        files: CheckpointFiles | None = None,
    ) -> None:
        self.graph = ExecutionGraph(graph, kept.attempt_numbers)
        self._restore_points = points = RestorePoints(graph, kept.checkpoints, origin)
        plan, before = CheckpointPlan.of(graph), points.predecessors
        self.coordinator = CheckpointCoordinator(
            graph.job_id, graph.checkpoints, plan, kept.checkpoint_ids, kept.checkpoints, files, before
        )
        self._job, self._settings = graph, settings
        self._slots = SlotPool()
        self._roster = TaskManagerRoster(settings.task_managers)
        self._failures = JobFailures(graph, self._roster)
        self._restarts = RegionRestarts(graph, self.graph, self._slots, restart, settings.slot_timeout_ms)
        self._ending = JobEnding(graph, self.graph)
        self._orders = AttemptOrders(graph.job_id, self.graph, self._ending)
        self._pace = SharedPace(graph, self.graph, self._orders)
        self._course = JobCourse(graph.job_id, self.graph, self._restarts)
        self._deployer = RegionDeployer(self.graph, self._roster, points, new_id)
        self._checkpoints = JobCheckpoints(self.coordinator, self._orders, self._restore_points, self._failures)
        statistics, history = self.coordinator.statistics, self._failures.history
        self.report = JobReport(graph, self.graph, self._roster, history, self._restarts, statistics, points)
        self._now_ms, self._wall_ms = 0.0, 0

    @property
    def status(self) -> JobStatus:
        return self.graph.status

    @property
    def restarts(self) -> int:
        return self._restarts.count

    @property
    def failures(self) -> tuple[FailureCause, ...]:
        return self._failures.history.all

    @property
    def latest_failure(self) -> FailureCause | None:
        return self._failures.history.latest

    @property
    def next_restored(self) -> CheckpointId | None:
        """The checkpoint that the next restart goes back to; None: the beginning."""
        return self._restore_points.next_id

    # -- what users want

    def start(self, now_ms: float, wall_ms: int) -> Effects:
        """The job was submitted: ask for its TaskManagers."""
        self._begin(now_ms, wall_ms)
        awaited = self._restarts.await_slots(self.graph.regions())
        return [*self._roster.start_all(), awaited, *self._deploy_waiting()]

    def adopt(self, offers: Sequence[RegisterTaskManager], now_ms: float, wall_ms: int) -> Effects:
        """In the place of `start`: go on with what an earlier leader has deployed. `offers`: those of an Adoption
        without an obstacle. TaskManagers of the job that are not among them had no task, and are started.
        """
        self._begin(now_ms, wall_ms)
        effects: Effects = []
        for offer in offers:
            self._roster.register(offer)
            self._slots.add(offer.task_manager_id, offer.index, offer.slots)
            effects.append(Publish(changed(offer, True, "", wall_ms)))
        tasks = list(adopted_tasks(offers))
        self._slots.adopt(self._job, {each.subtask: each.slot for each in tasks})
        for execution in self.graph.adopt(tasks):
            effects.extend(self._attempt_changed(execution))
        newest = next(self.coordinator.store.restorable(), None)
        lost = given_up(tasks, newest.checkpoint_id if newest else CheckpointId(0))
        effects.extend(self._coordinate(checkpoint.JobAdopted(tuple(lost))))
        effects.extend([*self._roster.start_all(), *self._course.runs(wall_ms)])
        effects.extend(self._coordinate(checkpoint.StartScheduler()))
        have_ended = [self._ending.data_ended(each.task.attempt_id) for each in tasks if each.task.data_ended]
        return [*effects, *(self._coordinate(checkpoint.AllDataEnded()) if any(have_ended) else [])]

    def cancel(self, now_ms: float, wall_ms: int) -> Effects:
        """The user wants the job to end now. Idempotent."""
        self._begin(now_ms, wall_ms)
        return self._stop_everything(JobStatus.CANCELLING) if self.status in _ALIVE else []

    def stop(self, now_ms: float, wall_ms: int, savepoint: SavepointRequest | None = None) -> Effects:
        """The user wants the job to end as if its data had: sources stop, a final checkpoint is taken. Idempotent.

        With a request that checkpoint is this savepoint as well, and answers it: exactly one `AnswerSavepoint`, at once
        when it cannot be, else when the checkpoint has completed or the job has ended otherwise.
        """
        self._begin(now_ms, wall_ms)
        effects = [] if savepoint is None else self._coordinate(checkpoint.FinalSavepointWanted(savepoint))
        is_refused = any(isinstance(effect, AnswerSavepoint) for effect in effects)
        if self.status.is_terminal or is_refused:
            return effects
        self._ending.is_stopping = True
        return [*effects, *self._coordinate(checkpoint.JobStopping()), *self._orders.stop_sources()]

    # -- events

    def on(self, event: JobEvent, now_ms: float, wall_ms: int) -> Effects:
        """Take one event: a TaskManager's message, a timer that came due, or an answer of storage."""
        self._begin(now_ms, wall_ms)
        if self.status.is_terminal:
            return self._on_after_the_end(event)
        match event:
            case RegisterTaskManager():
                return self._register(event)
            case TaskManagerLost():
                return self._lose(event)
            case TaskManagerExited():
                return self._exited(event)
            case TaskManagerAwaited(index=index, why=why):
                self._roster.awaited(index, why)
                return []
            case Heartbeat():
                return [effect for report in self._roster.heard(event) for effect in self._update(report)]
            case UpdateTaskExecutionState():
                return self._update(event)
            case NotifyEndOfData(attempt_id=attempt_id):
                has_all_ended = self._ending.data_ended(attempt_id)
                return self._coordinate(checkpoint.AllDataEnded()) if has_all_ended else []
            case FirstBatchProcessed():
                return [Publish(event)]
            case ReportWatermark() | RequestPermits() | ReportThrottled() | PermitsDue():
                return [*self._pace.on(event, now_ms)]
            case JobDoomed(failure):
                return self._fail_job(failure) if self.status in _ALIVE else []
            case StartDue() | RestartDue() | SlotsOverdue() | CancelOverdue() | RepeatFinalNotify() | ExitOverdue():
                return self._timer_due(event)
            case _:
                return self._coordinate(event)

    def _on_after_the_end(self, event: JobEvent) -> Effects:
        if isinstance(event, _HEARD_AFTER_THE_END):
            return self._coordinate(event)
        if isinstance(event, TaskManagerExited):
            return [*self._failures.loss_explained(event.index, event.reason)]
        return []

    def _timer_due(self, timer: OwnTimerEvent) -> Effects:
        match timer:
            case StartDue(index):
                return [StartTaskManager(index)] if self.status in _ALIVE else []
            case RestartDue(region):
                return [*self._restarts.delay_is_over(region), *self._deploy_waiting()]
            case SlotsOverdue():
                failure = self._restarts.overdue(timer, self._roster.why_missing)
                return [] if failure is None else self._fail_job(failure)
            case CancelOverdue():
                is_current = self._restarts.is_current(timer)
                return [*self._roster.kill_those_that_do_not_cancel(self.graph.executions())] if is_current else []
            case RepeatFinalNotify():
                return [*self._orders.repeat()]
            case ExitOverdue():
                return self._conclude(JobStatus.FAILED) if self._course.end() is JobStatus.FAILED else []
            case _:
                assert_never(timer)

    # -- TaskManagers

    def _register(self, message: RegisterTaskManager) -> Effects:
        if message.task_manager_id in self._roster:
            return self._go_on_after_silence(message) if self._roster.register_again(message) else []
        earlier, effects = self._roster.register(message), Effects()
        if earlier is not None:
            replaced = TaskManagerLost(earlier.task_manager_id, "another process took its place", process_ended=True)
            effects = self._lose(replaced)
        self._slots.add(message.task_manager_id, message.index, message.slots)
        return [*effects, Publish(changed(message, True, "", self._wall_ms)), *self._deploy_waiting()]

    def _go_on_after_silence(self, worker: RegisterTaskManager) -> Effects:
        """It was without a leader for a while, in which orders to it and reports of it were lost."""
        here = [each for each in self.graph.executions() if each.task_manager_id == worker.task_manager_id]
        runs = {each.attempt_id for each in worker.tasks}
        effects: Effects = []
        for execution in here:
            if execution.state in _DEPLOYED and execution.attempt_id not in runs:
                cause = ended_unheard(worker.task_manager_id)
                effects.extend(self._attempt_ended(execution, ExecutionState.FAILED, cause))
        silent = tuple(each.attempt_id for each in here)
        return [*effects, *self._coordinate(checkpoint.OrdersLost(silent)), *self._orders.stop_sources()]

    def _lose(self, event: TaskManagerLost) -> Effects:
        if event.task_manager_id not in self._roster:
            return []
        effects: Effects = [*self._roster.lose(event, self._wall_ms)]
        self._slots.lose(event.task_manager_id)
        cause = lost_task_manager(event.task_manager_id, event.reason)
        here = (each for each in self.graph.executions() if each.task_manager_id == event.task_manager_id)
        for execution in self._failures.explained_first(self.graph, here):
            if not execution.state.is_terminal:
                effects.extend(self._attempt_ended(execution, ExecutionState.FAILED, cause))
        return effects

    def _exited(self, event: TaskManagerExited) -> Effects:
        """A process is gone: say so, end the job if that waits for it, or start another one if the job goes on.

        A new job gives up where none of its TaskManagers can start; one that has a checkpoint waits for slots as long
        as it may, unless no process can ever come.
        """
        index, reason = event.index, event.reason
        told: Effects = [*self._failures.loss_explained(index, reason)]
        if told and self._course.end() is JobStatus.FAILED:
            return [*told, *self._settle()]
        if self.status not in _ALIVE:  # another one would have nothing to do
            return told
        if event.repeatable and (repeated := self._failures.process_ended(index, reason)) is not None:
            return [*told, *self._fail_job(repeated)]
        next_life: Effects = [*self._roster.ended(index, reason)]
        is_new = self.status is JobStatus.CREATED and self.coordinator.store.latest() is None
        failure = none_can_start(reason) if event.is_last else self._roster.cannot_start() if is_new else None
        return [*told, *(next_life if failure is None else self._fail_job(failure))]

    # -- deployment

    def _deploy_waiting(self) -> Effects:
        waiting = self._restarts.deployable()
        return [effect for region, placement in waiting for effect in self._deploy(region, placement)]

    def _deploy(self, region: Region, placement: Mapping[SubtaskKey, SlotId]) -> Effects:
        deployment = self._deployer.deploy(region, placement)
        if deployment is None:
            return self._fail_job(no_checkpoint_left(self.latest_failure))
        restored, is_last = deployment.restored, deployment.is_last
        self._failures.history.settled(region)
        self._ending.region_restored(region, restored.checkpoint_id if restored and is_last else None)
        effects = [] if is_last else self._coordinate(checkpoint.RegionRunsOn())
        if restored is not None:
            self.coordinator.statistics.restored(restored.checkpoint_id)
        for execution, task in deployment.attempts:
            effects.extend(self._attempt_changed(execution))
            effects.append(self._orders.tell(execution, SubmitTask(task)))
        return effects

    # -- what attempts say

    def _update(self, message: UpdateTaskExecutionState) -> Effects:
        execution = self.graph.execution(message.attempt_id)
        if execution is None:
            return []
        if execution.state.is_terminal:  # as when its TaskManager was lost: what it still says of its state is true
            self._learn_of_restore(execution, message.failure)
            return []
        if message.state.is_terminal:
            return self._attempt_ended(execution, message.state, message.failure)
        if self.graph.update(message.attempt_id, message.state) is not UpdateResult.APPLIED:
            return []
        changed_to = self._attempt_changed(execution)
        return [*changed_to, *self._all_may_run(self.graph.region_of(execution.vertex_id))]

    def _all_may_run(self, region: Region) -> Effects:
        """Once all tasks run, checkpoints start. A region restored from the final checkpoint has only to commit it."""
        effects: Effects = [*self._course.runs(self._wall_ms)]
        if self.graph.all_running():
            effects.extend(self._coordinate(checkpoint.StartScheduler(keep_pending=True)))
        return [*effects, *self._orders.stop_sources(), *self._orders.finish(region, self._wall_ms)]

    def _attempt_changed(self, execution: Execution) -> Effects:
        is_running = execution.state is ExecutionState.RUNNING
        place = self._roster.place_of(execution.task_manager_id)
        return self._coordinate(checkpoint.AttemptChanged(execution.subtask, execution.attempt_id, is_running, place))

    def _attempt_ended(self, execution: Execution, state: ExecutionState, failure: FailureCause | None) -> Effects:
        region = self.graph.region_of(execution.vertex_id)
        self.graph.update(execution.attempt_id, state, failure)
        self._ending.attempt_over(execution.attempt_id)
        self._slots.release(execution.subtask)
        effects = self._coordinate(checkpoint.AttemptFailed(execution.attempt_id))
        self._learn_of_restore(execution, failure)
        if execution.state is ExecutionState.FAILED:
            failure = failure or canceled_without_order(execution.task_manager_id or "")
            effects.extend(self._fail(region, failure))
        elif failure is not None:
            effects.extend(self._explain(region, failure))
        return [*effects, *self._settle()]

    def _learn_of_restore(self, execution: Execution, failure: FailureCause | None) -> None:
        """Its region has not been deployed again: what it could not read is what the region restored last."""
        if failure is not None and not execution.has_run:
            self._restore_points.failed_to_restore(self.graph.region_of(execution.vertex_id), failure)

    # -- failure and the end

    def _fail(self, region: Region, cause: FailureCause) -> Effects:
        """An attempt of this region failed: cancel the region and restart it, or give the job up."""
        if self.status not in _ALIVE or region in self._restarts:
            return []
        cause, is_new = self._failures.failed(cause, region)
        if self._restore_points.are_used_up:
            return [*self._failures.given_up(region, cause), *self._fail_job(no_checkpoint_left(cause))]
        restart = None if cause.kind is FailureKind.REPEATED else self._restarts.failed(region, self._now_ms, is_new)
        if restart is None:
            return [*self._failures.given_up(region, cause), *self._stop_everything(JobStatus.FAILING, cause)]
        return [
            *self._failures.restarting(region, cause, restart.delay_ms, self._restore_points.next_id),
            *self._coordinate(checkpoint.RegionRestarting()),
            *self._move(JobStatus.RESTARTING, cause),
            *self._cancel(self.graph.executions(region)),
            restart,
        ]

    def _explain(self, region: Region, cause: FailureCause) -> Effects:
        """One more task of a region that is being cancelled has failed, perhaps of what the first one failed of."""
        decisive, known = self._failures.explained(region, cause, self._restore_points.next_id)
        if decisive is None or self.status is not JobStatus.RESTARTING:
            return [*known]
        self._restarts.withdraw(region)
        return [*known, *self._stop_everything(JobStatus.FAILING, decisive)]

    def _fail_checkpoints(self, cause: FailureCause) -> Effects:
        """Too many checkpoints failed: restart the whole job, as after any failure. Flink: CheckpointFailureManager."""
        deployed = [region for region in self.graph.regions() if self.graph.executions(region)]
        return [effect for region in deployed for effect in self._fail(region, cause)]

    def _fail_job(self, cause: FailureCause) -> Effects:
        cause = self._failures.history.add(cause)
        return [FailureKnown(cause, None), *self._stop_everything(JobStatus.FAILING, cause)]

    def _stop_everything(self, status: JobStatus, cause: FailureCause | None = None) -> Effects:
        self._restarts.give_up()
        return [
            *self._coordinate(checkpoint.StopScheduler()),
            *self._move(status, cause),
            *self._cancel(self.graph.executions()),
            *self._settle(),
        ]

    def _cancel(self, executions: Iterable[Execution]) -> Effects:
        effects: Effects = []
        for execution in executions:
            effects.extend(self._orders.cancel(execution))
            effects.extend(self._coordinate(checkpoint.AttemptFailed(execution.attempt_id)))
        return [*effects, self._restarts.cancel_overdue_after(self._settings.cancel_timeout_ms)]

    def _settle(self) -> Effects:
        """After an attempt's end: is the job over, or a region ready to be deployed again?"""
        effects: Effects = [*self._course.runs(self._wall_ms), *self._failures.settle(self.graph)]
        end = self._course.end()
        if end is JobStatus.FAILED and self._failures.await_explanation:
            return [*effects, Schedule(EXIT_WAIT_MS, ExitOverdue())]
        return effects + (self._deploy_waiting() if end is None else self._conclude(end))

    def _conclude(self, status: JobStatus) -> Effects:
        cause = self.latest_failure if status is JobStatus.FAILED else None
        return [*self._coordinate(checkpoint.Shutdown(status)), *self._move(status, cause), JobEnded(status, cause)]

    def _move(self, status: JobStatus, cause: FailureCause | None = None) -> list[Publish[JobNews]]:
        return self._course.move(status, self._wall_ms, cause)

    # -- the coordinator

    def _coordinate(self, event: checkpoint.CheckpointEvent) -> Effects:
        effects: Effects = []
        for effect in self._checkpoints.on(event, self._now_ms, self._wall_ms):
            if isinstance(effect, FailJob):
                effects.extend(self._fail_checkpoints(effect.cause))
            else:
                effects.append(effect)
        return effects

    def _begin(self, now_ms: float, wall_ms: int) -> None:
        self._now_ms, self._wall_ms, self.graph.wall_ms = now_ms, wall_ms, wall_ms
        self._failures.begin(wall_ms)
