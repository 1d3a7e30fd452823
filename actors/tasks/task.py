"""Task: one attempt of one subtask, as a stepping actor.

Its step takes the next batch from the source or the input gate, runs the operator chain and hands the results to its
outputs; control messages come between steps. States: INITIALIZING (state is being read) -> RUNNING -> FINISHED,
CANCELED or FAILED, each reported to the TaskManager once. The task owns its operators, channels and state, and closes
them however it ends. It decides nothing about other tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import pyarrow as pa

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
from ..barriers.barrier_handler import Aborted, Aligned, GateEvent
from ..context import Ref
from ..errors import UserCodeError
from ..failure import describe_in_task
from ..flow.elements import (
    END_OF_TIME,
    AnyBatch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    TimedBatch,
    Watermark,
    WatermarkStatus,
)
from ..operators.source import END, Source, continue_source
from .offers import AnotherLeads, offer_of
from .operator_chain import blame
from .questions import answer, take
from .snapshot_under_way import SnapshotFailed, SnapshotWritten
from .task_checkpoints import Progress, TaskCheckpoints
from .task_counters import TaskCounters, first_batch_processed, reported
from .task_figures import ReadGauges, figures_of
from .task_setup import DoneAside, TaskParts, TaskServices, build_task
from .task_time import TaskTime


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

    idle_ms: float | None = None
    """How long the dispatcher may let it idle; None: until it is woken."""

    def __init__(self, deployment: TaskDeployment, services: TaskServices, owner: Ref) -> None:
        self.deployment = deployment
        self.state = ExecutionState.DEPLOYING
        self._services = services
        self._owner = owner
        self._parts: TaskParts | None = None
        self._source: Source | None = None
        self._checkpoints: TaskCheckpoints | None = None
        self._time: TaskTime | None = None
        self._closing_from: ExecutionState | None = None
        """Its state before, as long as it closes its operators: they may still fail, and it has not ended yet."""
        self._ended_channels: set[int] = set()
        self._input_ended = False
        """No record comes any more. Timers of the end of time fire next."""
        self._data_ended = False
        self._is_ending = False
        self._is_final = False
        """The job's last checkpoint is complete."""
        self._expected: CheckpointId | None = None
        """The barrier of this checkpoint is on its way: what comes before it is taken, however much is in flight."""
        self._held_by = deployment.restored_checkpoint_id if deployment.finishing else None
        self.counters = TaskCounters()
        self._has_fired = False
        """The last step did what was due by the clock."""
        self._due_ms: float | None = None
        """In how many ms something is due by the clock, when that was last looked at."""

    def on_start(self) -> None:
        self._guard(self._initialize)

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, AskOperator):
            answer(message, promise := self.context.promise(), self.state, self._parts)
            return promise
        if isinstance(message, PutIntoInlet):
            return take(message.sent, self.context.promise, self.state, self._source)
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
        event_time = None if self._time is None else self._time.event_time(self.counters.is_blocked)
        state = self._closing_from or self.state
        figures = {} if self._parts is None else figures_of(self._parts)
        return reported(self.counters, self.deployment, state, self.context.clock, event_time, **figures)

    @property
    def has_gauges(self) -> bool:
        """Whether ReadGauges is of use. From the TaskManager's thread, too."""
        return self.state is ExecutionState.RUNNING and self._running_parts().chain.has_gauges

    def watermark_report(self) -> ReportWatermark | None:
        """For sources that wait for each other. From the TaskManager's thread, too."""
        return None if self._time is None else self._time.report()

    def offered(self, *, is_stopping: bool) -> OfferedTask:
        """For a JobManager that may take it over as it is. From the TaskManager's thread, too."""
        newest = CheckpointId(0) if self._checkpoints is None else self._checkpoints.newest
        return offer_of(self.deployment, self.state, newest, data_ended=self._data_ended, is_stopping=is_stopping)

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
        self._parts = build_task(self.deployment, self._services, self.context, self._owner.tell)
        first = self._parts.chain.operators[0]
        self._source = first if isinstance(first, Source) else None
        self._checkpoints = TaskCheckpoints(self.deployment, self._parts, self._source, self.context, self._owner)
        warn_ms = self._services.watermark_warn_ms
        self._time = TaskTime(self._parts, self.context.clock, self.deployment, self._owner, warn_ms)
        restored = self.context.run_blocking(self._parts.state.restore)
        self.context.pipe_to_self(restored, lambda _: _Restored(), _RestoreFailed)

    def _open(self) -> None:
        parts = self._running_parts()
        parts.gate.restore(parts.state.in_flight)
        parts.chain.open()
        if self._source is not None:
            with blame(self._source):
                continue_source(self._source, parts.state.restored_offsets())
        if not self.deployment.finishing:
            self._own_time().restore()
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
        self.counters.rests()
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

    def _own_checkpoints(self) -> TaskCheckpoints:
        assert self._checkpoints is not None, "the task has not been initialized"
        return self._checkpoints

    def _own_time(self) -> TaskTime:
        assert self._time is not None, "the task has not been initialized"
        return self._time

    def _progress(self) -> Progress:
        return Progress(self.counters.records_in, self._data_ended, self._own_time().snapshot())

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
                self._end_input()
            case TriggerCheckpoint(checkpoint_id=checkpoint_id, timestamp_ms=timestamp_ms, stop=stop, whole=whole):
                self._trigger(CheckpointBarrier(checkpoint_id, timestamp_ms, stop, whole))
            case NotifyCheckpointComplete():
                self._complete(message)
            case NotifyCheckpointAborted(checkpoint_id=checkpoint_id):
                self._abort(checkpoint_id)
            case AnnounceWatermark():
                self._own_time().align(message)
            case GrantPermits():
                self._running_parts().chain.permits_granted(message)
            case ReadGauges():
                self._running_parts().chain.read_gauges()
            case AnotherLeads():
                self._say_again()
            case ExpectBarrier(checkpoint_id=checkpoint_id):
                self._expected = checkpoint_id
            case SwitchToUnaligned(checkpoint_id=checkpoint_id, timestamp_ms=timestamp_ms):
                self._switch(CheckpointBarrier(checkpoint_id, timestamp_ms))
            case SnapshotWritten():
                self._own_checkpoints().acknowledge(message)
            case SnapshotFailed():
                self._own_checkpoints().not_written(message)
            case DoneAside(then, outcome):
                assert self._source is not None, "only a source has something done aside"
                with blame(self._source):
                    then(outcome)
            case _:
                assert_never(message)

    def _say_again(self) -> None:
        """What was said once, and may have been heard by another JobManager only. States come with heartbeats."""
        if self.state is not ExecutionState.RUNNING:
            return
        if self._data_ended:
            self._owner.tell(NotifyEndOfData(self.deployment.job_id, self.deployment.attempt_id))
        self._running_parts().chain.say_again()

    def _end_input(self) -> None:
        """A source takes no more input. One that is held at the barrier of a stop emits nothing before it may go on."""
        self._is_ending = True
        if self.state is ExecutionState.RUNNING and self._source is not None and self._polls:
            with blame(self._source):
                ends_by_itself = self._source._ends_by_itself()
            if not ends_by_itself:
                self._end_of_data()

    def _trigger(self, barrier: CheckpointBarrier) -> None:
        checkpoints = self._own_checkpoints()
        if self.state is not ExecutionState.RUNNING:
            checkpoints.decline(
                barrier.checkpoint_id, AbortReason.NOT_RUNNING, f"the task is {self.state.value}, not running"
            )
        elif self._source is None:
            checkpoints.decline(
                barrier.checkpoint_id, AbortReason.NOT_A_SOURCE, "checkpoints are triggered at sources only"
            )
        elif not checkpoints.is_over(barrier.checkpoint_id):
            checkpoints.take(barrier, self._progress())
            self._hold(barrier.checkpoint_id if barrier.stop else None)

    def _switch(self, barrier: CheckpointBarrier) -> None:
        """The JobManager will not wait for barriers any longer."""
        if self.state is not ExecutionState.RUNNING:
            return
        if self._source is None:
            self._own_checkpoints().overtake(barrier, self._progress())
        elif not self._own_checkpoints().is_over(barrier.checkpoint_id):
            self._trigger(barrier)

    def _hold(self, checkpoint_id: CheckpointId | None) -> None:
        """Poll nothing and fire no timer until it is known what became of this checkpoint; None: go on. One that is
        triggered later shows that it was given up, too.
        """
        self._held_by = checkpoint_id
        if self._source is not None:
            self._source._hold(checkpoint_id is not None)
        if checkpoint_id is None and self._is_ending:
            self._end_input()

    def _complete(self, message: NotifyCheckpointComplete) -> None:
        if self.state is not ExecutionState.RUNNING:
            return
        parts = self._running_parts()
        parts.state.checkpoint_complete(message.checkpoint_id)
        parts.chain.checkpoint_complete(message.checkpoint_id)
        if self._source is not None and message.oldest_needed is not None:
            self._source._forget_before(message.oldest_needed)
        if message.final:
            self._is_final = True
            self._finish(parts)

    def _finish(self, parts: TaskParts) -> None:
        """The job's last checkpoint is complete: this was all, unless an operator has yet to commit what it covers."""
        if parts.chain.is_settled:
            parts.outputs.broadcast(EndOfPartition())
            self._end(ExecutionState.FINISHED)

    def _abort(self, checkpoint_id: CheckpointId) -> None:
        if self.state is ExecutionState.RUNNING:
            self._own_checkpoints().abort(checkpoint_id)
            if self._expected == checkpoint_id:
                self._expected = None
            if self._held_by == checkpoint_id:
                self._hold(None)

    # -- data

    def _step(self) -> Step:
        parts = self._running_parts()
        now_ms = self.context.clock.now_ms()
        checkpoints = self._checkpoints
        if checkpoints is not None and checkpoints.unaligned is not None:
            checkpoints.read_ahead()
        due_ms = parts.outputs.send_due(now_ms)
        if not parts.outputs.is_available():
            self.idle_ms = due_ms
            self.counters.held_back(now_ms)
            self._own_time().stands_still()
            return Step.IDLE
        self._own_time().goes_on(now_ms, self.counters.records_in)
        self.counters.begins(now_ms)
        worked = is_more = self._do_next(parts)
        if worked and parts.outputs.keeps_any and parts.outputs.is_available():
            is_more = self._do_next(parts)  # in this step, so that buffered records leave soon if no more follow
        if not is_more:
            self._rest(parts)
        if worked:
            self.counters.worked(self.context.clock.now_ms(), is_more)
        else:
            self.counters.rests()
        return Step.BUSY if is_more else Step.IDLE

    def _do_next(self, parts: TaskParts) -> bool:
        """Fire what is due, or take what comes next; whether there was anything."""
        if self._own_time().is_firing:
            return self._fire(parts)
        may_fire = parts.chain.has_clock and self._polls
        if may_fire and not self._has_fired and self._fire_due():
            return True
        took = self._step_source(self._source) if self._source is not None else self._step_gate(parts)
        had_fired, self._has_fired = self._has_fired, False
        return took or (may_fire and had_fired and self._fire_due())

    def _fire_due(self) -> bool:
        """A part of what is due by the clock; whether there was anything. In turns with input: neither starves."""
        self._has_fired, self._due_ms = self._own_time().fire_due()
        return self._has_fired

    def _fire(self, parts: TaskParts) -> bool:
        """A part of what a watermark has made due; but first what there is to do for a checkpoint. Nothing fires behind
        the barrier of a stop. Whether there was anything to do.
        """
        event = parts.gate.next_checkpoint()
        if event is not None:
            self._take(parts, event)
        elif self._held_by is not None:
            return False
        elif parts.chain.is_draining:  # no record comes any more, but ends of channels do, and barriers behind them
            return self._step_gate(parts, may_be_full=True) or self._fire_due()
        elif not self._own_time().fire() and self._input_ended:
            self._finish_data()
        return True

    def _rest(self, parts: TaskParts) -> None:
        """There is nothing to take: let operators emit what they hold back, send all, and settle how long to idle at
        most.
        """
        may_fire = self._polls or (self._held_by is None and parts.chain.is_draining)
        delays = [parts.chain.idle(), self._due_ms if may_fire else None]
        parts.outputs.flush()
        self._own_time().rests()
        if self._source is not None and self._polls and not self._own_time().is_paused:
            with blame(self._source, self.counters.records_in):
                delays.append(self._source.poll_delay_ms())
        self.idle_ms = min((delay for delay in delays if delay is not None), default=None)
        if self._is_final:
            self._finish(parts)

    @property
    def _polls(self) -> bool:
        """Whether a source may be polled, and what is due by the clock may fire."""
        return not self._input_ended and self._held_by is None

    def _step_source(self, source: Source) -> bool:
        if not self._polls or self._running_parts().chain.is_full:
            self._own_time().stands_still()
            return False
        with blame(source, self.counters.records_in):
            batch = self._own_time().poll()
            if batch is None:
                return False
        if batch is END:
            self._end_of_data()
        else:
            self._process_own(source, batch)
        return True

    def _process_own(self, source: Source, batch: AnyBatch) -> None:
        """A batch of the source, whose sender may know its records by another name."""
        taken = self.counters.records_in
        try:
            self._process(batch, 0, 1)
        except UserCodeError as error:
            operators, index = self._running_parts().chain.operators, None
            if len(operators) > 1 and error.operator_name == operators[1].context.name:
                index = None if error.record_position is None else error.record_position - taken
            if index is None or 0 <= index < len(batch):
                error.record_origin = source._origin_of(index)
            raise

    def _step_gate(self, parts: TaskParts, *, may_be_full: bool = False) -> bool:
        takes_all = may_be_full or (self._expected is not None and not self._own_checkpoints().is_over(self._expected))
        event = parts.gate.next_checkpoint() if parts.chain.is_full and not takes_all else parts.gate.next()
        if event is None:
            return False
        self._take(parts, event)
        return True

    def _take(self, parts: TaskParts, event: GateEvent) -> None:
        match event:
            case (channel, element):
                self._take_element(parts, channel, element)
            case Aligned(barrier=barrier):
                self._own_checkpoints().take(barrier, self._progress())
                self._hold(barrier.checkpoint_id if barrier.stop else None)
            case Aborted():
                self._own_checkpoints().give_up(event)
                self._expected = None
            case _:
                assert_never(event)

    def _take_element(self, parts: TaskParts, channel: int, element: Element) -> None:
        match element:
            case pa.RecordBatch() | list() | TimedBatch():
                self._process(element, parts.gate.channels[channel].input_index, 0)
            case Watermark(timestamp_ms):
                self._own_time().receive(channel, timestamp_ms)
            case WatermarkStatus(is_idle):
                self._own_time().set_idle(channel, is_idle)
            case EndOfData():
                self._own_time().end(channel)
                self._ended_channels.add(channel)
                if len(self._ended_channels) == len(parts.gate.channels) and not self._input_ended:
                    self._end_of_data()
            case EndOfPartition():
                pass  # its producer has finished, with the job's last checkpoint; this task will be notified too
            case CheckpointBarrier() | CancelCheckpointMarker():
                raise AssertionError(f"the gate's handler makes events of barriers, found {element}")
            case _:
                assert_never(element)

    def _process(self, batch: AnyBatch, input_index: int, start: int) -> None:
        self._running_parts().chain.process(batch, input_index, start)
        if self.counters.taken(len(batch)):
            self._owner.tell(first_batch_processed(self.deployment, self.context.clock.wall_ms()))

    def _end_of_data(self) -> None:
        """No record comes any more. Event time ends; when all is done that is due then, operators emit what is left."""
        self._input_ended = True
        if self._source is not None:
            self._own_time().end_source()
        if not self._own_time().is_firing:
            self._finish_data()

    def _finish_data(self) -> None:
        parts = self._running_parts()
        if not parts.state.data_ended:
            parts.chain.end()
        self._data_ended = True
        parts.outputs.send_watermark(Watermark(END_OF_TIME))
        parts.outputs.say_misspelt()
        parts.outputs.broadcast(EndOfData())
        self._owner.tell(NotifyEndOfData(self.deployment.job_id, self.deployment.attempt_id))
