"""Task: one attempt of one subtask, as a stepping actor.

Its step takes the next batch from the source or the input gate, runs the operator chain and hands the results to its
outputs; control messages come between steps. States: INITIALIZING (state is being read) -> RUNNING -> FINISHED,
CANCELED or FAILED, each told to the TaskManager once. The task owns its operators, channels and state, and closes
them however it ends. It decides nothing about other tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pykka

from ...messages import (
    AbortReason,
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
    SwitchToUnaligned,
    TaskDeployment,
    TaskMetrics,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
)
from ..actor import Actor, Step
from ..ask_errors import NotRunning
from ..barriers.barrier_handler import Aborted, Aligned, GateEvent
from ..context import Ref
from ..errors import UserCodeError
from ..failure import chain_of, describe_in_task
from ..flow.elements import (
    Batch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    EndOfData,
    EndOfPartition,
    Watermark,
)
from ..operators.source import END, Source, continue_source, offset_of, poll
from ..passing_errors import is_repeatable
from ..unrun import RETURN, has_run
from .operator_chain import blame
from .snapshot_under_way import SnapshotFailed, SnapshotUnderWay, SnapshotWritten
from .task_setup import TaskParts, TaskServices, build_task


@dataclass(frozen=True, slots=True)
class _Restored:
    pass


@dataclass(frozen=True, slots=True)
class _RestoreFailed:
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
        self._unaligned: SnapshotUnderWay | None = None
        """Taken, and to be written when all that is in flight is known."""
        self._closing_from: ExecutionState | None = None
        """Its state before, as long as it closes its operators: they may still fail, and it has not ended yet."""
        self._ended_channels: set[int] = set()
        self._data_ended = False
        self._is_ending = False
        self._held_by = deployment.restored_checkpoint_id if deployment.finishing else None
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
            status=(self._closing_from or self.state).value,
        )

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
        self._parts = build_task(self.deployment, self._services, self.context)
        first = self._parts.chain.operators[0]
        self._source = first if isinstance(first, Source) else None
        restored = self.context.run_blocking(self._parts.state.restore)
        self.context.pipe_to_self(restored, lambda _: _Restored(), _RestoreFailed)

    def _open(self) -> None:
        parts = self._running_parts()
        parts.gate.restore(parts.state.in_flight)
        parts.chain.open()
        if self._source is not None:
            with blame(self._source):
                continue_source(self._source, parts.state.restored_offsets())
        self._report(ExecutionState.RUNNING)
        if self._source is not None and parts.state.data_ended and not self.deployment.finishing:
            self._end_of_data()

    def _end(self, state: ExecutionState, failure: FailureCause | None = None) -> None:
        errors = self._release(state)
        if errors and state is not ExecutionState.FAILED:
            failure = failure or describe_in_task(errors[0], self.deployment, self._services.task_manager_name)
            state = self.state = ExecutionState.FAILED if state is ExecutionState.FINISHED else state
        self._report(state, failure)
        self.context.wake()

    def _release(self, state: ExecutionState) -> list[UserCodeError]:
        before, self.state = self.state, state
        if self._parts is None:
            return []
        self._closing_from = before
        self._parts.gate.close()
        errors = self._parts.chain.close()
        self._parts.outputs.close()
        self._parts.state.close()
        return errors

    def _report(self, state: ExecutionState, failure: FailureCause | None = None) -> None:
        self.state, self._closing_from = state, None
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
                self._end_input()
            case TriggerCheckpoint(checkpoint_id=checkpoint_id, timestamp_ms=timestamp_ms, stop=stop):
                self._trigger(CheckpointBarrier(checkpoint_id, timestamp_ms), stop)
            case NotifyCheckpointComplete():
                self._complete(message)
            case NotifyCheckpointAborted(checkpoint_id=checkpoint_id):
                self._abort(checkpoint_id)
            case SwitchToUnaligned(checkpoint_id=checkpoint_id, timestamp_ms=timestamp_ms):
                self._switch(CheckpointBarrier(checkpoint_id, timestamp_ms))
            case SnapshotWritten():
                self._acknowledge(message)
            case SnapshotFailed(checkpoint_id, error):
                repeatable = is_repeatable(chain_of(error))
                detail = f"{type(error).__name__}: {error}"
                self._decline(checkpoint_id, AbortReason.SNAPSHOT_FAILED, detail, repeatable=repeatable)
            case _:
                super().on_receive(message)

    def _end_input(self) -> None:
        """A source takes no more input. One that is held at the barrier of a stop emits nothing before it may go on."""
        self._is_ending = True
        if self.state is ExecutionState.RUNNING and self._source is not None and self._polls:
            self._end_of_data()

    def _trigger(self, barrier: CheckpointBarrier, stop: bool) -> None:
        if self.state is not ExecutionState.RUNNING:
            detail = f"the task is {self.state.value}, not running"
            self._decline(barrier.checkpoint_id, AbortReason.NOT_RUNNING, detail)
        elif self._source is None:
            self._decline(barrier.checkpoint_id, AbortReason.NOT_A_SOURCE, "checkpoints are triggered at sources only")
        elif barrier.checkpoint_id > self._last_checkpoint:
            self._checkpoint(barrier)
            self._hold(barrier.checkpoint_id if stop else None)

    def _hold(self, checkpoint_id: CheckpointId | None) -> None:
        """Poll nothing until it is known what became of this checkpoint; None: go on. One that is triggered later shows
        that it was given up, too.
        """
        self._held_by = checkpoint_id
        if checkpoint_id is None and self._is_ending:
            self._end_input()

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
            if self._unaligned is not None and self._unaligned.checkpoint_id == checkpoint_id:
                self._unaligned = None
            parts.chain.checkpoint_aborted(checkpoint_id)
            if self._held_by == checkpoint_id:
                self._hold(None)

    def _answer(self, question: AskOperator) -> pykka.Future[OperatorAnswer]:
        """A promise, already kept or broken: what user code raises here fails the question, and not the attempt."""
        answer = self.context.promise()
        try:
            answer.set(OperatorAnswer(self._ask_operator(question)))
        except SystemExit as error:
            answer.set_exception((RuntimeError, RuntimeError(f"on_receive raised SystemExit({error.code!r})"), None))
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
            return has_run(f"{type(operator).__name__}.on_receive", operator.on_receive(asked), RETURN)

    # -- checkpoints

    def _switch(self, barrier: CheckpointBarrier) -> None:
        """The JobManager will not wait for barriers any longer."""
        if self.state is not ExecutionState.RUNNING or barrier.checkpoint_id <= self._last_checkpoint:
            return
        if self._source is not None:
            self._trigger(barrier, stop=False)
            return
        parts = self._running_parts()
        for event in parts.gate.overtake(barrier):
            if isinstance(event, Aligned):
                self._checkpoint(event.barrier, overtaking=True)
            else:
                self._take(parts, event)

    def _read_ahead(self, parts: TaskParts) -> None:
        """See whether the log of an unaligned snapshot is over, which then can be written, or is given up."""
        log, snapshot = parts.gate.read_ahead(), self._unaligned
        if log is None or snapshot is None or log.checkpoint_id != snapshot.checkpoint_id:
            return
        if log.given_up is not None:
            self._give_up_unaligned(log.given_up)
            return
        self._unaligned = None
        self._write(snapshot, lambda: snapshot.write_with(log, parts.gate.channels))

    def _give_up_unaligned(self, reason: AbortReason) -> None:
        if self._unaligned is not None:
            checkpoint_id, self._unaligned = self._unaligned.checkpoint_id, None
            self._take(self._running_parts(), Aborted(checkpoint_id, reason))

    def _checkpoint(self, barrier: CheckpointBarrier, overtaking: bool = False) -> None:
        if barrier.checkpoint_id <= self._last_checkpoint:
            return
        self._give_up_unaligned(AbortReason.SUBSUMED)
        self._last_checkpoint = barrier.checkpoint_id
        parts, started_ms = self._running_parts(), self.context.clock.now_ms()
        alignment_ms = parts.gate.alignment.stop(barrier.checkpoint_id)
        parts.chain.checkpoint(barrier.checkpoint_id)
        offset = None if self._source is None else (self._offset_of(self._source),)
        data_ended = self._data_ended or parts.state.data_ended
        finish = parts.state.snapshot(barrier.checkpoint_id, offset, data_ended=data_ended)
        parts.outputs.broadcast(barrier)
        snapshot = SnapshotUnderWay(
            barrier.checkpoint_id, finish, self.context.clock, started_ms=started_ms, alignment_ms=alignment_ms
        )
        if overtaking:
            self._unaligned = snapshot
        else:
            self._write(snapshot, snapshot.write)

    def _write(self, snapshot: SnapshotUnderWay, write: Callable[[], SnapshotWritten]) -> None:
        written = self.context.run_blocking(write)
        self.context.pipe_to_self(written, lambda it: it, lambda error: SnapshotFailed(snapshot.checkpoint_id, error))

    def _offset_of(self, source: Source) -> Any:
        with blame(source, self._records_in):
            return offset_of(source)

    def _acknowledge(self, written: SnapshotWritten) -> None:
        self._owner.tell(written.acknowledgement(self.deployment.job_id, self.deployment.attempt_id))

    def _decline(
        self, checkpoint_id: CheckpointId, reason: AbortReason, detail: str = "", *, repeatable: bool = False
    ) -> None:
        job_id, attempt_id = self.deployment.job_id, self.deployment.attempt_id
        self._owner.tell(DeclineCheckpoint(job_id, attempt_id, checkpoint_id, reason, detail, repeatable))

    # -- data

    def _step(self) -> Step:
        parts = self._running_parts()
        now_ms = self.context.clock.now_ms()
        if self._unaligned is not None:
            self._read_ahead(parts)
        due_ms = parts.outputs.send_due(now_ms)
        if not parts.outputs.is_available():
            self.idle_ms = due_ms
            self._blocked_since = self._blocked_since or now_ms
            return Step.IDLE
        if self._blocked_since is not None:
            self._blocked_ms += now_ms - self._blocked_since
            self._blocked_since = None
        worked = is_more = self._take_next(parts)
        if worked and parts.outputs.keeps_any and parts.outputs.is_available():
            is_more = self._take_next(parts)  # in this step, so that what is kept leaves soon if there is nothing more
        if not is_more:
            self._rest(parts)
        if worked:
            self._busy_ms += self.context.clock.now_ms() - now_ms
        return Step.BUSY if is_more else Step.IDLE

    def _take_next(self, parts: TaskParts) -> bool:
        return self._step_source(self._source) if self._source is not None else self._step_gate(parts)

    def _rest(self, parts: TaskParts) -> None:
        """There is nothing to take: let operators emit what they hold back, send all, and settle how long to idle at
        most.
        """
        delays = [parts.chain.idle()]
        parts.outputs.flush()
        if self._source is not None and self._polls:
            with blame(self._source, self._records_in):
                delays.append(self._source.poll_delay_ms())
        self.idle_ms = min((delay for delay in delays if delay is not None), default=None)

    @property
    def _polls(self) -> bool:
        return not self._data_ended and self._held_by is None

    def _step_source(self, source: Source) -> bool:
        if not self._polls:
            return False
        with blame(source, self._records_in):
            batch = poll(source)
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
                self._decline(checkpoint_id, reason)
            case (_, EndOfPartition()):
                pass  # its producer has finished, with the job's last checkpoint; this task will hear of that too
            case (channel, EndOfData()):
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
