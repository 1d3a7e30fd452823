"""TaskLoop: what one attempt does while it runs: it takes what comes next, fires what is due, and passes barriers.

A step takes a batch of the source or an element of the input gate, or fires a part of what is due by event time or by
the clock. Data ends in two steps: first no record comes any more, then all is done that is due at the end of time. From
the barrier of a stop on, a source is not polled and nothing fires, until it is known what became of that checkpoint.

The task owns its loop, from the time that its parts are built, and calls it on its own thread. The loop knows no states
of an attempt and ends none: `step` and `complete` return whether all is done.
"""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa

from ...messages import AbortReason, CheckpointId, NotifyCheckpointComplete, NotifyEndOfData, TaskDeployment
from ..actor import Step
from ..barriers.barrier_handler import Aborted, Aligned, GateEvent
from ..context import ActorContext, Ref
from ..errors import UserCodeError
from ..flow.elements import (
    END_OF_TIME,
    AnyBatch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    KnownRows,
    NamedRows,
    NumberedRows,
    RoundMark,
    TimedBatch,
    Watermark,
    WatermarkStatus,
)
from ..operators.source import END, Source, continue_source
from .loop_turns import LoopTurns
from .operator_hooks import blame
from .source_barriers import SourceBarriers
from .task_checkpoints import Progress, TaskCheckpoints
from .task_counters import TaskCounters, first_batch_processed
from .task_rounds import of_the_first_round
from .task_setup import DoneAside, TaskParts
from .task_time import TaskTime


