"""JobFiles: what the jobs of one JobManager have in storage: stored, kept for whoever needs it, and deleted.

A part of the JobManager. Nothing of it blocks: storage is used off the actor's thread, and the outcome comes back as a
message to the JobManager, which hands `Tidy` and `Tidied` to `on`. Failed deletions are tried again, less and less
often: nobody else would do it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, assert_never

from ...messages import CheckpointId, JobId
from ...state import CheckpointStorage, checkpoint_directory, state_handles
from ...state.checkpoints.checkpoint_metadata import encode_metadata
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.checkpoints.high_availability import KeptJob
from ...state.checkpoints.never_completed import delete_never_completed
from ...state.checkpoints.savepoints import METADATA, RemovedSavepoint, Savepoints, checkpoint_files
from ...state.checkpoints.shared_state import (
    DoomedMetadata,
    Owner,
    RestoredJob,
    SavepointAt,
    SharedStateRegistry,
    StateFile,
)
from ...state.errors import (
    EarlierFilesGone,
    LostLeadership,
    LostOwnership,
    MissingSavepoint,
    MissingState,
    NotShared,
)
from ..checkpoints.checkpoint_effects import Discard, StoreMetadata
from ..checkpoints.checkpoint_events import MetadataFailed, MetadataStored
from ..checkpoints.checkpoint_files import CheckpointFiles
from ..context import ActorContext
from .storage_answers import Deposed, ForJob, LeaseTold
from .writers import Writers

log = logging.getLogger(__name__)

TIDY_RETRY_MS = 1_000
TIDY_TRIES = 8
"""How often, and after how long at first, files that cannot be deleted are tried again."""

DISPOSED_REMEMBERED = 1_000
"""The number of disposed savepoints and deleted checkpoints kept for readers that had read them just before."""


Confirm: TypeAlias = Callable[[CompletedCheckpoint, tuple[str, ...]], None]
"""Called, on any thread, with a checkpoint that is stored, and with the paths of the savepoints that it is to be."""


@dataclass(frozen=True, slots=True)
class Tidy:
    """Files are to be deleted; `work` may be repeated; `tries` counts."""

    what: str
    work: Callable[[], None]
    tries: int = 0
    then: Callable[[], None] | None = None
    """To be called after the first try, whatever became of it."""
    done: Callable[[], None] | None = None
    """To be called when it has succeeded."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """The outcome of that."""

    tidy: Tidy
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class TidyUp:
    """Cluster -> JobManager: no TaskManager is left, so what tasks wrote after the end of their jobs can go. Answered
    when each deletion has been tried once.
    """


class JobFiles:
    """One JobManager's."""

    def __init__(self, context: ActorContext, savepoints: Savepoints) -> None:
        self._context = context
        self._savepoints = savepoints
        self._registry = SharedStateRegistry()
        self._disposed: deque[str] = deque(maxlen=DISPOSED_REMEMBERED)
        self._given_up: deque[StateFile] = deque(maxlen=DISPOSED_REMEMBERED)
        """Metadata of checkpoints that are being deleted."""
        self._writers: dict[JobId, Writers] = {}
        self._first_tries = 0
        """How many are under way."""
        self._waiting: list[Callable[[], None]] = []

    def checkpoints_of(self, job_id: JobId, storage: CheckpointStorage, kept: KeptJob | None = None) -> CheckpointFiles:
        """For a new job's CheckpointCoordinator. The job needs kept checkpoints, its users the savepoints."""
        files = CheckpointFiles(job_id, storage.location(), self._registry)
        if kept is None:
            return files
        for checkpoint in kept.checkpoints.restorable():
            files.completed(checkpoint)
        for path, savepoint in kept.savepoints.items():
            files.completed(savepoint, [path])
        return files

    def on(self, message: Tidy | Tidied) -> None:
        match message:
            case Tidy():
                self._tidy(message)
            case Tidied(tidy, error):
                self._tidied(tidy, error)
            case _:
                assert_never(message)

    # -- checkpoints and savepoints

    def store(
        self,
        job_id: JobId,
        storage: CheckpointStorage,
        effect: StoreMetadata,
        confirm: Confirm = lambda _, __: None,
    ) -> None:
        """Answered by ForJob(MetadataStored or MetadataFailed). `confirm` is called when all is stored, and may raise;
        LostOwnership is answered by ForJob(LeaseTold), LostLeadership by ForJob(Deposed).
        """
        checkpoint_id = effect.draft.checkpoint_id
        writers = self._writers.setdefault(job_id, Writers())
        path = f"{checkpoint_directory(job_id, checkpoint_id)}/{METADATA}"
        self._context.pipe_to_self(
            self._context.run_blocking(_store, self._savepoints, storage, path, effect, confirm, writers),
            lambda pointers: ForJob(job_id, MetadataStored(checkpoint_id, path, pointers)),
            lambda error: _not_stored(job_id, MetadataFailed(checkpoint_id, "", path), error),
        )

    def discard(self, job_id: JobId, storage: CheckpointStorage, effect: Discard) -> None:
        """Delete what a CheckpointCoordinator has given up; then also files that had to wait for its metadata."""
        root = storage.location()
        if effect.metadata_path:
            self._given_up.append(StateFile(root, effect.metadata_path))
        doomed = DoomedMetadata(root, effect.metadata_path)
        deleted = frozenset(StateFile(root, path) for path in _paths(effect) if path not in effect.kept)

        def work() -> None:
            for pointer in effect.savepoints:
                with suppress(MissingSavepoint):
                    self._savepoints.forget(pointer)
            delete_discarded(storage, effect)

        what = f"what job {job_id} does not need any more"
        self._tidy(Tidy(what, work, done=lambda: self._metadata_gone(doomed, what, deleted)))

    # -- who needs what

    def restored(
        self, job_id: JobId, storage: CheckpointStorage, checkpoint: CompletedCheckpoint, savepoint_path: str = ""
    ) -> None:
        """A job is about to start from this checkpoint, which was read just now, by way of a savepoint or without.

        One that no job of this JobManager has taken is its user's: a savepoint until it is disposed of, a retained
        checkpoint permanently. Raises MissingSavepoint when that has been disposed of since, and MissingState when the
        checkpoint is being deleted, as its job has newer ones.
        """
        if savepoint_path in self._disposed:
            raise MissingSavepoint(savepoint_path)
        if StateFile(storage.location(), checkpoint.metadata_path) in self._given_up:
            raise MissingState(checkpoint.metadata_path)
        files = checkpoint_files(storage.location(), checkpoint)
        if savepoint_path or not any(map(self._registry.is_needed, files)):
            self._registry.register(SavepointAt(savepoint_path or checkpoint.metadata_path), files)
        self._registry.register(RestoredJob(job_id), files)

    def superseded(self, job_id: JobId) -> None:
        """The job has a checkpoint of its own, or has ended: it needs the savepoint it was started from no more."""
        self._release(RestoredJob(job_id), f"the savepoint that job {job_id} was started from")

    def dispose(self, removed: RemovedSavepoint, then: Callable[[], None]) -> None:
        """A savepoint's pointer is gone; what nobody else needs of it goes now, and then `then` is called."""
        self._disposed.append(removed.path)
        owner = SavepointAt(removed.path)
        if not self._registry.knows(owner):  # another JobManager's
            self._registry.register(owner, removed.files)
        self._release(owner, f"savepoint {removed.path}", then)

    def tidy_up_after(self, job_id: JobId, storage: CheckpointStorage, *, leaves_checkpoints: bool) -> None:
        """Nobody restores from a job that has ended, unless from a savepoint: what tasks that were killed, or are
        slow to end, have written for checkpoints that never were goes too. A checkpoint that it leaves goes on in the
        logs of inlets, and a savepoint does not.
        """
        self._writers.pop(job_id, None)
        needed = self._registry.needed_below(storage.location())
        work = partial(storage.delete_job, job_id, needed, keep_inlets=leaves_checkpoints)
        self._tidy(Tidy(f"what is left of job {job_id}", work))

    def sweep(self, job_id: JobId, storage: CheckpointStorage, below: CheckpointId) -> None:
        """A job that was restarted has a checkpoint again: what tasks that are gone have written for checkpoints before
        that, which never completed, goes. None before `below` is under way.
        """
        needed = self._registry.needed_below(storage.location())
        work = partial(delete_never_completed, storage, job_id, below, needed)
        self._tidy(Tidy(f"what checkpoints of job {job_id} that never completed have left", work))

    def _release(self, owner: Owner, what: str, then: Callable[[], None] | None = None) -> None:
        files = self._registry.files_of(owner)
        freed = self._registry.release(owner)
        done = None
        if metadata := [file for file in freed if _is_metadata(file.path)]:  # one, as an owner needs one checkpoint
            self._given_up.extend(metadata)
            doomed = DoomedMetadata(metadata[0].root, metadata[0].path)
            self._registry.register(doomed, [file for file in files if file not in metadata])
            done = partial(self._metadata_gone, doomed, what, frozenset(freed))
        if freed or then:
            self._tidy(Tidy(what, lambda: self._delete(freed), then=then, done=done))

    def _metadata_gone(self, doomed: DoomedMetadata, what: str, deleted: Collection[StateFile]) -> None:
        """Delete what has waited for these metadata alone, and is not `deleted` with them."""
        freed = [file for file in self._registry.release(doomed) if file not in deleted]
        if freed:
            self._tidy(Tidy(what, lambda: self._delete(freed)))

    def _delete(self, files: Iterable[StateFile]) -> None:
        by_root: dict[str, list[str]] = {}
        for file in files:
            by_root.setdefault(file.root, []).append(file.path)
        for root, paths in by_root.items():
            delete_files(self._savepoints.open_storage(root), paths)

    # -- again and again

    def when_tried(self, call: Callable[[], None]) -> None:
        """Call it when every deletion has been tried once; at once if there is none."""
        self._waiting.append(call)
        self._look()

    def _tidy(self, tidy: Tidy) -> None:
        self._first_tries += not tidy.tries
        self._context.pipe_to_self(
            self._context.run_blocking(tidy.work), lambda _: Tidied(tidy, None), lambda error: Tidied(tidy, error)
        )

    def _tidied(self, tidy: Tidy, error: BaseException | None) -> None:
        if tidy.then is not None:
            tidy.then()
        if error is None:
            if tidy.done is not None:
                tidy.done()
        elif isinstance(error, LostLeadership):
            log.info("%s is another JobManager's to delete", tidy.what)
        elif tidy.tries < TIDY_TRIES:
            again = replace(tidy, tries=tidy.tries + 1, then=None)
            self._context.schedule(TIDY_RETRY_MS * 2**tidy.tries, again)
        else:
            log.warning("%s could not be tidied up, and stays as it is: %s", tidy.what, error)
        self._first_tries -= not tidy.tries
        self._look()

    def _look(self) -> None:
        if not self._first_tries:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()


