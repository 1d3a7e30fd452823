"""Operator: what users subclass. An operator is an actor that its task hosts: it shares the task's inbox and thread.

The task feeds it batches and barriers; a question put to it with `job.ask` reaches `on_receive` between two batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import pyarrow as pa

from ...messages import CheckpointId, ExecutionAttemptId, JobId, OperatorId, StateDescription, SubtaskIndex
from ...state.backends.heap_state import NO_KEY
from ...state.errors import HasCurrentKey, NoCurrentKey
from ...state.kinds.state_descriptions import describe_states
from ..actor import Actor
from ..context import Clock
from ..errors import UserCodeError
from ..flow.elements import Batch
from ..flow.key_selector import KeySelectionFailed
from ..unrun import refuse

if TYPE_CHECKING:
    from ...state.backends.backend import KeyedStateBackend
    from ..compiled import CompiledProcess
    from ..flow.key_selector import KeySelector

T = TypeVar("T")
Takes = Literal["records", "columns", "any"]

PIECE_ROWS = 1024
"""So many Rows are made, and what becomes of them is taken by the next operator, before there are more: the numbers and
tuples of a larger batch would not stay in the processor's cache.
"""


@dataclass(slots=True)
class OperatorContext:
    """What an operator may know of where it runs. Set as `self.context` before `open`."""

    job_id: JobId
    operator_id: OperatorId
    name: str
    vertex_name: str
    subtask_index: SubtaskIndex
    parallelism: int
    max_parallelism: int
    attempt_id: ExecutionAttemptId
    attempt_number: int
    restored: bool
    """Whether state of an earlier attempt was restored."""
    clock: Clock
    wake: Callable[[], None]
    """From any thread: this operator has something to do; its task steps again."""
    resources: dict[str, Any]
    """What this TaskManager lends to operators by name: "spark-partition" is the feed of its Spark partition."""


class _Each:
    """Batches that are still to be made."""

    __slots__ = ("batches",)

    def __init__(self, batches: Iterator[Batch]) -> None:
        self.batches = batches


class Collector(list[Any]):
    """Where an operator puts its output. Order is kept between `collect` and `emit`; use nothing else of it.

    It is the list of the records collected since the last batch: so `collect` is a list's own `append`, which costs a
    quarter of what a method of ours would.
    """

    __slots__ = ("_batches",)

    if TYPE_CHECKING:

        def collect(self, record: Any, /) -> None:
            """Add one record."""

    else:
        collect = list.append

    def __init__(self) -> None:
        super().__init__()
        self._batches: list[Any] = []

    def emit(self, batch: Batch) -> None:
        """Add a whole batch: a `pa.RecordBatch` or a list, which is the collector's from now on. An empty one is
        dropped.
        """
        self._seal()
        if len(batch):
            self._batches.append(batch)

    def emit_each(self, batches: Iterator[Batch]) -> None:
        """Add batches, none of them empty, that are made one by one as they are sent on: before the operator is called
        again. So many large ones need not all be in memory.
        """
        self._seal()
        self._batches.append(_Each(batches))

    def drain(self) -> list[Batch]:
        """Take everything out, in order."""
        return list(self.taken())

    def taken(self) -> Iterator[Batch]:
        """The same one by one; to be used up before anything else is added."""
        self._seal()
        batches, self._batches = self._batches, []
        for batch in batches:
            if type(batch) is _Each:
                yield from batch.batches
            else:
                yield batch

    def _seal(self) -> None:
        if self:
            self._batches.append(self[:])
            self.clear()


class Operator(Actor):
    """One operator of one subtask. Override what you need; see docs/architecture.md for the order of calls.

    All methods run on the task's thread, and none may block it: meanwhile the task takes no record, checkpoint or
    cancellation. One that waits for something outside gives it to a thread of its own, which calls
    `self.context.wake()` when it is there, and takes it in `on_idle` or `process_batch`. One that holds the thread for
    more than `slow_step_ms` (StreamEnvironment) is logged.
    """

    takes: ClassVar[Takes] = "records"
    """What `process_batch` gets: lists of records, `pa.RecordBatch`es, or whatever comes."""

    inputs: ClassVar[int] = 1
    """2 for an operator of a connected stream; then `process_batch_2` takes the second input's batches."""

    @property
    def _warm_up(self) -> tuple[str, ...]:
        """Functions, as "module:name", to be called where TaskManagers are forked from, so that each is born ready."""
        return ()

    context: OperatorContext  # type: ignore[assignment]

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

    def open(self) -> None:
        """Called once per attempt, on the task's thread; state is restored and readable."""

    def _opened(self) -> None:
        """Called right after `open`, whatever a subclass does there."""

    def process_batch(self, batch: Any, out: Collector) -> None:
        """Take one batch of the first input."""
        raise NotImplementedError(f"{type(self).__name__} takes no input")  # abstract

    def process_batch_2(self, batch: Any, out: Collector) -> None:
        """Take one batch of the second input."""
        raise NotImplementedError(f"{type(self).__name__} takes no second input")  # abstract

    def _taken_as(self, input_index: int) -> Takes:
        """What this input really takes: an operator that makes Rows by itself, one at a time, takes any batch."""
        return self.takes

    def _in_pieces(self, input_index: int, batch: Batch) -> Iterable[Batch]:
        """What `process_batch` is to get of a batch one after the other, where the next operator is in this task."""
        return (batch,)

    def _leave_key(self) -> None:
        """From here on there is no current key. Called after each hook that has none."""

    def on_end(self, out: Collector) -> None:
        """All inputs have ended: emit what is left. Not called again after a restore from a later snapshot."""

    def on_idle(self, out: Collector) -> float | None:
        """There is no input at the moment: emit what was held back to make larger batches.

        Returns after how many ms to be called again if nothing comes before; None: when it has run out of input again.
        """
        return None

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector) -> None:
        """The barrier has come: emit what was held back, as it belongs to this checkpoint. Flink:
        prepareSnapshotPreBarrier.
        """

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        """The barrier has come; state is snapshotted right after. Keep it short: the task stands still."""

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        """This checkpoint, and so all before it, is stored for good. May be called for a newer one only."""

    def on_checkpoint_aborted(self, checkpoint_id: CheckpointId) -> None:
        """This checkpoint will never complete."""

    def close(self) -> None:
        """The attempt ends, by finishing, failure or cancellation. Called last and always."""

    def on_receive(self, message: Any) -> Any:
        """A question put with `job.ask`; what is returned is the answer. State may be read and not changed."""
        raise TypeError(f"operator {self.context.name!r} answers no questions: {type(self).__name__} has no on_receive")

    def _own_states(self) -> tuple[StateDescription, ...]:
        """States that are no declarations of its class."""
        return ()

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        """The schema of what this operator emits, given its inputs'; None when it is not known before the job runs.

        Called at submit. Raise a ValueError that says what does not fit.
        """
        return None