class TaskLoop:
    """One attempt's."""

    def __init__(
        self,
        deployment: TaskDeployment,
        parts: TaskParts,
        counters: TaskCounters,
        context: ActorContext,
        owner: Ref,
        watermark_warn_ms: int | None,
    ) -> None:
        """`owner`: the TaskManager. `watermark_warn_ms`: as in TaskServices."""
        first = parts.chain.operators[0]
        self.source = first if isinstance(first, Source) else None
        self.checkpoints = TaskCheckpoints(deployment, parts, self.source, context, owner)
        self._barriers = SourceBarriers(self.source, self.checkpoints.is_over, self._take_checkpoint)
        self.time = TaskTime(parts, context.clock, deployment, owner, watermark_warn_ms)
        self.data_ended = False
        """Operators have emitted what was left, and the tasks behind this one know it."""
        self.idle_ms: float | None = None
        """How long the task may idle after a step that returned IDLE; None: until it is woken."""
        self._deployment = deployment
        self._parts = parts
        self._counters = counters
        self._clock = context.clock
        self._owner = owner
        self._turns = LoopTurns(parts)
        self._rounds = self._turns.rounds
        self._input_ended = False
        """No record comes any more. Timers of the end of time fire next."""
        self._is_ending = False
        self._is_final = False
        """The job's last checkpoint is complete."""
        self._expected: CheckpointId | None = None
        """The barrier of this checkpoint is on its way: what comes before it is taken, however much is in flight."""
        self._held_by = deployment.restored_checkpoint_id if deployment.finishing else None
        self._has_fired = False
        """The last step did what was due by the clock."""
        self._due_ms: float | None = None
        """In how many ms something is due by the clock, when that was last looked at."""

    def open(self) -> None:
        """The state is there: go on where its snapshot was taken."""
        self._parts.gate.restore(self._parts.state.in_flight)
        self._parts.chain.open()
        if self._rounds.is_head:
            self._parts.gate.restore_loop(self._parts.chain.loop_head.take_in_loop())
        if self.source is not None:
            with blame(self.source):
                continue_source(self.source, self._parts.state.restored_offsets())
        if not self._deployment.finishing:
            self.time.restore()

    def begin(self) -> None:
        """It is known that the attempt runs. A source whose data had ended by its snapshot is at its end again."""
        if self.source is not None and self._parts.state.data_ended and not self._deployment.finishing:
            self._end_of_data()

    def step(self) -> Step:
        """DONE: the job's last checkpoint is complete, and all that it covers is committed."""
        parts = self._parts
        now_ms = self._clock.now_ms()
        if self.checkpoints.unaligned is not None:
            self.checkpoints.read_ahead()
        due_ms = parts.outputs.send_due(now_ms)
        if not parts.outputs.is_available():
            self.idle_ms = due_ms
            self._counters.held_back(now_ms)
            self.time.stands_still()
            return Step.IDLE
        self.time.goes_on(now_ms, self._counters.records_in)
        self._counters.begins(now_ms)
        worked = is_more = self._do_next()
        if worked and parts.outputs.keeps_any and parts.outputs.is_available():
            is_more = self._do_next()  # in this step, so that buffered records leave soon if no more follow
        if not is_more:
            self._rest()
            if self._is_final and self._finish():
                return Step.DONE
        if worked:
            self._counters.worked(self._clock.now_ms(), is_more)
        else:
            self._counters.rests()
        return Step.BUSY if is_more else Step.IDLE

    # -- control

    def end_input(self, *, at_once: bool = True) -> None:
        """A source takes no more input: at once, or from the next checkpoint on. One that is held at the barrier of a
        stop emits nothing before it may go on.
        """
        self._is_ending = True
        if at_once and self.source is not None and self._polls:
            with blame(self.source):
                ends_by_itself = self.source._ends_by_itself()
            if not ends_by_itself:
                self._end_of_data()

    def trigger(self, barrier: CheckpointBarrier) -> None:
        """Take this checkpoint, as the JobManager says; only sources do."""
        if self.source is not None:
            self._barriers.add(barrier)
        else:
            why = "checkpoints are triggered at sources only"
            self.checkpoints.decline(barrier.checkpoint_id, AbortReason.NOT_A_SOURCE, why)

    def switch(self, barrier: CheckpointBarrier) -> None:
        """The JobManager will not wait for barriers any longer."""
        if self.source is None:
            self.checkpoints.overtake(barrier, self.progress())
        else:
            self.trigger(barrier)

    def expect(self, checkpoint_id: CheckpointId) -> None:
        """The barrier of this checkpoint is on its way."""
        self._expected = checkpoint_id

    def complete(self, message: NotifyCheckpointComplete) -> bool:
        """Whether all is done, as `step` returns it."""
        self._parts.state.checkpoint_complete(message.checkpoint_id)
        self._parts.chain.checkpoint_complete(message.checkpoint_id)
        if self.source is not None and message.oldest_needed is not None:
            self.source._forget_before(message.oldest_needed)
        if not message.final:
            return False
        self._is_final = True
        return self._finish()

    def abort(self, checkpoint_id: CheckpointId) -> None:
        """The JobManager gave it up."""
        self.checkpoints.abort(checkpoint_id)
        self._barriers.abort(checkpoint_id)
        if self._expected == checkpoint_id:
            self._expected = None
        if self._held_by == checkpoint_id:
            self._hold(None)

    def done_aside(self, done: DoneAside) -> None:
        """Something that the source has had done; it may have read enough by that for a barrier that waits."""
        assert self.source is not None, "only a source has something done aside"
        with blame(self.source):
            done.then(done.outcome)
        self._barriers.look_again()

    def progress(self) -> Progress:
        """For a snapshot that is taken now."""
        return Progress(self._counters.records_in, self.data_ended, self.time.snapshot())

    def _take_checkpoint(self, barrier: CheckpointBarrier, *, overtaking: bool = False) -> None:
        self.checkpoints.take(barrier, self.progress(), overtaking=overtaking)
        self._hold(barrier.checkpoint_id if barrier.stop else None)

    def _hold(self, checkpoint_id: CheckpointId | None) -> None:
        """Poll nothing and fire no timer until it is known what became of this checkpoint; None: go on. One that is
        triggered later shows that it was given up, too.
        """
        self._held_by = checkpoint_id
        if self.source is not None:
            self.source._hold(checkpoint_id is not None)
        if checkpoint_id is None and self._is_ending:
            self.end_input()

    def _finish(self) -> bool:
        """The job's last checkpoint is complete: this was all, unless an operator has yet to commit what it covers."""
        if not self._parts.chain.is_settled:
            return False
        self._parts.outputs.broadcast(EndOfPartition())
        return True

    # -- data

    def _do_next(self) -> bool:
        """Fire what is due, or take what comes next; whether there was anything."""
        if self.time.is_firing:
            return self._fire()
        if self._turns.is_due and self._held_by is None and self._turn():
            return True
        may_fire = self._parts.chain.has_clock and self._polls
        if may_fire and not self._has_fired and self._fire_due():
            return True
        took = self._step_source(self.source) if self.source is not None else self._step_gate()
        had_fired, self._has_fired = self._has_fired, False
        return took or (may_fire and had_fired and self._fire_due())

    def _fire_due(self) -> bool:
        """A part of what is due by the clock; whether there was anything. In turns with input: neither starves."""
        self._has_fired, self._due_ms = self.time.fire_due()
        return self._has_fired

    def _fire(self) -> bool:
        """Do something for a checkpoint, or fire a part of what a watermark has made due, but nothing behind a stop's
        barrier; whether there was any.
        """
        event = self._parts.gate.next_checkpoint()
        if event is not None:
            self._take(event)
        elif self._held_by is not None:
            return False
        elif self._parts.chain.is_draining:  # no record comes, but ends of channels do, and barriers behind them
            return self._step_gate(may_be_full=True) or self._fire_due()
        elif not self.time.fire() and self._input_ended:
            self._finish_data()
        return True

    def _rest(self) -> None:
        """There is nothing to take: let operators emit what they hold back, send all, and settle how long to idle."""
        parts = self._parts
        may_fire = self._polls or (self._held_by is None and parts.chain.is_draining)
        delays = [parts.chain.idle(), self._due_ms if may_fire else None]
        parts.outputs.flush()
        self.time.rests()
        if self.source is not None and self._polls and not self.time.is_paused:
            with blame(self.source, self._counters.records_in):
                delays.append(self.time.poll_delay_ms())
        self.idle_ms = min((delay for delay in delays if delay is not None), default=None)

    @property
    def _polls(self) -> bool:
        """Whether a source may be polled, and what is due by the clock may fire."""
        return not self._input_ended and self._held_by is None

    def _step_source(self, source: Source) -> bool:
        if not self._polls or self._parts.chain.is_full:
            self.time.stands_still()
            return False
        with blame(source, self._counters.records_in):
            batch = self.time.poll()
            if batch is None:
                return False
        if batch is END:
            self._end_of_data()
        else:
            self._process_own(source, batch)
        return True

    def _process_own(self, source: Source, batch: AnyBatch) -> None:
        """A batch of the source, whose sender may know its records by another name."""
        taken = self._counters.records_in
        try:
            self._process(batch, 0, 1)
        except UserCodeError as error:
            operators, index = self._parts.chain.operators, None
            if len(operators) > 1 and error.operator_name == operators[1].context.name:
                index = None if error.record_position is None else error.record_position - taken
            if index is None or 0 <= index < len(batch):
                error.record_origin = source._origin_of(index)
            raise

    def _step_gate(self, *, may_be_full: bool = False) -> bool:
        parts = self._parts
        takes_all = may_be_full or (self._expected is not None and not self.checkpoints.is_over(self._expected))
        parts.gate.reads_all = takes_all
        is_held = self._rounds.is_head and self._held_by is not None  # what comes back is in the snapshot
        takes_none = is_held or (parts.chain.is_full and not takes_all)
        event = parts.gate.next_checkpoint() if takes_none else parts.gate.next()
        if event is None:
            return False
        self._take(event)
        return True

    def _take(self, event: GateEvent) -> None:
        match event:
            case (channel, element):
                self._take_element(channel, element)
            case Aligned(barrier, overtaken):
                self._take_checkpoint(barrier, overtaking=bool(overtaken))
            case Aborted():
                self.checkpoints.give_up(event)
                self._expected = None
            case _:
                assert_never(event)

    def _take_element(self, channel: int, element: Element) -> None:
        if self._deployment.in_rounds and not self._parts.gate.channels[channel].in_loop:
            if isinstance(element, Watermark | WatermarkStatus):
                return  # inside, event time is rounds; the first is not over before such input has ended
            element = of_the_first_round(element)
        match element:
            case pa.RecordBatch() | list() | TimedBatch() | KnownRows():
                if self._input_ended and self._rounds.is_feedback(channel):
                    self._turns.refuse_late_feedback(len(element))
                self._process(element, self._parts.gate.channels[channel].input_index, 0)
            case Watermark() | WatermarkStatus() if self._rounds.is_feedback(channel):
                pass  # event time in a loop is that of its input
            case Watermark(timestamp_ms):
                self.time.receive(channel, timestamp_ms)
            case WatermarkStatus(is_idle):
                self.time.set_idle(channel, is_idle)
            case RoundMark():
                self._turns.receive(channel, element)
            case EndOfData():
                self._end_channel(channel)
            case EndOfPartition():
                pass  # its producer has finished, with the job's last checkpoint; this task will be notified too
            case CheckpointBarrier() | CancelCheckpointMarker():
                raise AssertionError(f"the gate's handler makes events of barriers, found {element}")
            case NamedRows() | NumberedRows():
                raise AssertionError(f"the channel's end makes KnownRows of them, found {element}")
            case _:
                assert_never(element)

    def _process(self, batch: AnyBatch | KnownRows, input_index: int, start: int) -> None:
        self._parts.chain.process(batch, input_index, start)
        if self._counters.taken(len(batch)):
            self._owner.tell(first_batch_processed(self._deployment, self._clock.wall_ms()))

    def _end_channel(self, channel: int) -> None:
        is_feedback = self._rounds.is_feedback(channel)
        if not is_feedback:
            self.time.end(channel)
        self._turns.end(channel)
        if self._deployment.in_rounds and not is_feedback:
            self._turns.end_static_input(self._parts.gate.channels[channel].input_index)
        if is_feedback or self._input_ended or not self._rounds.all_input_ended:
            return
        if self._rounds.is_head and not self._parts.state.data_ended:
            self._turns.begin()
        else:
            self._end_of_data()

    def _turn(self) -> bool:
        """Of a loop: do what there is to do for a checkpoint, or send a part of the round; whether there was any."""
        turns = self._turns
        if turns.has_mark:
            if not turns.may_pass:
                return False
            if turns.pass_mark() and not self._input_ended:
                self._end_of_data()
        elif (event := self._parts.gate.next_checkpoint()) is not None:
            self._take(event)
        else:
            turns.send()
        return True

    def _end_of_data(self) -> None:
        """No record comes any more. Event time ends; when all is done that is due then, operators emit what is left."""
        self._input_ended = True
        if self.source is not None:
            self.time.end_source()
        if not self.time.is_firing:
            self._finish_data()

    def _finish_data(self) -> None:
        parts = self._parts
        if not parts.state.data_ended:
            parts.chain.end()
        self.data_ended = True
        parts.outputs.send_watermark(Watermark(END_OF_TIME))
        parts.outputs.say_misspelt()
        parts.outputs.broadcast(EndOfData())
        self._owner.tell(NotifyEndOfData(self._deployment.job_id, self._deployment.attempt_id))
