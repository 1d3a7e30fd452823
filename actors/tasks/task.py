"""Task: one attempt of one subtask, as a stepping actor.

Its step is a step of its TaskLoop; control messages come between steps. States: INITIALIZING (state is being read) ->
RUNNING -> FINISHED, CANCELED or FAILED, each reported to the TaskManager once. The task owns its operators, channels
and state, and closes them however it ends. It decides nothing about other tasks. What a step does, and when all is
done, is in the TaskLoop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from ...messages import (
    AbortReason,
    AnnounceWatermark,
    AskOperator,
    CancelTask,
    CheckpointId,
    ExecutionState,
    ExpectBarrier,
    FailureCause,
    GrantPermits,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    OfferedTask,
    PutIntoInlet,
    ReportWatermark,
    StopTask,
    SwitchToUnaligned,
    TaskDeployment,
    TaskMetrics,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
)
from ..actor import Actor, Step
from ..context import Ref
from ..failure import describe_in_task
from ..flow.elements import CheckpointBarrier
from .offers import AnotherLeads, offer_of
from .questions import answer, take
from .snapshot_under_way import SnapshotFailed, SnapshotWritten
from .task_counters import TaskCounters, reported
from .task_figures import ReadGauges, figures_of
from .task_loop import TaskLoop
from .task_setup import DoneAside, TaskParts, TaskServices, build_task


@dataclass(frozen=True, slots=True)
class _Restored:
    pass


@dataclass(frozen=True, slots=True)
class _RestoreFailed:
    error: BaseException


_Control: TypeAlias = (
    CancelTask
    | StopTask
    | TriggerCheckpoint
    | ExpectBarrier
    | SwitchToUnaligned
    | NotifyCheckpointComplete
    | NotifyCheckpointAborted
    | AnnounceWatermark
    | GrantPermits
    | ReadGauges
    | AnotherLeads
)
"""What its TaskManager passes on to it, besides questions."""
_Outcome: TypeAlias = _Restored | _RestoreFailed | SnapshotWritten | SnapshotFailed | DoneAside
"""What it has piped to itself."""


class Task(Actor):
    """One attempt. Give it a deployment and the TaskManager's services; it reports to `owner`."""

    def __init__(self, deployment: TaskDeployment, services: TaskServices, owner: Ref) -> None:
        self.deployment = deployment
        self.state = ExecutionState.DEPLOYING
        self.counters = TaskCounters()
        self._services = services
        self._owner = owner
        self._parts: TaskParts | None = None
        self._loop: TaskLoop | None = None
        self._closing_from: ExecutionState | None = None
        """Its state before, as long as it closes its operators: they may still fail, and it has not ended yet."""
        self._last_metrics: TaskMetrics | None = None
        """Once it has ended."""

    def on_start(self) -> None:
        self._guard(self._initialize)

    def on_receive(self, message: Any) -> Any:
        now_ms = self.context.clock.now_ms
        self.counters.turns_to_message(now_ms())
        try:
            return self._received(message)
        finally:
            self.counters.back_from_message(now_ms())

    def _received(self, message: Any) -> Any:
        if isinstance(message, AskOperator):
            answer(message, promise := self.context.promise(), self.state, self._parts)
            return promise
        if isinstance(message, PutIntoInlet):
            source = None if self._loop is None else self._loop.source
            return take(message.sent, self.context.promise, self.state, source)
        self._guard(self._handle, message)
        return None

    def step(self) -> Step:
        if self.state.is_terminal:
            self._loop = self._parts = None  # whoever keeps the task does not keep its operators and their state
            return Step.DONE
        if self.state is not ExecutionState.RUNNING:
            return Step.IDLE
        return self._guard(self._step) or Step.BUSY

    @property
    def idle_ms(self) -> float | None:
        """How long the dispatcher may let it idle; None: until it is woken."""
        return None if (loop := self._loop) is None else loop.idle_ms

    def on_stop(self) -> None:
        """Stopped from outside, as when its TaskManager ends: let go of everything."""
        if not self.state.is_terminal:
            self._release(ExecutionState.CANCELED)

    def metrics(self) -> TaskMetrics:
        """What it has done so far. Called from the TaskManager's thread: plain reads of counters."""
        loop, parts, state = self._loop, self._parts, self.state  # before the next line: at its end it lets go of them
        if self._last_metrics is not None:
            return replace(self._last_metrics, clock_ms=self.context.clock.now_ms())
        return self._metrics(loop, parts, self._closing_from or state)  # in this order: they are set in the other one

    def _metrics(self, loop: TaskLoop | None, parts: TaskParts | None, state: ExecutionState) -> TaskMetrics:
        event_time = None if loop is None else loop.time.event_time(self.counters.is_blocked)
        figures = {} if parts is None else figures_of(parts)
        return reported(self.counters, self.deployment, state, self.context.clock, event_time, **figures)

    @property
    def has_gauges(self) -> bool:
        """Whether ReadGauges is of use. From the TaskManager's thread, too."""
        return self._is_running and (parts := self._parts) is not None and parts.chain.has_gauges

    def watermark_report(self) -> ReportWatermark | None:
        """For sources that wait for each other. From the TaskManager's thread, too."""
        return None if (loop := self._loop) is None else loop.time.report()

    def offered(self, *, is_stopping: bool) -> OfferedTask:
        """For a JobManager that may take it over as it is. From the TaskManager's thread, too."""
        newest, data_ended = CheckpointId(0), False
        if (loop := self._loop) is not None:
            newest, data_ended = loop.checkpoints.newest, loop.data_ended
        return offer_of(self.deployment, self.state, newest, data_ended=data_ended, is_stopping=is_stopping)

    # -- life cycle

    def _guard(self, function: Callable[..., Any], *args: Any) -> Any:
        """The supervision boundary: whatever is raised fails the attempt, and only the attempt."""
        if self.state.is_terminal:
            return None
        try:
            return function(*args)
        except BaseException as error:  # noqa: BLE001 - user code may call sys.exit, or let a CancelledError through
            self._services.when_failed(error)
            self._end(ExecutionState.FAILED, describe_in_task(error, self.deployment, self._services.task_manager_name))
            return None

    def _initialize(self) -> None:
        self._report(ExecutionState.INITIALIZING)
        self._parts = parts = build_task(self.deployment, self._services, self.context, self._owner.tell)
        warn_ms = self._services.watermark_warn_ms
        self._loop = TaskLoop(self.deployment, parts, self.counters, self.context, self._owner, warn_ms)
        restored = self.context.run_blocking(parts.state.restore)
        self.context.pipe_to_self(restored, lambda _: _Restored(), _RestoreFailed)

    def _open(self) -> None:
        loop = self._own_loop()
        loop.open()
        self._report(ExecutionState.RUNNING)
        loop.begin()

    def _step(self) -> Step:
        step = self._own_loop().step()
        if step is not Step.DONE:
            return step
        self._end(ExecutionState.FINISHED)
        return Step.IDLE

    def _end(self, state: ExecutionState, failure: FailureCause | None = None) -> None:
        errors = self._release(state)
        if errors and state is not ExecutionState.FAILED:
            failure = failure or describe_in_task(errors[0], self.deployment, self._services.task_manager_name)
            state = self.state = ExecutionState.FAILED if state is ExecutionState.FINISHED else state
        self._report(state, failure)
        self.context.wake()

    def _release(self, state: ExecutionState) -> list[Exception]:
        self._closing_from = self.state  # first: the TaskManager's thread reads both
        self.state = state
        self.counters.ends(self.context.clock.now_ms())
        errors: list[Exception] = []
        if (parts := self._parts) is None:
            return errors
        for close in (
            parts.gate.close,
            lambda: errors.extend(parts.chain.close()),
            parts.outputs.close,
            parts.state.close,
        ):
            try:
                close()
            except Exception as error:  # noqa: BLE001 - the others are closed too, and the first error stays
                errors.append(error)
        return errors

    def _report(self, state: ExecutionState, failure: FailureCause | None = None) -> None:
        if state.is_terminal:
            self._last_metrics = self._metrics(self._loop, self._parts, state)
        self.state, self._closing_from = state, None
        self._owner.tell(UpdateTaskExecutionState(self.deployment.job_id, self.deployment.attempt_id, state, failure))

    def _running_parts(self) -> TaskParts:
        assert self._parts is not None, "the task has not been initialized"
        return self._parts

    def _own_loop(self) -> TaskLoop:
        assert self._loop is not None, "the task has not been initialized"
        return self._loop

    # -- control

    def _handle(self, message: _Control | _Outcome) -> None:
        match message:
            case _Restored():
                self._open()
            case _RestoreFailed(error):
                raise error
            case CancelTask():
                self._end(ExecutionState.CANCELED)
            case StopTask():
                self._own_loop().end_input(at_once=self._is_running)
            case TriggerCheckpoint(checkpoint_id=checkpoint_id, timestamp_ms=timestamp_ms, stop=stop, whole=whole):
                self._trigger(CheckpointBarrier(checkpoint_id, timestamp_ms, stop, whole))
            case NotifyCheckpointComplete():
                if self._is_running and self._own_loop().complete(message):
                    self._end(ExecutionState.FINISHED)
            case NotifyCheckpointAborted(checkpoint_id=checkpoint_id):
                if self._is_running:
                    self._own_loop().abort(checkpoint_id)
            case AnnounceWatermark():
                self._own_loop().time.align(message)
            case GrantPermits():
                self._running_parts().chain.permits_granted(message)
            case ReadGauges():
                self._running_parts().chain.read_gauges()
            case AnotherLeads():
                self._say_again()
            case ExpectBarrier(checkpoint_id=checkpoint_id):
                self._own_loop().expect(checkpoint_id)
            case SwitchToUnaligned(checkpoint_id=checkpoint_id, timestamp_ms=timestamp_ms):
                if self._is_running:
                    self._own_loop().switch(CheckpointBarrier(checkpoint_id, timestamp_ms))
            case SnapshotWritten():
                self._own_loop().checkpoints.acknowledge(message)
            case SnapshotFailed():
                self._own_loop().checkpoints.not_written(message)
            case DoneAside():
                self._own_loop().done_aside(message)
            case _:
                assert_never(message)

    @property
    def _is_running(self) -> bool:
        return self.state is ExecutionState.RUNNING

    def _trigger(self, barrier: CheckpointBarrier) -> None:
        loop = self._own_loop()
        if self._is_running:
            loop.trigger(barrier)
        else:
            why = f"the task is {self.state.value}, not running"
            loop.checkpoints.decline(barrier.checkpoint_id, AbortReason.NOT_RUNNING, why)

    def _say_again(self) -> None:
        """What was said once, and may have been heard by another JobManager only. States come with heartbeats."""
        if not self._is_running:
            return
        if self._own_loop().data_ended:
            self._owner.tell(NotifyEndOfData(self.deployment.job_id, self.deployment.attempt_id))
        self._running_parts().chain.say_again()
