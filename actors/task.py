"""Task: one attempt of one subtask, as a stepping actor.

Its step takes the next batch from the source or the input gate, runs the operator chain and hands the results to its
outputs; control messages come between steps. States: INITIALIZING (state is being read) -> RUNNING -> FINISHED,
CANCELED or FAILED, each told to the TaskManager once. The task owns its operators, channels and state, and closes
them however it ends. It decides nothing about other tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pykka

from ..messages import (
    AcknowledgeCheckpoint,
    AskOperator,
    CancelTask,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionState,
    FailureCause,
    FirstBatchProcessed,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    OperatorAnswer,
    StopTask,
    SubtaskState,
    TaskDeployment,
    TaskMetrics,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
)
from .actor import Actor, Step
from .ask_errors import NotRunning
from .barrier_handler import Aborted, Aligned, GateEvent
from .channels import DataPlane
from .context import Ref
from .elements import (
    Batch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    EndOfData,
    EndOfPartition,
    Watermark,
)
from .errors import UserCodeError
from .failure import describe_in_task
from .job_program import JobProgram
from .operator_chain import blame
from .operators.source import END, Source
from .task_setup import TaskParts, build_task
from .task_state import StateServices


@dataclass(frozen=True, slots=True)
class TaskServices:
    """What a TaskManager lends to its tasks."""

    program: JobProgram
    data_plane: DataPlane
    state: StateServices
    exactly_once: bool
    resources: dict[str, Any]
    task_manager_name: str


class TaskOwner(Protocol):
    """Whom a task reports to: the TaskManager's reference."""

    def tell(self, message: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class _Restored:
    pass


@dataclass(frozen=True, slots=True)
class _RestoreFailed:
    error: BaseException


@dataclass(frozen=True, slots=True)
class _SnapshotWritten:
    checkpoint_id: CheckpointId
    state: SubtaskState
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _SnapshotFailed:
    checkpoint_id: CheckpointId
    error: BaseException


class Task(Actor):
    """One attempt. Give it a deployment and the TaskManager's services; it reports to `owner`."""

    idle_ms: float | None = None
    """How long the dispatcher may let it idle; None: until it is woken."""

    def __init__(self, deployment: TaskDeployment, services: TaskServices, owner: Ref) -> None:
        self.deployment = deployment
        self.state = ExecutionState.DEPLOYING
        self._services = services
        self._owner = owner
        self._parts: TaskParts | None = None
        self._source: Source | None = None
        self._last_checkpoint = CheckpointId(0)
        self._ended_channels: set[int] = set()
        self._data_ended = False
        self._batches_in = self._records_in = 0
        self._busy_ms = self._blocked_ms = 0.0
        self._blocked_since: float | None = None

    def on_start(self) -> None:
        self._guard(self._initialize)

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, AskOperator):
            return self._answer(message)
        self._guard(self._handle, message)
        return None

    def step(self) -> Step:
        if self.state.is_terminal:
            return Step.DONE
        if self.state is not ExecutionState.RUNNING:
            return Step.IDLE
        return self._guard(self._step) or Step.BUSY

    def on_stop(self) -> None:
        """Stopped from outside, as when its TaskManager ends: let go of everything."""
        if not self.state.is_terminal:
            self._release(ExecutionState.CANCELED)

    def metrics(self) -> TaskMetrics:
        """What it has done so far. Called from the TaskManager's thread: plain reads of counters."""
        blocked = self._blocked_ms
        if (since := self._blocked_since) is not None:
            blocked += self.context.clock.now_ms() - since
        return TaskMetrics(
            attempt_id=self.deployment.attempt_id,
            vertex_id=self.deployment.vertex_id,
            vertex_name=self.deployment.vertex_name,
            subtask_index=self.deployment.subtask_index,
            records_in=self._records_in,
            records_out=self._parts.outputs.records_out if self._parts else 0,
            batches_in=self._batches_in,
            backpressured_ms=int(blocked),
            busy_ms=int(self._busy_ms),
            status=self.state.value,
        )

    # -- life cycle

    def _guard(self, function: Callable[..., Any], *args: Any) -> Any:
        """The supervision boundary: whatever is raised fails the attempt, and only the attempt."""
        if self.state.is_terminal:
            return None
        try:
            return function(*args)
        except BaseException as error:  # noqa: BLE001 - user code may call sys.exit, or let a CancelledError through
            self._end(ExecutionState.FAILED, describe_in_task(error, self.deployment, self._services.task_manager_name))
            return None

    def _initialize(self) -> None:
        self._report(ExecutionState.INITIALIZING)
        self._parts = build_task(self.deployment, self._services, self.context)
        first = self._parts.chain.operators[0]
        self._source = first if isinstance(first, Source) else None
        restored = self.context.run_blocking(self._parts.state.restore)
        self.context.pipe_to_self(restored, lambda _: _Restored(), _RestoreFailed)

    def _open(self) -> None:
        parts = self._running_parts()
        parts.chain.open()
        if self._source is not None and (offset := parts.state.restored_offset()) is not None:
            with blame(self._source):
                self._source.seek(offset[0])
        self._report(ExecutionState.RUNNING)
        if self._source is not None and parts.state.data_ended:
            self._end_of_data()

    def _end(self, state: ExecutionState, failure: FailureCause | None = None) -> None:
        errors = self._release(state)
        if errors and state is not ExecutionState.FAILED:
            failure = failure or describe_in_task(errors[0], self.deployment, self._services.task_manager_name)
            state = self.state = ExecutionState.FAILED if state is ExecutionState.FINISHED else state
        self._report(state, failure)
        self.context.wake()

    def _release(self, state: ExecutionState) -> list[UserCodeError]:
        self.state = state
        if self._parts is None:
            return []
        self._parts.gate.close()
        errors = self._parts.chain.close()
        self._parts.outputs.close()
        self._parts.state.close()
        return errors

    def _report(self, state: ExecutionState, failure: FailureCause | None = None) -> None:
        self.state = state
        self._owner.tell(UpdateTaskExecutionState(self.deployment.job_id, self.deployment.attempt_id, state, failure))

    def _running_parts(self) -> TaskParts:
        assert self._parts is not None, "the task has not been initialized"
        return self._parts

    # -- control

    def _handle(self, message: Any) -> None:
        match message:
            case _Restored():
                self._open()
            case _RestoreFailed(error):
                raise error
            case CancelTask():
                self._end(ExecutionState.CANCELED)
            case StopTask():
                if self.state is ExecutionState.RUNNING and self._source is not None and not self._data_ended:
                    self._end_of_data()
            case TriggerCheckpoint(checkpoint_id=checkpoint_id, timestamp_ms=timestamp_ms):
                self._trigger(CheckpointBarrier(checkpoint_id, timestamp_ms))
            case NotifyCheckpointComplete():
                self._complete(message)
            case NotifyCheckpointAborted(checkpoint_id=checkpoint_id):
                self._abort(checkpoint_id)
            case _SnapshotWritten():
                self._acknowledge(message)
            case _SnapshotFailed(checkpoint_id, error):
                self._decline(checkpoint_id, f"{type(error).__name__}: {error}")
            case _:
                super().on_receive(message)

    def _trigger(self, barrier: CheckpointBarrier) -> None:
        if self.state is not ExecutionState.RUNNING:
            self._decline(barrier.checkpoint_id, f"the task is {self.state.value}, not running")
        elif self._source is None:
            self._decline(barrier.checkpoint_id, "checkpoints are triggered at sources only")
        else:
            self._checkpoint(barrier)

    def _complete(self, message: NotifyCheckpointComplete) -> None:
        if self.state is not ExecutionState.RUNNING:
            return
        parts = self._running_parts()
        parts.chain.checkpoint_complete(message.checkpoint_id)
        if message.final:
            parts.outputs.broadcast(EndOfPartition())
            self._end(ExecutionState.FINISHED)

    def _abort(self, checkpoint_id: CheckpointId) -> None:
        if self.state is ExecutionState.RUNNING:
            parts = self._running_parts()
            parts.gate.abort(checkpoint_id)
            parts.chain.checkpoint_aborted(checkpoint_id)

    def _answer(self, question: AskOperator) -> pykka.Future[OperatorAnswer]:
        """A promise, already kept or broken: what user code raises here fails the question, and not the attempt."""
        answer = self.context.promise()
        try:
            answer.set(OperatorAnswer(self._ask_operator(question)))
        except Exception:  # noqa: BLE001 - supervision boundary: whoever asked is told
            answer.set_exception()
        return answer

    def _ask_operator(self, question: AskOperator) -> Any:
        if self.state is not ExecutionState.RUNNING:
            raise NotRunning(question.operator, f"its task is {self.state.value}; ask again")
        parts = self._running_parts()
        operator = parts.chain.find(question.operator)
        assert operator is not None, f"no operator {question.operator!r} in {self.deployment.vertex_name!r}"
        asked = question.plain_question if question.question is None else question.question
        with parts.state.reading(operator, question.has_key, question.key):
            return operator.on_receive(asked)

    # -- checkpoints

    def _checkpoint(self, barrier: CheckpointBarrier) -> None:
        if barrier.checkpoint_id <= self._last_checkpoint:
            return
        self._last_checkpoint = barrier.checkpoint_id
        parts = self._running_parts()
        parts.chain.checkpoint(barrier.checkpoint_id)
        offset = None if self._source is None else (self._offset_of(self._source),)
        data_ended = self._data_ended or parts.state.data_ended
        write = parts.state.snapshot(barrier.checkpoint_id, offset, data_ended=data_ended)
        parts.outputs.broadcast(barrier)
        self.context.pipe_to_self(
            self.context.run_blocking(write),
            lambda written: _SnapshotWritten(barrier.checkpoint_id, *written),
            lambda error: _SnapshotFailed(barrier.checkpoint_id, error),
        )

    def _offset_of(self, source: Source) -> Any:
        with blame(source, self._records_in):
            return source.offset()

    def _acknowledge(self, written: _SnapshotWritten) -> None:
        self._owner.tell(
            AcknowledgeCheckpoint(
                self.deployment.job_id,
                self.deployment.attempt_id,
                written.checkpoint_id,
                written.state,
                written.size_bytes,
            )
        )

    def _decline(self, checkpoint_id: CheckpointId, reason: str) -> None:
        self._owner.tell(DeclineCheckpoint(self.deployment.job_id, self.deployment.attempt_id, checkpoint_id, reason))

    # -- data

    def _step(self) -> Step:
        parts = self._running_parts()
        now_ms = self.context.clock.now_ms()
        if not parts.outputs.is_available():
            self._blocked_since = self._blocked_since or now_ms
            return Step.IDLE
        if self._blocked_since is not None:
            self._blocked_ms += now_ms - self._blocked_since
            self._blocked_since = None
        worked = self._step_source(self._source) if self._source is not None else self._step_gate(parts)
        if not worked:
            self._rest(parts)
            return Step.IDLE
        self._busy_ms += self.context.clock.now_ms() - now_ms
        return Step.BUSY

    def _rest(self, parts: TaskParts) -> None:
        """There is nothing to take: let operators emit what they hold back, and settle how long to idle at most."""
        delays = [parts.chain.idle()]
        if self._source is not None and not self._data_ended:
            with blame(self._source, self._records_in):
                delays.append(self._source.poll_delay_ms())
        self.idle_ms = min((delay for delay in delays if delay is not None), default=None)

    def _step_source(self, source: Source) -> bool:
        if self._data_ended:
            return False
        with blame(source, self._records_in):
            batch = source.poll()
            if batch is None:
                return False
        if batch is END:
            self._end_of_data()
        else:
            self._process(batch, 0, 1)
        return True

    def _step_gate(self, parts: TaskParts) -> bool:
        event = parts.gate.next()
        if event is None:
            return False
        self._take(parts, event)
        return True

    def _take(self, parts: TaskParts, event: GateEvent) -> None:
        match event:
            case Aligned(barrier=barrier):
                self._checkpoint(barrier)
            case Aborted(checkpoint_id=checkpoint_id, reason=reason):
                parts.outputs.broadcast(CancelCheckpointMarker(checkpoint_id))
                self._decline(checkpoint_id, reason.value)
            case (channel, EndOfData() | EndOfPartition()):
                self._ended_channels.add(channel)
                if len(self._ended_channels) == len(parts.gate.channels) and not self._data_ended:
                    self._end_of_data()
            case (channel, Watermark()):
                pass  # nothing here reads event time yet
            case (channel, element):
                self._process(element, parts.gate.channels[channel].input_index, 0)

    def _process(self, batch: Batch, input_index: int, start: int) -> None:
        self._running_parts().chain.process(batch, input_index, start)
        self._records_in += len(batch)
        self._batches_in += 1
        if self._batches_in == 1:
            self._owner.tell(
                FirstBatchProcessed(
                    self.deployment.job_id,
                    self.deployment.attempt_id,
                    self.deployment.vertex_id,
                    self.deployment.subtask_index,
                    self.deployment.attempt_number,
                    self.context.clock.wall_ms(),
                )
            )

    def _end_of_data(self) -> None:
        parts = self._running_parts()
        if not parts.state.data_ended:
            parts.chain.end()
        self._data_ended = True
        parts.outputs.broadcast(EndOfData())
        self._owner.tell(NotifyEndOfData(self.deployment.job_id, self.deployment.attempt_id))