def described_states(operator: Operator) -> tuple[StateDescription, ...]:
    """What a savepoint is told of an operator's states. Raises InvalidState."""
    return (*describe_states(type(operator)), *operator._own_states())


class KeyedOperator(Operator):
    """One actor per key: `process` runs with `self.key` set and keyed state scoped to that key.

    A question has the key that it was put with. All other methods run without a key, and there `self.key` and keyed
    state raise NoCurrentKey; what must look at all keys, as `on_end`, goes through `self.keys()`.
    """

    takes: ClassVar[Takes] = "records"

    compiled: ClassVar[bool] = False
    """True: `process` is compiled by Numba and runs over whole batches (docs/compiled.md)."""

    key: Any
    """That of the record, of the question, or of the loop over `keys()`; elsewhere there is no such attribute."""
    _backend: KeyedStateBackend
    _selectors: tuple[KeySelector, ...]
    _taken: int = 0
    _input_schema: pa.Schema | None = None
    """Of a compiled operator, when it is known before the job runs."""
    _compiled_process: CompiledProcess | None = None
    _loop: object = None
    """The loop over `keys()` whose key is the current one."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Without a default in the class: CPython finds an attribute quickly where the class has none of its name, and
        where each object had it as the first, even if it was deleted since.
        """
        operator = super().__new__(cls)
        operator.key = None
        del operator.key
        return operator

    def keys(self) -> Iterator[Any]:
        """Every key that holds something in a state of this subtask, once each: `for key in self.keys():`.

        In the body of the loop `self.key` and keyed state are those of this key, and state may be changed and cleared.
        After the loop there is no key again. The keys are those at its begin, in no order to rely on. To be used where
        there is no key; elsewhere, as in `process`, it raises HasCurrentKey.
        """
        backend = self._backend
        self._check_no_key()
        loop = self._loop = object()
        try:
            for key in backend.each_key():
                self.key = key
                yield key
                if self._loop is not loop:  # the iterator was kept for longer than the hook
                    self._check_no_key()
                    raise NoCurrentKey("an iterator of self.keys() from an earlier call", self.context.name)
        finally:
            if self._loop is loop:
                self._leave_key()

    def _check_no_key(self) -> None:
        if self._backend.current_key is not NO_KEY:
            raise HasCurrentKey(self._backend.current_key, self.context.name)

    def _enter_key(self, key: Any) -> None:
        self._backend.current_key = self.key = key

    def _leave_key(self) -> None:
        self._loop = None
        if hasattr(self, "_backend"):  # `close` is called even if state could not be restored
            self._backend.current_key = NO_KEY
        if hasattr(self, "key"):
            del self.key

    def process(self, record: Any, out: Collector) -> None:
        """Take one record of the first input. Never block: see Operator."""
        raise NotImplementedError(f"{type(self).__name__}.process is not defined")  # abstract

    def process_2(self, record: Any, out: Collector) -> None:
        """Take one record of the second input of a connected stream."""
        raise NotImplementedError(f"{type(self).__name__}.process_2 is not defined")  # abstract

    def process_batch(self, batch: Batch, out: Collector) -> None:
        if self._compiled_process is not None:
            self._compiled_process.process(batch, out)
        else:
            self._process_keyed(self.process, 0, batch, out)

    def process_batch_2(self, batch: Batch, out: Collector) -> None:
        self._process_keyed(self.process_2, 1, batch, out)

    @property
    def _warm_up(self) -> tuple[str, ...]:
        return ("understudy.actors.compiled:warm_up",) if self.compiled else ()

    @property
    def keyed_state(self) -> KeyedStateBackend | None:
        """The state of a compiled operator, once it has its context; None: the job's backend holds it."""
        if not self.compiled:
            return None
        if self._compiled_process is None:
            from ..compiled import CompiledProcess

            self._compiled_process = CompiledProcess(self)
        return self._compiled_process.state

    def _opened(self) -> None:
        if self._compiled_process is not None and self._input_schema is not None:
            self._compiled_process.prepare(self._input_schema)

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        if not self.compiled:
            return None
        from ..compiled import emitted_schema

        self._input_schema = inputs[0]
        return emitted_schema(self, inputs[0])

    def _taken_as(self, input_index: int) -> Takes:
        own = (KeyedOperator.process_batch, KeyedOperator.process_batch_2)[input_index]
        return "any" if getattr(type(self), own.__name__) is own else self.takes

    def _in_pieces(self, input_index: int, batch: Batch) -> Iterable[Batch]:
        if self.compiled or len(batch) <= PIECE_ROWS or not isinstance(batch, pa.RecordBatch):
            return (batch,)
        if self._taken_as(input_index) != "any":
            return (batch,)
        return (batch.slice(start, PIECE_ROWS) for start in range(0, len(batch), PIECE_ROWS))

    def _process_keyed(
        self, process: Callable[[Any, Collector], Any], input_index: int, batch: Batch, out: Collector
    ) -> None:
        try:
            keys, records = self._selectors[input_index].keyed_rows(batch)
        except KeySelectionFailed as error:
            raise UserCodeError(self.context.name, self._taken + error.position) from error
        backend, left = self._backend, iter(keys)
        try:
            for key, record in zip(left, records, strict=True):
                backend.current_key = self.key = key
                if (result := process(record, out)) is not None:
                    refuse(f"{type(self).__name__}.process{'_2' if input_index else ''}", result)
        except Exception as error:
            raise UserCodeError(self.context.name, self._taken + len(batch) - length_hint(left) - 1) from error
        finally:
            self._leave_key()
        self._taken += len(batch)
