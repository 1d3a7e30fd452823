"""TaskManager: registers with the JobManager, runs the tasks it is sent, and routes messages between the two.

It belongs to one job and lives in one process. It ends, with all its tasks, when it is released or refused, or when it
has no JobManager any more: none is heard for the heartbeat timeout, or its process is gone. Where another one may take
over, the tasks run on for a while, and are offered to that one (LeaderLink). It never decides about a job.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pykka

from ...messages import (
    AcknowledgeCheckpoint,
    AcknowledgeRegistration,
    AnnounceWatermark,
    AskTask,
    CancelTask,
    ExecutionAttemptId,
    ExecutionState,
    ExpectBarrier,
    GrantPermits,
    Heartbeat,
    LeaderIs,
    LeaderSessionId,
    LeaderSessionMessage,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    OfferedTask,
    OrderTogether,
    OutletReport,
    PutIntoInlet,
    RefuseRegistration,
    ReleaseTaskManager,
    RequestThreadDump,
    StackTraceSample,
    StopTask,
    SubmitTask,
    SwitchToUnaligned,
    TaskDeployment,
    TaskManagerFailing,
    TaskMetrics,
    TaskReport,
    ThreadDump,
    TriggerCheckpoint,
    TriggerStackTraceSample,
    UpdateTaskExecutionState,
    packed_heartbeat,
)
from ..actor import Actor, Terminated
from ..ask_errors import NotRunning
from ..context import Ref
from ..failure import died_in_silence
from .acknowledgements import Acknowledgements
from .clock_jumps import ClockJumps
from .ended_attempts import EndedAttempts, GarbageDue
from .leader_link import AloneTooLong, BeatDue, LeaderLink, RegisterDue, TaskManagerSpec
from .offers import AnotherLeads
from .outbox import NoOutbox, Outbox
from .slot_tasks import SlotTasks, ends_with
from .task import Task
from .task_figures import ReadGauges
from .task_sampler import SampleDue, TaskSampler
from .task_setup import TaskServices

log = logging.getLogger(__name__)

METRICS_PER_BEAT = 200
"""Of this number of tasks one heartbeat has figures."""
OUTPUT_DELAY_MS = 50
"""How long what was logged or printed waits for more, to be sent together; a task's end does not overtake it."""
ACKNOWLEDGEMENT_DELAY_MS = 20
"""How long an acknowledgement waits at most for those of other tasks here, to be sent together; the last does not."""


@dataclass(frozen=True, slots=True)
class _SendAcknowledgements:
    pass


@dataclass(frozen=True, slots=True)
class _OutputWaits:
    """There is something in the outbox, after there was nothing."""


@dataclass(frozen=True, slots=True)
class _SendOutput:
    pass


@dataclass(slots=True)
class _Hosted:
    task: Task
    ref: Ref
    is_over: bool = False
    """It has reported its end."""
    is_stopping: bool = False
    """It was ordered to stop, or to take part in the end of its job."""


NO_OUTBOX = NoOutbox()


