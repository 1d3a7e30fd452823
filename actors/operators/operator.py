"""Operator: what users subclass. An operator is an actor that its task hosts: it shares the task's inbox and thread.

The task feeds it batches and barriers; a question put to it with `job.ask` reaches `on_receive` between two batches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa

from ...messages import (
    CheckpointId,
    GrantPermits,
    StateDescription,
)
from ...state.errors import CallIsOver
from ...state.kinds.state_descriptions import CALLS, describe_states, with_rules
from ..actor import Actor
from ..flow.changelog import Changelog
from ..flow.elements import NO_WATERMARK, Batch, Times
from ..flow.key_selector import KeyPart
from .collector import Collector
from .each_record import process_each
from .metrics import MetricGroup, OwnMetrics
from .of_call import OfCall, is_async
from .of_records import In, Out, TakesAndEmits
from .operator_context import OperatorContext

Takes = Literal["records", "columns", "any"]
MayWait: TypeAlias = "Coroutine[Any, Any, None] | None"
"""Of a hook that may be `async def`."""


class RecordCalls(Protocol):
    """What runs the coroutines of an operator, and stands before it in its task: see actors/async_calls."""

    @property
    def is_full(self) -> bool:
        """Whether the task should take no input now."""
        ...

    @property
    def is_draining(self) -> bool:
        """Whether the data has ended, and not all that came of it has left."""
        ...

    @property
    def in_flight(self) -> int:
        """How many records it holds of which calls have been made."""
        ...

    def waiting_at(self) -> str:
        """The lines at which coroutines wait."""
        ...

    def open(self) -> None:
        """Open the operator. What its `open` raises, where that is a coroutine, `do_due` raises."""

    def take(self, batch: Any, input_index: int) -> None:
        """A batch of its input, whose event times stand at the operator."""

    def advance(self, watermark_ms: int) -> bool:
        """A watermark comes behind all that was taken; whether there is more to do for it."""
        ...

    def due_ms(self, now_ms: int) -> int | None:
        """When `do_due` wants to be called, by the same clock; None: not before something happens."""
        ...

    def do_due(self, now_ms: int, out: Collector) -> None:
        """Do what there is to do, and emit what has come of it. Raises UserCodeError."""

    def say_again(self) -> None:
        """Another JobManager leads: what was said to it once, and not answered, is said again."""

    def granted(self, message: GrantPermits) -> None:
        """More calls may begin."""

    def settle(self) -> None:
        """A snapshot comes: make up one's mind about what has ended, or some of it; the rest still runs."""

    def close(self) -> None:
        """End all that runs, and close the operator."""


