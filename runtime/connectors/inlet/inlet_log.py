"""InletLog: the logs that an inlet's subtask reads when it is restored, and the one that it writes.

Where it has come to in a log is a `Mark`: a segment, and a place in it; what comes later, in this segment and in those
with greater names, is to be read. A new attempt reads its subtask's log to its end and then writes segments of its own,
whose names are greater. An old attempt that still writes after that acknowledges nothing, as the JobManager drops its
answers: whether somebody reads it or not does no harm, for records are known by sender and number.

It blocks nowhere: what does is done aside, one thing at a time. It belongs to the task's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from ....actors.operators.operator_context import OperatorContext
from ....actors.operators.task_access import TaskAccess
from ....messages import JobId, OperatorId
from ....state import CorruptState, LogWriter, inlets_directory
from ..errors import InletLogDamaged
from .sent_records import SentRecords, from_payload

_EPOCH_DIGITS = 8


Shares: TypeAlias = tuple[tuple[int, int, int], ...]
"""Subtasks of inlets of earlier jobs: index, parallelism, max_parallelism."""
_Turn: TypeAlias = tuple[Callable[[], Any], Callable[[Any], object], Callable[[BaseException], object]]


class Mark(NamedTuple):
    """How far one log was read, or written. Plain data."""

    root: str
    """The URL of its storage; empty: that of the job's own checkpoints."""
    folder: str
    segment: str = ""
    length: int = 0
    schema: bytes = b""
    """Of the records of this segment, as each begins with it, see `logged_schema`."""
    shares: Shares = ()
    """Only records of senders that belonged to each of these subtasks count: others have read more of the same log, or
    less.
    """


@dataclass(frozen=True, slots=True)
class Chunk:
    """What was read of a log in one go; at its end nothing, and `mark` is where it ends."""

    mark: Mark
    sent: list[SentRecords]
    is_last: bool
    segments: list[str]
    """All that the log has."""


