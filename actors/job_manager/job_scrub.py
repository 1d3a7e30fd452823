"""JobScrub: reads what one job would restore from, again and again, so that damage is found before a failure needs it.

    resting --ScrubDue--> reading --FileRead--> reading the next one ... --> resting

It also has a full checkpoint taken where one could not be stored since files that it goes on using are gone.

A part of the ManagedJob, on the JobManager's dispatcher. One file is read at a time, off that thread, and files that
several checkpoints share once a round. It changes and deletes nothing: damage in what the newest checkpoint needs has a
full checkpoint taken, which uses none of the files that there are, and later increments build on that one.

A file is damaged only while a checkpoint needs it: one that was subsumed meanwhile may be gone. Storage that does not
answer, and a missing key of encryption, say nothing about a file.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ...messages import CheckpointId, CheckpointNotTaken, CheckpointTaken, JobGraph
from ...state import CheckpointStorage, state_handles
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.errors import CorruptState, MissingState
from ..checkpoints.savepoint_request import CheckpointRequest
from ..context import ActorContext, Timer
from .storage_answers import ForJob

log = logging.getLogger("understudy.job")


@dataclass(frozen=True, slots=True)
class ScrubDue:
    """It is time for a round."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """Every byte of it, or the error that came of that."""

    path: str
    error: BaseException | None


ScrubEvent: TypeAlias = ScrubDue | FileRead


@dataclass(frozen=True, slots=True)
class _Unread:
    path: str
    read: Callable[[], object]
    needed_by: frozenset[CheckpointId]


class JobScrub:
    """`restorable`: the checkpoints that the job would restore from now, the newest first."""

    def __init__(
        self,
        context: ActorContext,
        graph: JobGraph,
        storage: CheckpointStorage,
        restorable: Callable[[], Iterator[CompletedCheckpoint]],
        take_checkpoint: Callable[[CheckpointRequest], None],
        named: Callable[[JobGraph], str] = lambda graph: f"job {graph.name!r}",
    ) -> None:
        self.damaged: set[CheckpointId] = set()
        """All that were ever found to be."""
        self._context = context
        self._job_id = graph.job_id
        self._graph, self._named = graph, named
        self._storage = storage
        self._restorable = restorable
        self._take_checkpoint = take_checkpoint
        self._interval_ms = graph.checkpoints.scrub_interval_ms
        self._timer: Timer | None = None
        self._unread: deque[_Unread] = deque()
        self._known: set[str] = set()
        """Damaged files that have been logged, and are needed still."""
        self._was_unread = self._is_unread_logged = False
        """Whether any file could not be read in this round, and whether that has been logged since all could be."""
        self._request: CheckpointRequest | None = None
        """Under way."""
        self._is_refusal_logged = self._is_gone_logged = False
        self._requests = 0

    @property
    def _job(self) -> str:
        return self._named(self._graph)

    def rest(self) -> None:
        """Until the next round is due."""
        if self._interval_ms is not None:
            self._timer = self._context.schedule(self._interval_ms, ForJob(self._job_id, ScrubDue()))

    def end(self) -> None:
        """The job has ended."""
        self._interval_ms = None
        self._unread.clear()
        if self._timer is not None:
            self._timer.cancel()

    def on(self, event: ScrubEvent) -> None:
        if self._interval_ms is None:
            return
        if isinstance(event, FileRead):
            if event.error is not None:
                self._failed(event.path, event.error)
        else:
            self._is_unread_logged, self._was_unread = self._was_unread and self._is_unread_logged, False
            self._unread.extend(self._files())
            self._known &= {each.path for each in self._unread}
        self._read_on()

    def files_gone(self, why: str) -> None:
        """A checkpoint could not be stored as files of earlier ones are gone, whether there are rounds or not."""
        if not self._is_gone_logged:
            self._is_gone_logged = True
            log.error("%s: %s; a full checkpoint is taken now, which uses none of them", self._job, why)
        self._take_full()

    def answered(self, request: CheckpointRequest, answer: CheckpointTaken | CheckpointNotTaken) -> bool:
        """Whether it is the answer to a request of its own."""
        if request != self._request:
            return False
        self._request = None
        if isinstance(answer, CheckpointTaken):
            self._is_refusal_logged = self._is_gone_logged = False
            log.warning("%s: checkpoint %d is full, and uses no damaged file", self._job, answer.checkpoint_id)
        elif not self._is_refusal_logged:
            self._is_refusal_logged = True
            log.warning(
                "%s: no full checkpoint yet in the place of the damaged one, it is tried again: %s",
                self._job,
                answer.cause,
            )
        return True

    # -- a round

    def _files(self) -> Iterator[_Unread]:
        """Each file that is needed now, once. Small states lie inside the metadata."""
        reads: dict[str, Callable[[], object]] = {}
        needed_by: dict[str, set[CheckpointId]] = {}
        for checkpoint in self._restorable():
            metadata = checkpoint.metadata_path
            reads[metadata] = partial(self._storage.read_sealed, metadata)
            needed_by.setdefault(metadata, set()).add(checkpoint.checkpoint_id)
            for handle in (handle for state in checkpoint.states() for handle in state_handles(state)):
                if handle.path is not None:
                    reads.setdefault(handle.path, partial(self._storage.verify, handle))
                    needed_by.setdefault(handle.path, set()).add(checkpoint.checkpoint_id)
        for path, read in reads.items():
            yield _Unread(path, read, frozenset(needed_by[path]))

    def _read_on(self) -> None:
        live = {each.checkpoint_id for each in self._restorable()}
        while self._unread:
            file = self._unread.popleft()
            if not live.isdisjoint(file.needed_by):
                self._read(file)
                return
        self.rest()

    def _read(self, file: _Unread) -> None:
        def outcome(error: BaseException | None) -> ForJob:
            return ForJob(self._job_id, FileRead(file.path, error))

        self._context.pipe_to_self(self._context.run_blocking(file.read), lambda _: outcome(None), outcome)

    def _failed(self, path: str, error: BaseException) -> None:
        if not isinstance(error, CorruptState | MissingState):
            self._was_unread = True
            if not self._is_unread_logged:
                self._is_unread_logged = True
                text = "%s: the scrub cannot read %s now, and so does not know whether it is whole: %s"
                log.warning(text, self._job, self._storage.location(path), error)
            return
        restorable = list(self._restorable())
        needing = [each for each in restorable if path == each.metadata_path or path in _paths(each)]
        if not needing:  # subsumed while it was read
            return
        self.damaged |= {each.checkpoint_id for each in needing}
        newest = restorable[0]
        heals = newest in needing
        if path not in self._known:
            self._known.add(path)
            log.error(
                "%s: %s damaged: %s: %s; %s",
                self._job,
                _told(needing),
                self._storage.location(path),
                str(error).removeprefix(f"{path}: "),
                "a full checkpoint is taken now, which uses none of their files"
                if heals
                else f"checkpoint {newest.checkpoint_id}, which is newer, does not use this file",
            )
        if heals:
            self._take_full()

    def _take_full(self) -> None:
        if self._request is None:
            self._requests += 1
            self._request = CheckpointRequest(f"scrub-{self._job_id}-{self._requests}", is_full=True)
            self._take_checkpoint(self._request)


def _paths(checkpoint: CompletedCheckpoint) -> set[str | None]:
    return {handle.path for state in checkpoint.states() for handle in state_handles(state)}


def _told(checkpoints: list[CompletedCheckpoint]) -> str:
    """As in "checkpoint 12 and savepoint 13 are"."""
    names = [f"{'savepoint' if each.is_savepoint else 'checkpoint'} {each.checkpoint_id}" for each in checkpoints[::-1]]
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
