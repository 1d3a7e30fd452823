"""InletLog: the logs that an inlet's subtask reads when it is restored, and the one that it writes.

Where it has come to in a log is a `Mark`: a segment, and a place in it; what comes later, in this segment and in those
with greater names, is to be read. A new attempt reads its subtask's log to its end and then writes segments of its own,
whose names are greater. What an old attempt that lives on writes after that was answered to nobody, as the JobManager
drops its answers: whether somebody reads it or not does no harm, for records are known by sender and number.

It blocks nowhere: it makes the work that does, to be run aside one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....actors.operators.operator import OperatorContext
from ....actors.operators.task_access import TaskAccess
from ....messages import JobId, OperatorId
from ....state import LogWriter, inlets_directory
from .sent_records import SentRecords, from_payload

_EPOCH_DIGITS = 8


class Mark(NamedTuple):
    """How far one log was read, or written. Plain data."""

    root: str
    """The URL of its storage; empty: that of the job's own checkpoints."""
    folder: str
    segment: str = ""
    length: int = 0


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

    def __init__(self, context: OperatorContext, left: Sequence[Mark]) -> None:
        assert context.task is not None, "an inlet needs a task around it"
        self._task: TaskAccess = context.task
        self._name = str(context.attempt_id)
        self._folder = folder_of(context.job_id, context.operator_id, context.subtask_index)
        others = [mark for mark in left if mark.folder != self._folder]
        own = [mark for mark in left if mark.folder == self._folder] or [Mark("", self._folder)]
        self.left: list[Mark] = [*others, *own]
        """Those that are not read to their end yet, the own one last."""
        self.own = own[0]
        self._known: list[str] = []
        """Segments of the own log."""
        self._writer: LogWriter | None = None
        self._lock = threading.Lock()
        """One piece of work at a time uses the writer."""

    def marks(self) -> list[Mark]:
        """For a checkpoint."""
        return self.left or [self.own]

    # -- reading

    def read_work(self) -> Callable[[], Chunk]:
        """Reads on in the first log that is left."""
        mark = self.left[0]
        storage = self._task.open_storage(mark.root) if mark.root else self._task.storage

        def work() -> Chunk:
            log = storage.log(mark.folder)
            segments = log.segments()
            for segment in segments:
                if segment < mark.segment:
                    continue
                start = mark.length if segment == mark.segment else 0
                payloads, end = log.read(segment, start)
                if payloads:
                    sent = [each for payload in payloads for each in from_payload(payload)]
                    return Chunk(mark._replace(segment=segment, length=end), sent, False, segments)
            return Chunk(mark, [], True, segments)

        return work

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
            self._writer = self._task.storage.log(self._folder).writer(name)
        return not self.left

    # -- writing

    def append_work(self, payloads: Sequence[bytes]) -> Callable[[], Mark]:
        """Makes these entries last; gives the mark behind them."""
        writer = self._own_writer()

        def work() -> Mark:
            with self._lock:
                writer.append(payloads)
                return Mark("", self._folder, writer.segment, writer.length)

        return work

    def appended(self, mark: Mark) -> None:
        if mark.segment != self.own.segment:
            self._known.append(mark.segment)
        self.own = mark

    def roll_work(self) -> Callable[[], None] | None:
        """Lets the next record begin a new segment, so that this one can be removed some day; None: there is none."""
        writer = self._writer
        if writer is None or not writer.segment:
            return None

        def work() -> None:
            with self._lock:
                writer.roll()

        return work

    def spare_work(self) -> Callable[[], None] | None:
        """Makes the next segment ahead of time; None when that would save nothing now."""
        writer = self._own_writer()
        if not writer.wants_spare:
            return None

        def work() -> None:
            with self._lock:
                make = writer.spare_work()
            spare = None
            try:
                spare = make()
            finally:
                with self._lock:
                    writer.keep_spare(spare)

        return work

    def removal_work(self, before: str) -> Callable[[], None] | None:
        """Removes the segments with smaller names; None: there are none."""
        superfluous = [segment for segment in self._known if segment < before]
        if not superfluous or self._writer is None:
            return None
        self._known = [segment for segment in self._known if segment >= before]
        log = self._task.storage.log(self._folder)
        return lambda: log.remove(superfluous)

    def close_work(self) -> Callable[[], None] | None:
        writer = self._writer
        if writer is None:
            return None

        def work() -> None:
            with self._lock:
                writer.close()

        return work

    def _own_writer(self) -> LogWriter:
        assert self._writer is not None, "the log has not been read yet"
        return self._writer


def folder_of(job_id: JobId, operator_id: OperatorId, subtask_index: int) -> str:
    return f"{inlets_directory(job_id)}/{operator_id}/{subtask_index}"


def _epoch(segment: str) -> int:
    """The generation of attempts that wrote it."""
    digits = segment[:_EPOCH_DIGITS]
    return int(digits) if digits.isdecimal() else 0