class InletLog:
    """Of one attempt. `left`: the logs to be read, as a checkpoint knows them; its own is among them or begins."""

    def __init__(self, context: OperatorContext, left: Sequence[Mark], schema: bytes) -> None:
        """`schema`: of the records that it writes."""
        assert context.task is not None, "an inlet needs a task around it"
        self._task: TaskAccess = context.task
        self._inlet = context.name
        self._name = str(context.attempt_id)
        self._schema = schema
        self._folder = folder_of(context.job_id, context.operator_id, context.subtask_index)
        others = [mark for mark in left if mark.folder != self._folder]
        own = [mark for mark in left if mark.folder == self._folder] or [Mark("", self._folder)]
        self.left: list[Mark] = [*others, *own]
        """Those that are not read to their end yet, the own one last."""
        self.own = own[0]
        self._restored = frozenset(mark.folder for mark in left)
        """The folders of logs that were there when a checkpoint was stored, or a run began before this one."""
        self._known: list[str] = []
        """Segments of the own log."""
        self._writer: LogWriter | None = None
        self._turns: deque[_Turn] = deque()
        self._is_busy = False

    def marks(self) -> list[Mark]:
        """For a checkpoint."""
        return self.left or [self.own]

    # -- reading

    def read(self, done: Callable[[Chunk], object]) -> None:
        """Read on in the first log that is left. `has_read` wants the chunk. Fails the attempt if it cannot be read,
        with InletLogDamaged if it is not what was written.
        """
        mark = self.left[0]
        storage = self._task.open_storage(mark.root) if mark.root else self._task.storage
        confirm = storage.confirm_used if mark.folder in self._restored else storage.mark.confirm

        def work() -> Chunk:
            log = storage.log(mark.folder)
            segments = log.segments()
            for segment in segments:
                if segment < mark.segment:
                    continue
                start = mark.length if segment == mark.segment else 0
                try:
                    payloads, end = log.read(segment, start)
                except CorruptState as error:  # a checkpoint that is older would need the same
                    raise InletLogDamaged(self._inlet, str(error)) from None
                if payloads:
                    schema, entries = (mark.schema, payloads) if start else (payloads[0], payloads[1:])
                    sent = [each for entry in entries for each in from_payload(entry)]
                    read = mark._replace(segment=segment, length=end, schema=schema)
                    return Chunk(read, sent, False, segments)
            confirm()  # else an empty folder in place of a volume would be the end of the log
            return Chunk(mark, [], True, segments)

        self._in_turn(work, done, _raised)

    def has_read(self, chunk: Chunk) -> bool:
        """Whether all logs are read, so that the own one may be written."""
        self.left[0], self._known = chunk.mark, chunk.segments
        if self.left[0].folder == self._folder:
            self.own = chunk.mark
        if chunk.is_last:
            del self.left[0]
        if not self.left:
            epoch = 1 + max((_epoch(segment) for segment in self._known), default=0)
            name = f"{epoch:0{_EPOCH_DIGITS}d}-{self._name}"
            self._writer = self._task.storage.log(self._folder).writer(name, head=[self._schema])
            self._in_turn(_nothing_to_do, self._make_spare)
        return not self.left

    # -- writing

    def append(
        self, payloads: Sequence[bytes], done: Callable[[Mark], object], failed: Callable[[BaseException], object]
    ) -> None:
        """Make these entries last; `done` gets the mark behind them."""
        writer = self._writer
        assert writer is not None, "the log has not been read yet"

        def work() -> Mark:
            writer.append(payloads)
            return Mark("", self._folder, writer.segment, writer.length, self._schema)

        def appended(mark: Mark) -> None:
            if mark.segment != self.own.segment:
                self._known.append(mark.segment)
            self.own = mark
            self._make_spare()
            done(mark)

        self._in_turn(work, appended, failed)

    def roll(self) -> None:
        """Let the next record begin a new segment, so that this one can be removed some day."""
        if self._writer is not None:
            self._in_turn(self._writer.roll)

    def remove(self, before: str) -> None:
        """Remove the segments with smaller names. What fails has time until the job's end."""
        superfluous = [segment for segment in self._known if segment < before]
        if superfluous and self._writer is not None:
            self._known = [segment for segment in self._known if segment >= before]
            log = self._task.storage.log(self._folder)
            self._task.run_aside(lambda: log.remove(superfluous), _nothing, _nothing)

    def close(self) -> None:
        """Nothing is done in turn any more. A file that is being written now closes with its last reference."""
        self._turns.clear()
        writer, self._writer = self._writer, None
        if writer is not None and not self._is_busy:
            self._task.run_aside(writer.close, _nothing, _nothing)

    def _make_spare(self, _: object = None) -> None:
        """The next segment, ahead of time, if that is worth it. Called when nothing is being done in turn."""
        writer = self._writer
        if writer is not None and writer.wants_spare:
            self._task.run_aside(
                writer.spare_work(),
                lambda spare: self._in_turn(partial(writer.keep_spare, spare)),
                lambda _: self._in_turn(partial(writer.keep_spare, None)),
            )

    # -- one thing at a time

    def _in_turn(
        self,
        work: Callable[[], Any],
        done: Callable[[Any], object] | None = None,
        failed: Callable[[BaseException], object] | None = None,
    ) -> None:
        """Aside, after all before it. A lock would not do: a simulation stands still where a thread waits for one."""
        self._turns.append((work, done or _nothing, failed or _nothing))
        self._next_turn()

    def _next_turn(self) -> None:
        if not self._is_busy and self._turns:
            work, done, failed = self._turns.popleft()
            self._is_busy = True
            self._task.run_aside(work, partial(self._done, done), partial(self._done, failed))

    def _done(self, then: Callable[[Any], object], outcome: Any) -> None:
        self._is_busy = False
        then(outcome)
        self._next_turn()


def folder_of(job_id: JobId, operator_id: OperatorId, subtask_index: int) -> str:
    return f"{inlets_directory(job_id)}/{operator_id}/{subtask_index}"


def _epoch(segment: str) -> int:
    """The generation of attempts that wrote it."""
    digits = segment[:_EPOCH_DIGITS]
    return int(digits) if digits.isdecimal() else 0


def _raised(error: BaseException) -> None:
    raise error


def _nothing(_: object) -> None:
    """Nothing waits for it."""


def _nothing_to_do() -> None:
    """It is but its turn that counts."""
