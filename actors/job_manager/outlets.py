"""Outlets: what one job's outlets have committed, and the readers that want it or wait for more.

A part of the JobManager. It learns from the current attempt of each outlet's sink what is committed, and reads the
segments from the job's storage, off the JobManager's thread. So readers cost the tasks nothing, wait while a task
restarts, and get the rest when the job has ended.

    OutletOpened -> listed off the thread -> OutletListed: known -> OutletCommitted ...
    ReadOutlet:  answered with segments | refused | kept until there is more, the job ends, or ReadOverdue
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import pykka

from ...messages import (
    JobGraph,
    JobId,
    OperatorId,
    OutletAnswer,
    OutletCommitted,
    OutletOpened,
    OutletPart,
    OutletRefusal,
    OutletReport,
    ReadOutlet,
)
from ...messages.known_names import there_are
from ...state import CheckpointStorage
from ...state.errors import MissingState
from ...state.outlets.lineage import OUTLET_STATE, CursorForked, NoCursorOfThis, OutletLineage
from ...state.outlets.segments import Segment, committed_of, read_segment, segments_in
from ..ask_errors import NotRunning
from ..context import ActorContext
from .storage_answers import ForJob

log = logging.getLogger(__name__)

RETRY_MS = 500
"""After storage could not be listed."""


@dataclass(frozen=True, slots=True)
class OutletListed:
    """Storage's answer: the segments that lie in an outlet's folder, or why nobody knows."""

    opened: OutletOpened
    segments: list[Segment] | None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class ListOutlet:
    """It is time to list an outlet's folder again."""

    opened: OutletOpened


@dataclass(frozen=True, slots=True)
class SegmentsRead:
    """Storage's answer to one reader."""

    reading: Reading
    parts: tuple[OutletPart, ...]
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class ReadOverdue:
    """A reader has waited long enough."""

    reading: Reading


OutletEvent: TypeAlias = OutletListed | ListOutlet | SegmentsRead | ReadOverdue


@dataclass(slots=True, eq=False)
class Reading:
    """One ReadOutlet under way."""

    question: ReadOutlet
    promise: pykka.Future[OutletAnswer]
    cursor: str
    is_answered: bool = False

    def answer(self, answer: OutletAnswer) -> None:
        if not self.is_answered:
            self.is_answered = True
            self.promise.set(answer)


@dataclass(slots=True)
class _Book:
    """One outlet, as its newest attempt has opened it."""

    opened: OutletOpened
    lineage: OutletLineage
    first: int
    end: int
    segments: list[Segment] | None = None
    """None: not listed yet."""
    later: list[Segment] = field(default_factory=list)
    """Committed meanwhile."""

    def committed(self, message: OutletCommitted) -> None:
        """A segment that does not follow on the last one is left out: readers never jump over a gap."""
        for segment in map(Segment.named, message.segments):
            if segment is None or segment.first != self.end:
                log.warning(
                    "outlet %s: left out %s, as the records before it end at %d: readers never pass over a gap",
                    *(self.lineage.outlet, segment, self.end),
                )
                return
            (self.later if self.segments is None else self.segments).append(segment)
            self.end = segment.end
        self.first = max(self.first, message.first)
        self._forget_the_old()

    def listed(self, segments: list[Segment]) -> None:
        self.segments = [*committed_of(segments, self.lineage, self.opened.end), *self.later]
        self.later = []
        self.first = max(self.first, self.segments[0].first if self.segments else self.end)
        self._forget_the_old()

    def after(self, position: int, max_bytes: int) -> list[Segment]:
        """The next segments, at least one if there is one."""
        assert self.segments is not None, "the outlet is not listed yet"
        found: list[Segment] = []
        size = 0
        for segment in self.segments[bisect_right(self.segments, position, key=lambda each: each.end) :]:
            size += segment.size_bytes
            if found and size > max_bytes:
                break
            found.append(segment)
        return found

    def _forget_the_old(self) -> None:
        if self.segments is not None and self.segments and self.segments[0].first < self.first:
            del self.segments[: bisect_right(self.segments, self.first, key=lambda each: each.end)]