def _not_stored(job_id: JobId, failed: MetadataFailed, error: BaseException) -> ForJob:
    if isinstance(error, LostOwnership):
        return ForJob(job_id, LeaseTold(error))
    if isinstance(error, LostLeadership):
        return ForJob(job_id, Deposed(error))
    never_was, is_gone = isinstance(error, NotShared) and error.never_was, isinstance(error, EarlierFilesGone)
    reason = f"{type(error).__name__}: {error}"
    return ForJob(job_id, replace(failed, reason=reason, repeatable=never_was, needs_full=is_gone))


def _store(
    savepoints: Savepoints,
    storage: CheckpointStorage,
    path: str,
    effect: StoreMetadata,
    confirm: Confirm,
    writers: Writers,
) -> dict[str, str]:
    """Write the metadata and then the pointers, all or none of these; returns their paths by token. Blocks.

    Whoever takes the job's name over looks for checkpoints then: so either it finds this one, or `confirm` raises.
    """
    writers.check(storage, effect.draft)
    storage.write_sealed(path, encode_metadata(effect.draft))
    storage.mark.renew()
    completed = replace(effect.draft, metadata_path=path)
    pointers: dict[str, str] = {}
    try:
        for request in effect.savepoints:
            pointers[request.token] = savepoints.store(completed, storage, request.directory)
        confirm(completed, tuple(pointers.values()))
    except BaseException:
        for pointer in pointers.values():
            with suppress(Exception):
                savepoints.forget(pointer)
        raise
    return pointers