class Operator(Actor, TakesAndEmits[In, Out]):
    """One operator of one subtask. Override what you need; see docs/operators.md for the order of calls.

    All methods run on the task's thread, and none may block it: meanwhile the task takes no record, checkpoint or
    cancellation. One that waits for something outside gives it to a thread of its own, which calls
    `self.context.wake()` when it is there, and takes it in `on_idle` or `process_batch`. One that holds the thread for
    more than `slow_step_ms` (StreamEnvironment) is logged.
    """

    takes: ClassVar[Takes] = "records"
    """What `process_batch` gets: lists of records, `pa.RecordBatch`es, or whatever comes."""

    _emits_at_end: ClassVar[bool] = True
    """Whether anything may come of it when its data, or event time, ends: then its state, once data has ended in some
    subtasks, is not for others to go on with.
    """

    inputs: ClassVar[int] = 1
    """2 for an operator of a connected stream; then `process_batch_2` takes the second input's batches."""

    context: OperatorContext  # type: ignore[assignment]

    timestamps: Times | None = None
    """In `process_batch`: the event time of each record of the batch, in ms; None where they have none."""

    split_watermarks: Times | None = None
    """In `process_batch`: for each record how far its split of the source had come before it, where some of them came
    later than that; None: all came in time.
    """

    timestamp: int
    """In `process`: the event time of the record, in ms; where records have none there is no such attribute."""

    time_column: str | None = None
    """In `process_batch`: the column that the event times come from, if they come from one."""

    watermark: int = NO_WATERMARK
    """How far event time has come, in ms: no record with this or an older time comes any more, but late ones. Before
    the first watermark it is -2**63, and 2**63 - 1 when the data has ended.
    """

    metrics: ClassVar[MetricGroup] = OwnMetrics()  # type: ignore[assignment]
    """Counters, gauges, meters and histograms of its own: `self.metrics.counter("late").inc()`. Make them in `open`
    and keep them: to look for one by name with each record costs more than to count it.
    """

    late_records: int = 0
    """How many records came too late for it in this attempt. An operator that drops such records counts them here;
    `job.metrics()` shows it. Flink: numLateRecordsDropped.
    """

    most_late_ms: int = 0
    """How far behind event time the latest of them was; 0: not known."""

    transient: ClassVar[Collection[str]] = ()
    """Names of attributes that a restart may lose, as no result depends on them: a cache, a figure for the log. An
    attribute that changes and is neither state nor named here is logged at a checkpoint. Java: transient.
    """

    async_settings: Any = None
    """An AsyncSettings, for one whose `process`, or `process_batch`, is `async def`; None: as it is by default."""

    idempotency_key: str
    """In `async def process`: the same in each try of this record, and after each restart. Give it to the service that
    is asked, so that it does nothing twice. In no other method is there such an attribute.
    """

    removes_rows: bool = False
    """Of a sink that sets rows by key: whether a record may say that its row goes. Changes of one row must come to such
    a sink in their order: a job that lets them overtake each other is warned of when it is submitted.
    """

    _is_async: ClassVar[bool] = False
    """Whether what processes its records is `async def`."""

    _takes_batches: ClassVar[bool] = False
    """Whether that is `process_batch`."""

    @property
    def _owned_place(self) -> str:
        """The URL that this sink writes to and no other job may, as long as this one lives; empty: there is none."""
        return ""

    @property
    def _writes_to(self) -> str:
        """What it changes outside of the job, as a URL or in words without secrets; empty: nothing, or nobody can know,
        as of a sink of the user's.
        """
        return ""

    @property
    def _row_key(self) -> tuple[KeyPart, ...]:
        """Of a sink that sets the row of a key: what makes the key. Records that are dealt out come to it by their key,
        so that the last one of each comes last. Flink SQL: table.exec.sink.keyed-shuffle.
        """
        return ()

    @property
    def _changelog(self) -> Changelog | None:
        """Of one whose results are changes: what holds of them. None: each result stays."""
        return None

    _records_before: int = 0
    """Of one with `process` and no key: the records of this attempt in the batches before."""

    _calls: RecordCalls | None = None
    """Of an async one, from when its task has placed it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        was_async, cls._is_async = cls._is_async, is_async(cls)
        if cls._is_async and not was_async:
            for name, (given, default) in _OF_CALL.items():
                setattr(cls, name, OfCall(name, given, *default))
        if cls._is_async:
            cls._takes_batches = iscoroutinefunction(cls.process_batch)

    def __setstate__(self, state: Any) -> None:
        """Takes what was pickled: a dict, or with slots a pair of dicts or None, as Python makes it.

        Attribute by attribute: once anybody has seen an object's `__dict__`, CPython takes five times as long to find
        what is in it, and `self.key` and states are asked for with each record.
        """
        for attributes in state if isinstance(state, tuple) else (state,):
            for name, value in (attributes or {}).items():
                object.__setattr__(self, name, value)

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Called where the job is submitted, before anything of it starts: raise what would make it fail, such as a
        folder that cannot be written. Leave nothing behind, and keep nothing open: the operator is pickled already.

        `on_this_machine`: whether it runs on this machine too, and so finds the same files.
        """

    def open(self) -> MayWait:
        """Called once per attempt, on the task's thread; state is restored and readable."""

    def _belong_here(self, misused: Callable[[CallIsOver], None]) -> None:
        """Called right before `open`, on the task's thread: `misused` takes what another one does with its state."""

    def _opened(self) -> None:
        """Called right after `open`, whatever a subclass does there."""

    def _input_ended(self, input_index: int) -> None:
        """Called inside a loop that goes in rounds, when no record of this input comes any more."""

    def _data_ended(self) -> None:
        """Called when all input has ended, behind `on_end`."""

    def process_batch(self, batch: Any, out: Collector[Out]) -> MayWait:
        """Take one batch of the first input. A subclass may define `process(record, out)` in its place."""
        if (process := getattr(self, "process", None)) is None:
            raise NotImplementedError(f"{type(self).__name__} takes no input")  # abstract
        self._records_before = process_each(self, process, batch, out, self._records_before)
        return None

    def process_batch_2(self, batch: Any, out: Collector[Out]) -> None:
        """Take one batch of the second input."""
        raise NotImplementedError(f"{type(self).__name__} takes no second input")  # abstract

    def _taken_as(self, input_index: int) -> Takes:
        """What this input really takes: an operator that makes Rows by itself, one at a time, takes any batch."""
        return "any" if self._is_async else self.takes

    def _in_pieces(self, input_index: int, batch: Batch) -> Iterable[Batch]:
        """The pieces of a batch that `process_batch` gets in turn, where the next operator is in this task."""
        return (batch,)

    def _leave_key(self) -> None:
        """From here on there is no current key. Called after each hook that has none."""

    def on_watermark(self, watermark_ms: int, out: Collector[Out]) -> None:
        """Event time has come this far: `self.watermark` says so too. What is emitted goes before the watermark."""

    def _advance(self, watermark_ms: int, out: Collector) -> bool:
        """A part of what there is to do now that event time has come this far. Whether there is more of it: then it is
        called again, and what was done so far may be part of a snapshot in between. `watermark` is set already.
        """
        if self._calls is not None:
            return self._calls.advance(watermark_ms)
        self.on_watermark(watermark_ms, out)
        return False

    def _passes(self, watermark_ms: int) -> bool:
        """Whether operators behind this one learn of a watermark that came from before it."""
        return self._calls is None

    def _due_ms(self) -> int | None:
        """When, by the clock, `_on_due` wants to be called; None: not at all."""
        return None if self._calls is None else self._calls.due_ms(self.context.clock.wall_ms())

    def _on_due(self, now_ms: int, out: Collector) -> None:
        """The clock has reached `_due_ms`: do a part of what there is to do. `_due_ms` says whether there is more."""
        if self._calls is not None:
            self._calls.do_due(now_ms, out)

    @property
    def _wants_no_input(self) -> bool:
        """Whether the task should take no input for now. Checkpoints go on, and `on_idle` is called meanwhile."""
        return False

    @property
    def _has_applied_all(self) -> bool:
        """Whether all is done that the job's last checkpoint has made due: the task does not finish before."""
        return True

    def _permits_granted(self, message: GrantPermits) -> None:
        """The permits that it has requested of its job are there; a part of them at least."""
        if self._calls is not None:
            self._calls.granted(message)

    def _say_again(self) -> None:
        """Another JobManager leads, and goes on with this attempt: what an operator says to it once is said again."""
        if self._calls is not None:
            self._calls.say_again()

    def _lost_without_super(self, method: str, checkpoint_id: CheckpointId) -> str:
        """After `method`, of a checkpoint: what a subclass loses whose own has not called ours; empty: nothing."""
        return ""

    def on_end(self, out: Collector[Out]) -> None:
        """All inputs have ended: emit what is left. Not called again after a restore from a later snapshot."""

    def on_idle(self, out: Collector[Out]) -> float | None:
        """There is no input at the moment: emit what was held back to make larger batches.

        Returns after how many ms to be called again if nothing comes before; None: when it has run out of input again.
        """
        return None

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector[Out]) -> None:
        """The barrier has come: emit what was held back, as it belongs to this checkpoint. Flink:
        prepareSnapshotPreBarrier.
        """

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        """The barrier has come; state is snapshotted right after. Keep it short: the task stands still."""

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        """This checkpoint, and so all before it, is stored permanently. May be called for a newer one only."""

    def on_checkpoint_aborted(self, checkpoint_id: CheckpointId) -> None:
        """This checkpoint will never complete."""

    def close(self) -> MayWait:
        """The attempt ends, by finishing, failure or cancellation. Called last and always."""

    def on_receive(self, message: Any) -> Any:
        """A question put with `job.ask`; the return value is the answer. State may be read and not changed.

        A source that takes records here loses those that it has answered for when its process is killed:
        `env.from_inlet` makes one that does not.
        """
        wanted = f"define {type(self).__name__}.on_receive(self, message)"
        raise TypeError(f"operator {self.context.name!r} answers no questions: {wanted}")

    def _own_states(self) -> tuple[StateDescription, ...]:
        """States that are no declarations of its class."""
        return (CALLS,) if self._is_async else ()

    def _rules(self) -> dict[str, str]:
        """Of an operator of ours: what its keyed state came about by, beside what is declared. State that came about by
        other rules is refused at submit. Each is text that is equal for equal rules.
        """
        return {}

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        """The schema of what this operator emits, given its inputs'; None when it is not known before the job runs.

        Called at submit. Raise a ValueError that says what does not fit.
        """
        return None


_OF_CALL: dict[str, tuple[str, tuple[Any, ...]]] = {
    "key": ("key", ()),
    "timestamp": ("time_ms", ()),
    "timestamps": ("times", (None,)),
    "watermark": ("watermark", (NO_WATERMARK,)),
    "idempotency_key": ("idempotency_key", ()),
}
"""The attributes that belong to the call that runs, by what it calls them, and what they are where none does."""


def described_states(operator: Operator) -> tuple[StateDescription, ...]:
    """The description of an operator's states in a savepoint. Raises InvalidState."""
    return with_rules((*describe_states(type(operator)), *operator._own_states()), operator._rules())