class Outlets:
    """Those of one job. `is_current` says whether a message is from the attempt that runs now; `is_over`, whether the
    job has ended.
    """

    def __init__(
        self,
        job_id: JobId,
        storage: CheckpointStorage,
        context: ActorContext,
        is_current: Callable[[OutletReport], bool],
        is_over: Callable[[], bool],
        id_of: Callable[[str], str],
    ) -> None:
        self._job_id = job_id
        self._storage = storage
        self._context = context
        self._is_current = is_current
        self._is_over = is_over
        self._id_of = id_of
        self._books: dict[str, _Book] = {}
        self._waiting: dict[str, list[Reading]] = {}

    def read(self, question: ReadOutlet) -> pykka.Future[OutletAnswer]:
        """The future of the answer. Raises whatever `id_of` does, for an outlet that the job does not have."""
        operator_id = self._id_of(question.operator)
        reading = Reading(question, self._context.promise(), question.after)
        if not self._serve(operator_id, reading):
            self._wait(operator_id, reading)
        return reading.promise

    def on(self, message: OutletReport | OutletEvent) -> None:
        match message:
            case OutletOpened() | OutletCommitted() if not self._is_current(message):
                log.info("job %s: dropped %s of an earlier attempt", self._job_id, type(message).__name__)
            case OutletOpened():
                lineage = OutletLineage(message.outlet, message.branches)
                self._books[message.operator_id] = _Book(message, lineage, message.first, message.end)
                self._list(message)
            case OutletCommitted():
                book = self._books.get(message.operator_id)
                if book is not None and book.opened.attempt_id == message.attempt_id:
                    book.committed(message)
                    self._serve_all(message.operator_id)
            case ListOutlet(opened=opened):
                self._list(opened)
            case OutletListed():
                self._listed(message)
            case SegmentsRead():
                self._read(message)
            case ReadOverdue(reading=reading):
                self._drop(reading)
                reading.answer(OutletAnswer((), reading.cursor, is_over=False))

    def job_ended(self) -> None:
        """Nothing more comes: whoever waits for more is answered."""
        for operator_id in list(self._waiting):
            self._serve_all(operator_id)

    # -- inside

    def _wait(self, operator_id: str, reading: Reading) -> None:
        self._waiting.setdefault(operator_id, []).append(reading)
        self._context.schedule(reading.question.wait_ms, self._for_us(ReadOverdue(reading)))

    def _list(self, opened: OutletOpened) -> None:
        listing = self._context.run_blocking(segments_in, self._storage, opened.folder)
        self._context.pipe_to_self(
            listing,
            lambda segments: self._for_us(OutletListed(opened, segments)),
            lambda error: self._for_us(OutletListed(opened, None, error)),
        )

    def _listed(self, listed: OutletListed) -> None:
        book = self._books[listed.opened.operator_id]
        if book.opened is not listed.opened:
            return  # a newer attempt has opened it, and is being listed
        if listed.segments is None:
            log.warning("job %s: outlet %s could not be listed: %s", self._job_id, book.lineage.outlet, listed.error)
            self._context.schedule(RETRY_MS, self._for_us(ListOutlet(listed.opened)))
            return
        book.listed(listed.segments)
        self._serve_all(listed.opened.operator_id)

    def _serve_all(self, operator_id: str) -> None:
        waiting = self._waiting.pop(operator_id, [])
        kept = [reading for reading in waiting if not self._serve(operator_id, reading)]
        if kept:
            self._waiting.setdefault(operator_id, []).extend(kept)

    def _serve(self, operator_id: str, reading: Reading) -> bool:
        """Whether it need not wait any more."""
        book = self._books.get(operator_id)
        if book is None or book.segments is None:
            if book is None and self._is_over():
                reading.answer(OutletAnswer((), reading.cursor, is_over=True))
                return True
            return False
        position = self._position_of(book, reading)
        if position is None:
            return True
        segments = book.after(position, reading.question.max_bytes)
        if segments:
            self._fetch(book, reading, segments)
            return True
        if self._is_over():
            reading.answer(OutletAnswer((), reading.cursor, is_over=True))
            return True
        return False

    def _position_of(self, book: _Book, reading: Reading) -> int | None:
        """Where it reads on; None when it has been refused, with a place from where it can."""
        lineage = book.lineage
        if not reading.cursor:
            position = book.end if reading.question.latest else book.first
            reading.cursor = lineage.cursor(position)
            return position
        try:
            position = lineage.locate(reading.cursor, book.end)
        except NoCursorOfThis as error:
            self._refuse(reading, "invalid", f"{error}", "")
        except CursorForked as error:
            common = max(error.common, book.first)
            text = f"what was read after position {error.common} counts no more: the job has gone back to there"
            self._refuse(reading, "forked", text, lineage.cursor(common))
        else:
            if position >= book.first:
                return position
            text = f"{book.first - position} records after it are not kept any more"
            self._refuse(reading, "expired", text, lineage.cursor(book.first))
        return None

    def _refuse(self, reading: Reading, kind: str, text: str, go_on_from: str) -> None:
        reading.answer(OutletAnswer((), reading.cursor, False, OutletRefusal(kind, text, go_on_from)))

    def _fetch(self, book: _Book, reading: Reading, segments: list[Segment]) -> None:
        read = partial(_parts, self._storage, book.opened.folder, book.lineage, segments)
        self._context.pipe_to_self(
            self._context.run_blocking(read),
            lambda parts: self._for_us(SegmentsRead(reading, parts)),
            lambda error: self._for_us(SegmentsRead(reading, (), error)),
        )

    def _read(self, read: SegmentsRead) -> None:
        reading, error = read.reading, read.error
        if error is None:
            reading.answer(OutletAnswer(read.parts, read.parts[-1].cursor, is_over=False))
            return
        if isinstance(error, MissingState):
            self._missing(reading)
        elif not reading.is_answered:
            reading.is_answered = True
            reading.promise.set_exception((type(error), error, error.__traceback__))

    def _missing(self, reading: Reading) -> None:
        """The next file is gone: by retention, just now, or because somebody has deleted it."""
        operator_id = self._id_of(reading.question.operator)
        book = self._books[operator_id]
        if book.segments is None:  # a newer attempt has opened it meanwhile
            self._wait(operator_id, reading)
            return
        position = self._position_of(book, reading)
        if position is None:
            return
        gone = book.after(position, 0)
        text = "the file of the records after it is gone: somebody has deleted it"
        self._refuse(reading, "expired", text, book.lineage.cursor(gone[0].end if gone else book.end))

    def _for_us(self, event: OutletEvent) -> ForJob:
        return ForJob(self._job_id, event)

    def _drop(self, reading: Reading) -> None:
        for waiting in self._waiting.values():
            if reading in waiting:
                waiting.remove(reading)


def _parts(
    storage: CheckpointStorage, folder: str, lineage: OutletLineage, segments: list[Segment]
) -> tuple[OutletPart, ...]:
    """Blocks. Raises MissingState when the first is gone; of later ones, what comes before them is an answer."""
    parts: list[OutletPart] = []
    for segment in segments:
        try:
            data = read_segment(storage, folder, segment)
        except MissingState:
            if not parts:
                raise
            break
        parts.append(OutletPart(data, segment.end - segment.first, lineage.cursor(segment.end)))
    return tuple(parts)


def outlet_id(graph: JobGraph, outlet: str) -> OperatorId:
    """Of an outlet given by name or id; raises NotRunning when no operator of this name writes one."""
    operators = [each for vertex in graph.vertices for each in vertex.operators]
    outlets = [each for each in operators if any(one.name == OUTLET_STATE for one in each.states)]
    for each in outlets:
        if outlet in (each.name, each.operator_id):
            return each.operator_id
    known = there_are(outlet, [each.name for each in outlets])
    raise NotRunning(outlet, f"job {graph.name!r} has no such outlet{known}", is_over=True)
