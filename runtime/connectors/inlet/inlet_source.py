"""InletSource: the source whose records are sent into the running job. `env.from_inlet` makes it.

    reading logs -> taking -> (stopped: emits what it has taken) -> ended

The records of a request are written to a log of the subtask's own, once per group of requests that wait, and answered
when they last there. They are emitted from memory after that. A checkpoint holds how far the log lasted, the last
number of each sender until there, and what was taken and not emitted: a savepoint needs no log. A restored attempt
begins with these and reads the log from there on; of numbers that it knows it takes none twice.

At a barrier behind which nothing may come it answers nobody: what lasts in the log then is in no state, and would be
lost with the job. Who sends, and waits, and sends again is not at home here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
import pykka

from ....actors.ask_errors import NotRunning
from ....actors.flow.elements import Batch
from ....actors.flow.records import RecordMismatch
from ....actors.operators.source import END, Source, SourceState
from ....messages import CheckpointId, InletAnswer, SendToInlet
from ....state import key_group, operator_index_of
from ..errors import InletLogDamaged, InletSchemaChanged
from .inlet_log import Chunk, InletLog, Mark, Shares
from .logged_schema import fitted, schema_from_bytes, schema_to_bytes
from .sender_numbers import SenderNumbers
from .sent_records import SentRecords, batch_to_emit, checked, columns_text, from_payload, to_payload, without_first

log = logging.getLogger(__name__)

Promise = pykka.Future[InletAnswer]
SENDERS_NAMED = 3
"""Of the records among which one has failed."""

Waiting = tuple[list[SentRecords], Promise]
"""A request without an answer."""


@dataclass(slots=True)
class _Group:
    """Records that are written together, and the requests to be answered then."""

    payloads: list[bytes] = field(default_factory=list)
    """Entries of the log."""
    sent: list[SentRecords] = field(default_factory=list)
    """The same."""
    waiting: list[Waiting] = field(default_factory=list)
    records: int = 0
    bytes: int = 0


class InletSource(Source):
    """`schema`: of its records, which come as columns then; None: they come as they were sent.

    `max_waiting_records`, `max_waiting_bytes`: with these taken and not emitted, nothing more is taken.
    """

    bounded = False
    _how_to_bound = ""

    def __init__(
        self,
        schema: pa.Schema | None = None,
        *,
        batch_rows: int = 1024,
        max_waiting_records: int = 100_000,
        max_waiting_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        self.schema = schema
        self.batch_rows = batch_rows
        self.max_waiting_records = max_waiting_records
        self.max_waiting_bytes = max_waiting_bytes

    def source_schema(self) -> pa.Schema | None:
        return self.schema

    # -- life

    def open(self) -> None:
        self._begin(self._earlier_logs(), {}, [], has_ended=False)

    def _begin(
        self, logs: Sequence[Mark], senders: Iterable[tuple[str, int]] | dict[str, int], ready: Any, *, has_ended: bool
    ) -> None:
        self._log = InletLog(self.context, logs, schema_to_bytes(self.schema))
        self._is_reading = self._has_read = False
        self._lasting = SenderNumbers(senders, forgets=False)
        """Of each sender the last record that was taken from the state or lasts in the log. As long as logs are read,
        all are remembered: of several subtasks' nobody knows who sent something last.
        """
        self._taken = SenderNumbers()
        """The same, with records that are being written; made when the logs are read."""
        self._ready: deque[SentRecords] = deque()
        self._records = self._bytes = 0
        """Of `_ready`."""
        self._emitted: list[SentRecords] = []
        """Those of the last batch."""
        self._writing: _Group | None = None
        self._next = _Group()
        self._unanswered: list[Waiting] = []
        """Of records that last, as long as the source is held."""
        self._is_held = self._is_stopping = self._is_failing = False
        self._has_ended = has_ended
        self._marks: dict[CheckpointId, Mark] = {}
        """Of the own log, at the last checkpoints."""
        self._make_ready(ready)

    def close(self) -> None:
        log = getattr(self, "_log", None)
        if log is None:
            return
        gone = NotRunning(self.context.name, "its task has ended; send again")
        groups = [self._next] if self._writing is None else [self._writing, self._next]
        for _, promise in [*self._unanswered, *(waiting for group in groups for waiting in group.waiting)]:
            promise.set_exception((NotRunning, gone, None))
        self._unanswered, self._writing, self._next = [], None, _Group()
        log.close()

    # -- state

    def offset(self) -> dict[str, Any]:
        return {
            "logs": [list(mark) for mark in self._log.marks()],
            "senders": self._lasting.plain(),
            "ready": to_payload(list(self._ready)),
            "schema": schema_to_bytes(self.schema),
            "ended": self._has_ended,
            "max_parallelism": self.context.max_parallelism,
        }

    def seek(self, offset: dict[str, Any]) -> None:
        self._restore([offset])

    def rescale(self, offsets: Sequence[dict[str, Any]]) -> None:
        """Each new subtask goes through what all old ones had, and takes what is of its own senders."""
        self._restore(offsets)

    def _restore(self, offsets: Sequence[dict[str, Any]]) -> None:
        assert self.context.task is not None, "an inlet needs a task around it"
        root = self.context.task.restored_root
        logs = []
        if not self.context.task.from_savepoint:
            logs = [mark._replace(root=mark.root or root) for mark in self._marks_of(offsets)]
        logs += self._earlier_logs()
        senders = {
            sender: last for offset in offsets for sender, last in offset["senders"].items() if self._is_own(sender)
        }
        ready = [
            self._fitted(each, offset["schema"])
            for offset in offsets
            for each in from_payload(offset["ready"])
            if self._is_own(each.sender)
        ]
        self._begin(logs, senders, ready, has_ended=all(offset["ended"] for offset in offsets))

    def _marks_of(self, offsets: Sequence[dict[str, Any]]) -> Iterator[Mark]:
        """Where several old subtasks read one log, each was at a place of its own, and knew its own senders alone."""
        for index, offset in enumerate(offsets):
            share = (index, len(offsets), self._max_parallelism_of(offset))
            for mark in (Mark(*plain) for plain in offset["logs"]):
                yield mark._replace(shares=(*mark.shares, share)) if len(offsets) > 1 else mark

    def _earlier_logs(self) -> list[Mark]:
        """Those of runs that died before a checkpoint of their own: no state names them."""
        task, operator_id = self.context.task, str(self.context.operator_id)
        folders = () if task is None else task.earlier_inlets
        return [Mark("", folder) for folder in folders if folder.split("/")[-2] == operator_id]

    def _is_own(self, sender: str, shares: Shares = ()) -> bool:
        """`shares`: of the log in which it stands."""
        where = self.context
        own = (where.subtask_index, where.parallelism, where.max_parallelism)
        return all(subtask_of(sender, parallelism, most) == index for index, parallelism, most in (own, *shares))

    def _max_parallelism_of(self, offset: dict[str, Any]) -> int:
        """That which says whose its senders were."""
        found: int = offset.get("max_parallelism", self.context.max_parallelism)
        return found

    def _belongs_to_others(self, offset: dict[str, Any]) -> bool:
        return self._max_parallelism_of(offset) != self.context.max_parallelism

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._marks[checkpoint_id] = self._log.own
        self._log.roll()

    def _forget_before(self, checkpoint_id: CheckpointId) -> None:
        mark = self._marks.get(checkpoint_id)
        self._marks = {each: mark for each, mark in self._marks.items() if each >= checkpoint_id}
        if mark is not None:
            self._log.remove(mark.segment)

    # -- emitting

    def poll(self) -> Batch | Literal[SourceState.END] | None:
        if not self._has_read:
            self._read_on()
        if self._ready:
            return self._emit()
        is_idle = self._has_read and self._writing is None and not self._next.sent
        if self._has_ended or (self._is_stopping and is_idle):
            self._has_ended = True
            return END
        return None

    def _emit(self) -> Batch:
        taken = [self._ready.popleft()]
        rows = taken[0].rows
        while self._ready and not taken[0].columns and not self._ready[0].columns and rows < self.batch_rows:
            taken.append(self._ready.popleft())
            rows += taken[-1].rows
        self._records -= rows
        self._bytes -= sum(len(each.data) for each in taken)
        self._emitted = taken
        return batch_to_emit(taken, self.schema)

    def _origin_of(self, index: int | None) -> str:
        """By sender and number, as whoever sent it knows it."""
        if index is None:
            return _among(self._emitted)
        for each in self._emitted:
            if index < each.rows:
                return _numbers(each._replace(first=each.first + index, rows=1))
            index -= each.rows
        return ""

    def _make_ready(self, sent: Iterable[SentRecords]) -> None:
        for each in sent:
            self._ready.append(each)
            self._records += each.rows
            self._bytes += len(each.data)

    @property
    def _has_no_room(self) -> bool:
        groups = (self._next,) if self._writing is None else (self._next, self._writing)
        records = self._records + sum(group.records for group in groups)
        size = self._bytes + sum(group.bytes for group in groups)
        return records >= self.max_waiting_records or size >= self.max_waiting_bytes

    # -- reading the logs

    def _read_on(self) -> None:
        if not self._is_reading and not self._has_no_room:
            self._is_reading = True
            self._log.read(self._read)

    def _read(self, chunk: Chunk) -> None:
        self._is_reading = False
        for each in chunk.sent:
            if not self._is_own(each.sender, chunk.mark.shares):
                continue
            if (new := self._new_of(each, self._lasting)) is not None:
                if new.first > (wanted := self._lasting.last(each.sender) + 1):
                    found = f"of sender {each.sender!r} the log holds record {each.first} next, wanted {wanted}"
                    raise InletLogDamaged(self.context.name, found)
                self._lasting.set(each.sender, new.last)
                self._make_ready([self._fitted(new, chunk.mark.schema)])
        self._has_read = self._log.has_read(chunk)
        if self._has_read:
            self._lasting, self._taken = self._lasting.copy(), self._lasting.copy()

    def _fitted(self, sent: SentRecords, schema: bytes) -> SentRecords:
        """For the schema of today. Raises InletSchemaChanged."""
        then = schema_from_bytes(schema)
        try:
            return fitted(sent, then, self.schema)
        except RecordMismatch as error:
            was, wanted = columns_text(then), columns_text(self.schema)
            raise InletSchemaChanged(self.context.name, was, wanted, str(error)) from error

    def _new_of(self, sent: SentRecords, numbers: SenderNumbers) -> SentRecords | None:
        """Those whose numbers are not there yet; None when all are."""
        known = numbers.last(sent.sender) + 1 - sent.first
        if known >= sent.rows:
            return None
        return without_first(sent, known) if known > 0 else sent

    # -- taking

    def on_receive(self, message: Any) -> Promise:
        """The promise of an InletAnswer. Raises RecordMismatch for what could not be emitted."""
        assert self.context.task is not None, "an inlet needs a task around it"
        if not isinstance(message, SendToInlet):
            raise TypeError(f"inlet {self.context.name!r} takes what is sent with job.inlet({self.context.name!r})")
        promise: Promise = self.context.task.promise()
        if not self._has_ended and (not self._has_read or self._is_held):
            promise.set(_NOT_READY)
            return promise
        records = checked(message.records, self.schema)
        if not (self._has_no_room or self._is_stopping or self._has_ended):
            self._take(records, message.records)
        if all(self._taken.last(each.sender) == self._lasting.last(each.sender) for each in records):
            promise.set(self._answer(records))
        else:
            group = self._next if self._next.sent or self._writing is None else self._writing
            group.waiting.append((records, promise))
            self._write()
        return promise

    def _take(self, records: list[SentRecords], payload: bytes) -> None:
        """What is new and leaves no number out. `payload`: the same."""
        taken = []
        for sent in records:
            new = self._new_of(sent, self._taken) if sent.rows else None
            if new is not None and new.first == self._taken.last(sent.sender) + 1:
                self._taken.set(new.sender, new.last)
                taken.append(new)
        if taken:
            self._next.sent += taken
            self._next.records += sum(each.rows for each in taken)
            self._next.bytes += len(payload)
            self._next.payloads.append(payload if taken == records else to_payload(taken))

    def _answer(self, records: Iterable[SentRecords]) -> InletAnswer:
        lasts = ((each, self._lasting.last(each.sender)) for each in records)
        last_numbers = {each.sender: last for each, last in lasts if not each.rows or last < each.last}
        return InletAnswer(last_numbers, self._has_no_room, has_ended=self._is_stopping or self._has_ended)

    def _write(self) -> None:
        if self._writing is None and self._next.sent:
            self._writing, self._next = self._next, _Group()
            self._log.append(self._writing.payloads, self._written, self._not_written)

    def _written(self, _: Mark) -> None:
        group, self._writing = self._writing, None
        assert group is not None, "nothing was being written"
        if self._is_failing:
            self._is_failing = False
            log.warning("%s takes records again: its log can be written", self._named)
        for each in group.sent:
            self._lasting.set(each.sender, each.last)
        self._make_ready(group.sent)
        self._unanswered += group.waiting
        if not self._is_held:
            self._answer_all()
        self._write()

    def _not_written(self, error: BaseException) -> None:
        """Nobody knows what lasts of it: those who wait send it again, and what is in the log twice counts once."""
        if not self._is_failing:
            self._is_failing = True
            text = "what is sent to %s cannot be written to its log: %s: %s; nothing is lost, and its senders wait"
            log.warning(text, self._named, type(error).__name__, error)
        groups = [self._next] if self._writing is None else [self._writing, self._next]
        self._writing, self._next = None, _Group()
        self._taken = self._lasting.copy()
        answer = replace(_NOT_READY, trouble=f"its log cannot be written: {type(error).__name__}: {error}")
        for _, promise in (waiting for group in groups for waiting in group.waiting):
            promise.set(answer)

    @property
    def _named(self) -> str:
        return f"inlet {self.context.name!r} (subtask {self.context.subtask_index})"

    def _answer_all(self) -> None:
        answered, self._unanswered = self._unanswered, []
        for records, promise in answered:
            promise.set(self._answer(records))

    # -- orders of the task

    def _ends_by_itself(self) -> bool:
        self._is_stopping = True
        return True

    def _is_whole(self) -> bool:
        """What is in a log, and was not read yet, is in no savepoint, which needs no log."""
        if not (self._has_read or self._has_ended):
            self._read_on()
        return self._has_read or self._has_ended

    def _hold(self, is_held: bool) -> None:
        self._is_held = is_held
        if not is_held:
            self._answer_all()


def _among(sent: Sequence[SentRecords]) -> str:
    """Of a failure of one of them. The last ones of many are not named."""
    more = f" and of {len(sent) - SENDERS_NAMED} other messages" if len(sent) > SENDERS_NAMED else ""
    return f"one of: {', '.join(map(_numbers, sent[:SENDERS_NAMED]))}{more}"


def _numbers(sent: SentRecords) -> str:
    numbers = f"number {sent.first}" if sent.rows == 1 else f"numbers {sent.first} to {sent.last}"
    return f"{numbers} of sender {sent.sender!r:.80}"


_NOT_READY = InletAnswer({}, is_ready=False)


def subtask_of(sender: str, parallelism: int, max_parallelism: int) -> int:
    """Which subtask of an inlet takes the records of this sender."""
    return operator_index_of(key_group(sender, max_parallelism), max_parallelism, parallelism)
