"""LedgerSink: exactly-once output into systems with any atomic act: data and a marker in one transaction.

The batches before a barrier are *staged* with the snapshot, in state. When the checkpoint is complete they are
*applied*: one atomic act of the outside system writes the data and moves the writer's marker from one sequence number
to the next. Nothing is prepared in the outside system and left open there, so no time-out of its own can lose data.

    barrier:    stage(batches) -> handle          state: handles with writer and sequence
    complete:   apply(batches, marker)            refused unless the marker stands where it must (compare and set)
    restore:    last_marker(writer), and apply what it does not cover

Whether an act that failed took effect is not known: the marker is read back before it is tried again. A zombie's act is
refused, as its successor has moved the marker by then, or finds that the zombie has.

A subtask counts under a name of its own (see Marker). It goes on with its name and number in a failover from the newest
completed checkpoint of the same job; in any other restore (savepoint, older checkpoint, another job, another
parallelism) it begins a new name, for batches of that number may have been applied by then. What was staged keeps the
name and number that it was staged with, in whichever subtask or job it is restored.

Kept for connectors: this class knows no outside system. docs/decisions/0030 has what was considered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, ClassVar

from ...messages import CheckpointId
from ...state import OperatorListState, pack_batch, unpack_batch
from ..errors import MarkerMismatch, MarkerMoved
from ..flow.elements import Batch
from ..unrun import RETURN, result_of
from .collector import Collector
from .marker import Marker, sink_name, writer_name
from .operator import Operator, Takes
from .patience import RETRY_MS, Patience


@dataclass(frozen=True, slots=True)
class _Writer:
    sink: str
    name: str


@dataclass(frozen=True, slots=True)
class _Staged:
    """`checkpoint_id`: with which it was staged; 0 when it was restored: that checkpoint is complete."""

    writer: _Writer
    sequence: int
    checkpoint_id: int
    handle: Any


class LedgerSink(Operator):
    """A sink whose `apply` writes data and marker in one atomic act. All methods run on the task's thread.

    What a subclass must define: `apply` and `last_marker`; connections are made in `open`. A sink that writes files
    before the barrier, and has only their names put into a table at once, also defines `write`, `stage` and `unstage`.
    """

    takes: ClassVar[Takes] = "any"

    retry_ms: float = RETRY_MS
    """How long `apply` is tried again before the attempt fails with OutsideUnavailable. Until then the sink takes no
    records, and its task goes on with checkpoints.
    """

    _staged_state = OperatorListState(tuple, name="ledger-staged")
    """An item per writer, which a rescale keeps whole: its sink, its name, and (sequence, handle) in order."""
    _writers_state = OperatorListState(tuple, mode="union", name="ledger-writers")
    """An item per subtask: its index, sink, name, and last sequence."""

    # -- what a subclass supplies

    def apply(self, batches: list[Any], marker: Marker) -> None:
        """In one atomic act, write all of `batches`, and move the row `marker.writer` from `marker.after` to
        `marker.sequence`; make the row if `after` is 0. If it does not stand at `after`, write nothing and raise
        MarkerMoved. Return when it is durable.

        Whatever is raised, `last_marker` is asked next, and then it is tried again: raise an error with
        `may_pass = False` where that is of no use. It must not take for ever: give the client a time limit.
        """
        raise NotImplementedError(f"{type(self).__name__}.apply is not defined")  # abstract

    def last_marker(self, writer: str) -> int | None:
        """The sequence that the row of this writer stands at; None when there is no row. It must see all that was
        applied, and nothing else: ask the primary, not a replica, and roll back what a failed `apply` has left open.
        """
        raise NotImplementedError(f"{type(self).__name__}.last_marker is not defined")  # abstract

    def write(self, batch: Batch) -> None:
        """Take a batch of records or columns. By default it is kept until the barrier."""
        self._kept.append(batch)

    def stage(self, batches: list[Batch]) -> Any:
        """The barrier has come: make all that was written since the last one durable, and return a handle of plain
        data, or None if there is nothing. `batches`: what `write` has kept, if it is not overridden.

        By default the handle is the batches themselves, as bytes, and so goes into the checkpoint.
        """
        return [pack_batch(batch) for batch in batches] or None

    def unstage(self, handle: Any) -> Sequence[Any]:
        """A handle as `apply` gets it, piece by piece. Perhaps in another process than that which staged it."""
        return [unpack_batch(packed) for packed in handle]

    # -- what a subclass may ask

    def staged(self) -> list[Any]:
        """The handles that are not known to be applied, oldest first."""
        return [each.handle for each in self._staged]

    # -- when it happens

    def _opened(self) -> None:
        """What was staged for the restored checkpoint comes first; the marker says whether it was applied."""
        context = self.context
        self._kept: list[Batch] = []
        self._patience = Patience(f"sink {context.name!r}", context.clock, self.retry_ms)
        self._complete = CheckpointId(0)
        self._restore_writer()
        self._staged = [
            _Staged(_Writer(sink, name), sequence, 0, handle)
            for sink, name, batches in self._staged_state.get()
            for sequence, handle in batches
        ]
        self._apply_complete()

    def process_batch(self, batch: Any, out: Collector) -> None:
        if self._patience.is_tried:
            self._apply_complete()
        result_of(self, "write", batch)

    def on_idle(self, out: Collector) -> float | None:
        if not self._patience.is_tried:
            return None
        self._apply_complete()
        return self._patience.due_in_ms()

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        kept, self._kept = self._kept, []
        handle = result_of(self, "stage", kept, in_place_of_yield=RETURN)
        if handle is not None:
            self._sequence += 1
            self._staged.append(_Staged(self._writer, self._sequence, checkpoint_id, handle))
        self._remember()

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        self._complete = max(self._complete, checkpoint_id)
        self._apply_complete()

    def _lost_without_super(self, method: str, checkpoint_id: CheckpointId) -> str:
        is_done = not self._kept if method == "on_checkpoint" else self._complete >= checkpoint_id
        return "" if is_done else "nothing is applied"

    @property
    def _wants_no_input(self) -> bool:
        """What comes now would only wait, too."""
        return self._patience.is_tried

    @property
    def _has_applied_all(self) -> bool:
        return not self._next()

    # -- details

    def _restore_writer(self) -> None:
        context, recorded = self.context, self._writers_state.get()
        own = next((each for each in recorded if each[0] == context.subtask_index), None)
        if context.is_failover and own is not None:
            self._writer, self._sequence = _Writer(own[1], own[2]), own[3]
            self._applied: dict[str, int] = {}
            """By name of a writer, where its marker stands, as far as that is known."""
            return
        sink = recorded[0][1] if recorded else sink_name(context.job_id, context.operator_id)
        self._writer = _Writer(sink, writer_name(sink, context.job_id, context.attempt_id))
        self._sequence, self._applied = 0, {self._writer.name: 0}

    def _remember(self) -> None:
        by_writer: dict[_Writer, list[tuple[int, Any]]] = {}
        for each in self._staged:
            by_writer.setdefault(each.writer, []).append((each.sequence, each.handle))
        self._staged_state.update([(writer.sink, writer.name, batches) for writer, batches in by_writer.items()])
        subtask = int(self.context.subtask_index)
        self._writers_state.update([(subtask, self._writer.sink, self._writer.name, self._sequence)])

    def _next(self) -> list[_Staged]:
        """What can be applied in one act: of one writer, and of complete checkpoints."""
        complete = list(takewhile(lambda each: each.checkpoint_id <= self._complete, self._staged))
        return list(takewhile(lambda each: each.writer == complete[0].writer, complete))

    def _apply_complete(self) -> None:
        """Apply all that is due, in order. An act that fails is tried again later; raises when that is of no use."""
        while self._patience.due_in_ms() == 0 and (batches := self._next()):
            try:
                self._apply_or_look(batches)
            except Exception as error:  # noqa: BLE001 - of the outside system: whatever its client raises
                self._patience.failed("apply", error)
                return
            self._patience.succeeded()
            del self._staged[: len(batches)]

    def _apply_or_look(self, batches: list[_Staged]) -> None:
        try:
            self._apply(batches)
        except MarkerMoved:  # nothing was written, and the outside system answers: where does the marker stand?
            self._apply(batches)

    def _apply(self, batches: list[_Staged]) -> None:
        """Apply those that the marker does not cover. Where it stands is read, unless this attempt has put it there."""
        writer = batches[0].writer
        after = self._applied.pop(writer.name, None)
        if after is None:
            after = self._read_marker(writer)
        batches = [each for each in batches if each.sequence > after]
        if batches and batches[0].sequence != after + 1:
            raise MarkerMismatch.behind(self.context.name, writer.name, batches[0].sequence - 1, after)
        if batches:
            marker = Marker(writer.sink, writer.name, batches[-1].sequence, after)
            data = [batch for each in batches for batch in self.unstage(each.handle)]
            result_of(self, "apply", data, marker)
            after = marker.sequence
        self._applied[writer.name] = after

    def _read_marker(self, writer: _Writer) -> int:
        """Raises MarkerMismatch where somebody else goes on under the name that this attempt counts under."""
        read = result_of(self, "last_marker", writer.name, in_place_of_yield=RETURN) or 0
        if writer == self._writer and read > self._sequence:
            raise MarkerMismatch.ahead(self.context.name, writer.name, self._sequence, read)
        return read