class TaskManager(Actor):
    """One TaskManager. `on_ended(reason)` is called once, when it and all its tasks are done."""

    def __init__(
        self,
        spec: TaskManagerSpec,
        services: TaskServices,
        on_ended: Callable[[str], None],
        outbox: Outbox = NO_OUTBOX,
    ) -> None:
        self._spec = spec
        self._services = services
        self._on_ended = on_ended
        self.never_reached = False
        """Whether it ends as the connection failed before any JobManager had registered it."""
        self._outbox = outbox
        self._tasks: dict[ExecutionAttemptId, _Hosted] = {}
        self._ended = EndedAttempts(services.collect_garbage)
        self._slots: defaultdict[int, SlotTasks] = defaultdict(SlotTasks)
        self._beats = 0
        self._to_report: deque[ExecutionAttemptId] = deque()
        """Whose figures come with the next beats."""
        self._ending: str | None = None
        self._has_ended = False
        self._sampler = TaskSampler(services.stacks)
        self._clock_jumps = ClockJumps()
        self._acknowledgements = Acknowledgements()
        self.stale_messages = 0
        """How many messages of another leader session were dropped."""

    def on_start(self) -> None:
        self._link = LeaderLink(self._spec, self._services.data_plane.endpoint, self.context, self._offers)
        own = self.context.self_ref
        self._outbox.when_filled(lambda: own.tell(_OutputWaits()))
        self._link.begin()

    def on_receive(self, message: Any) -> Any:
        match message:
            case LeaderSessionMessage(leader_session_id, inner):
                return self._from_leader(leader_session_id, inner)
            case Heartbeat():
                self._link.heard_ms = self.context.clock.now_ms()
            case AcknowledgeRegistration():
                self._registered(message)
            case RefuseRegistration(reason=reason):
                if self._link.is_refused(message):
                    self._end(f"registration refused: {reason}")
            case LeaderIs():
                if self._ending is None:
                    self._link.turn(message)
            case Terminated(address=address, reason=reason):
                self._terminated(address, reason)
            case RegisterDue():
                if self._ending is None:
                    self._link.register(message)
            case BeatDue():
                self._beat(message)
            case AloneTooLong():
                if self._link.is_over(message):
                    self._end("no JobManager has led for too long")
            case _OutputWaits():
                self.context.schedule(OUTPUT_DELAY_MS, _SendOutput())
            case _SendOutput():
                self._send_output()
            case AcknowledgeCheckpoint():
                self._acknowledge(message)
            case _SendAcknowledgements():
                self._send_acknowledgements()
            case GarbageDue():
                self._ended.delay_is_over()
            case SampleDue():
                self._sample(message)
            case UpdateTaskExecutionState(attempt_id=attempt_id, state=state):
                if state.is_terminal and attempt_id in self._tasks:
                    self._tasks[attempt_id].is_over = True
                    self._send_last_output()
                self._to_leader(message)
            case _ if isinstance(message, TaskReport | OutletReport):
                self._to_leader(message)
            case TaskManagerFailing(reason=reason):
                self._give_up(reason)
            case _:
                return super().on_receive(message)
        return None

    # -- registration and heartbeats

    def _registered(self, answer: AcknowledgeRegistration) -> None:
        if not self._link.registered(answer):
            return
        for hosted in self._tasks.values():
            hosted.ref.tell(AnotherLeads())
        self._beat()

    def _offers(self) -> tuple[OfferedTask, ...]:
        """What runs here, for a leader that may know nothing of it."""
        return tuple(
            hosted.task.offered(is_stopping=hosted.is_stopping)
            for hosted in self._tasks.values()
            if not hosted.task.state.is_terminal
        )

    def _beat(self, due: BeatDue | None = None) -> None:
        if self._ending is not None or not self._link.beat(due):
            return
        if self._link.is_silent():
            self._lost(f"nothing heard from the JobManager for {self._link.silent_ms:.0f} ms")
            return
        self._beats += 1
        metrics, process, is_last = self._next_metrics(), self._services.process_figures(), not self._to_report
        self._to_leader(packed_heartbeat(self._spec.task_manager_id, self._beats, metrics, process, is_last))
        self._clock_jumps.look(self.context.clock)
        for hosted in self._tasks.values():
            if hosted.task.has_gauges:
                hosted.ref.tell(ReadGauges())
            if (report := hosted.task.watermark_report()) is not None:
                self._to_leader(report)

    def _lost(self, reason: str) -> None:
        """There is no leader, as far as this TaskManager knows."""
        if self._ending is None and self._link.lost(reason):
            self.never_reached = self._link.session is None
            self._give_up(f"it never reached the JobManager: {reason}" if self.never_reached else reason)

    def _next_metrics(self) -> tuple[TaskMetrics, ...]:
        """Of the next tasks in turn: of thousands in each second the JobManager would do nothing but read them."""
        if not self._to_report:
            self._to_report.extend((*self._ended, *self._tasks))
        count = min(METRICS_PER_BEAT, len(self._to_report))
        turn = [self._metrics_of(self._to_report.popleft()) for _ in range(count)]
        return tuple(metrics for metrics in turn if metrics is not None)

    def _metrics_of(self, attempt_id: ExecutionAttemptId) -> TaskMetrics | None:
        if (hosted := self._tasks.get(attempt_id)) is not None:
            return hosted.task.metrics()
        return self._ended.metrics(attempt_id, self.context.clock.now_ms())

    # -- what the JobManager says

    def _from_leader(self, session: LeaderSessionId, message: Any) -> Any:
        self._link.heard_ms = self.context.clock.now_ms()
        if session != self._link.session:
            self.stale_messages += 1
            what = type(message).__name__
            log.warning("%s: dropped %s of leader session %s", self._spec.task_manager_id, what, session)
            if (operator := _asked(message)) is not None:
                raise NotRunning(operator, "its TaskManager follows another JobManager, or looks for one; ask again")
            return None
        match message:
            case SubmitTask(deployment):
                self._deploy(deployment)
            case ReleaseTaskManager(reason=reason):
                self._end(reason)
            case TriggerStackTraceSample():
                if (hosted := self._tasks.get(message.attempt_id)) is not None:
                    self._sample(self._sampler.begin(message, hosted.task))
                elif message.attempt_id in self._ended:
                    self._to_leader(StackTraceSample(message.job_id, message.attempt_id, message.number, (), ()))
            case RequestThreadDump():
                return ThreadDump(self._services.stacks.dump())
            case AskTask(attempt_id, question):
                return self._ask(attempt_id, question.operator, question)
            case PutIntoInlet(attempt_id, sent):
                return self._ask(attempt_id, sent.inlet, message)
            case CancelTask(attempt_id=attempt_id) if attempt_id not in self._tasks and attempt_id not in self._ended:
                self._to_leader(UpdateTaskExecutionState(message.job_id, message.attempt_id, ExecutionState.CANCELED))
            case (
                CancelTask()
                | StopTask()
                | TriggerCheckpoint()
                | ExpectBarrier()
                | SwitchToUnaligned()
                | NotifyCheckpointComplete()
                | NotifyCheckpointAborted()
                | AnnounceWatermark()
                | GrantPermits()
            ):
                self._order(message)
            case OrderTogether(orders):
                for each in orders:
                    self._order(each)
            case _:
                return super().on_receive(message)
        return None

    def _order(self, order: Any) -> None:
        """To its task, if that is here."""
        if (hosted := self._tasks.get(order.attempt_id)) is not None:
            hosted.is_stopping |= _is_the_end(order)
            hosted.ref.tell(order)

    def _deploy(self, deployment: TaskDeployment) -> None:
        attempt_id = deployment.attempt_id
        if attempt_id in self._tasks or attempt_id in self._ended or self._ending is not None:
            return
        task = Task(deployment, self._services, self.context.self_ref)
        ref = self.context.spawn(task, name=attempt_id, dispatcher=f"stepping:slot-{deployment.slot}")
        self._tasks[attempt_id] = _Hosted(task, ref)
        self.context.watch(ref)
        self._ended.forget_old()
        self._slots[deployment.slot].add(deployment, task.counters, ends_with(task))

    def _ask(self, attempt_id: ExecutionAttemptId, operator: str, question: Any) -> pykka.Future[Any]:
        """The answer of an operator of this attempt."""
        hosted = self._tasks.get(attempt_id)
        if hosted is None or hosted.task.state.is_terminal:
            raise NotRunning(operator, "its job may be restarting; ask again")
        return hosted.ref.ask(question)

    def _sample(self, due: SampleDue | None) -> None:
        """Take a sample, and come back for the next one; or report, when it was the last."""
        if due is None:
            return
        report = self._sampler.take(due, self.context.clock.now_ms())
        if report is None:
            self.context.schedule(due.delay_ms, due)
        else:
            self._to_leader(report)

    def _to_leader(self, message: Any) -> None:
        """Behind all that was said before."""
        self._send_acknowledgements()
        self._link.tell(message)

    def _acknowledge(self, message: AcknowledgeCheckpoint) -> None:
        if not self._acknowledgements.are_any:
            self.context.schedule(ACKNOWLEDGEMENT_DELAY_MS, _SendAcknowledgements())
        running = (each for each, hosted in self._tasks.items() if hosted.task.state is ExecutionState.RUNNING)
        if self._acknowledgements.add(message, running):
            self._send_acknowledgements()

    def _send_acknowledgements(self) -> None:
        if self._acknowledgements.are_any:
            self._link.tell(self._acknowledgements.take())

    # -- what is logged and printed here

    def _send_output(self) -> None:
        if self._link.session is not None:
            for message in self._outbox.take():
                self._to_leader(message)
        if not self._outbox.is_empty and not self._has_ended:
            self.context.schedule(OUTPUT_DELAY_MS, _SendOutput())

    def _send_last_output(self) -> None:
        """All of it, before what is said next."""
        if self._link.session is not None:
            for message in self._outbox.take(final=True):
                self._to_leader(message)

    # -- the end

    def _terminated(self, address: str, reason: str) -> None:
        if self._link.is_from(address):
            self._lost(f"the JobManager is gone: {reason}")
            return
        self._task_has_stopped(address, reason)
        self._end_if_all_stopped()

    def _task_has_stopped(self, address: str, reason: str) -> None:
        """A task tells its end itself; one that could not, because its thread ended under it, has failed."""
        attempt_id = next((each for each, hosted in self._tasks.items() if hosted.ref.address == address), None)
        if attempt_id is None:
            return
        hosted = self._tasks.pop(attempt_id)
        if not hosted.is_over:
            hosted.task.state = ExecutionState.FAILED
            deployment = hosted.task.deployment
            failure = died_in_silence(deployment, self._spec.task_manager_id, reason)
            self._to_leader(UpdateTaskExecutionState(deployment.job_id, attempt_id, ExecutionState.FAILED, failure))
        self._ended.add(attempt_id, replace(hosted.task.metrics(), status=hosted.task.state.value))
        if self._ending is None:
            self._ended.leave_garbage(self.context, others_run=bool(self._tasks))

    def _give_up(self, reason: str) -> None:
        """End by its own decision. A leader that still lives is notified before its tasks report their end."""
        if self._ending is None:
            self._to_leader(TaskManagerFailing(self._spec.task_manager_id, reason))
            self._end(reason)

    def _end(self, reason: str) -> None:
        if self._ending is not None:
            return
        self._ending = reason
        log.info("%s ends: %s", self._spec.task_manager_id, reason)
        running = [hosted for hosted in self._tasks.values() if not hosted.task.state.is_terminal]
        for hosted in running:
            hosted.ref.tell(CancelTask(hosted.task.deployment.job_id, hosted.task.deployment.attempt_id))
        self._end_if_all_stopped()

    def _end_if_all_stopped(self) -> None:
        if self._ending is None or self._has_ended:
            return
        if all(hosted.task.state.is_terminal for hosted in self._tasks.values()):
            self._has_ended = True
            self._send_last_output()
            self._on_ended(self._ending)


def _asked(message: Any) -> str | None:
    """The operator of which an answer is wanted, if one is."""
    match message:
        case AskTask(question=question):
            return question.operator
        case PutIntoInlet(sent=sent):
            return sent.inlet
        case _:
            return None


def _is_the_end(order: Any) -> bool:
    """Whether only the leader that gives this order knows what comes after it."""
    match order:
        case StopTask() | TriggerCheckpoint(stop=True) | NotifyCheckpointComplete(final=True):
            return True
        case _:
            return False