def delete_discarded(storage: CheckpointStorage, discard: Discard) -> None:
    """Delete a discarded checkpoint: its metadata, and then all of its files that nobody else needs.

    The metadata first: a checkpoint without it is no checkpoint, while one without its state would be a broken one.
    """
    metadata = [discard.metadata_path] if discard.metadata_path else []
    delete_files(storage, [*metadata, *(path for path in _paths(discard) if path not in discard.kept)])


def delete_files(storage: CheckpointStorage, paths: Iterable[str]) -> None:
    """Delete these files, metadata first, permanently, and the folders that get empty.

    While metadata are there nothing else goes. Another file that cannot be deleted does not protect the others; the
    first error is raised when all have been tried.
    """
    paths = list(paths)
    metadata = [path for path in paths if _is_metadata(path)]
    for path in metadata:
        storage.delete(path)
    errors: list[OSError] = []
    for path in paths:
        try:
            if path not in metadata:
                storage.delete(path)
        except OSError as error:
            errors.append(error)
    storage.make_deletions_last(paths)
    if errors:
        raise errors[0]


def _is_metadata(path: str) -> bool:
    return path.endswith(f"/{METADATA}")


def _paths(discard: Discard) -> Iterator[str]:
    """Each file of the states, once; several states of one subtask lie in one file."""
    handles = (handle for state in discard.states for handle in state_handles(state))
    yield from dict.fromkeys(handle.path for handle in handles if handle.path is not None)
