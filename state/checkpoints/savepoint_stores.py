"""SavepointStores: which store keeps the savepoints of which job, and where a savepoint's path may lead.

A cluster whose configuration names a store has that one for all jobs. Otherwise each job has its own: files in the
folder `savepoints` of its checkpoint directory, or the JobManager's memory if that directory goes with the cluster.

Paths come from outside. One is looked for below the roots of the stores that are known here, and nowhere else: those of
this JobManager's jobs, and that of the job which is about to start. Safe from any thread.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from ...messages import JobId
from ..errors import (
    CorruptState,
    ForgedPointer,
    MissingSavepoint,
    MissingState,
    OutsideRoot,
    StorageError,
    UnknownSavepointRoot,
    UnreachableRoot,
)
from ..file_locations import is_url
from ..storage import CheckpointStorage
from .savepoint_store import FilesystemSavepointStore, HeapSavepointStore, SavepointPointer, SavepointStore

FOLDER = "savepoints"
"""Of a checkpoint directory: where the pointers of its jobs' savepoints are, unless the cluster says otherwise."""


@dataclass(frozen=True, slots=True)
class FoundPointer:
    """A pointer that was asked for. `path` is canonical."""

    store: SavepointStore
    path: str
    pointer: SavepointPointer


class SavepointStores:
    """One JobManager's. `configured`: the one store of all jobs, if the cluster's configuration names one.

    `temporary`: the `location()` below which everything goes with the cluster.
    """

    def __init__(
        self,
        configured: SavepointStore | None,
        temporary: str | None,
        new_suffix: Callable[[], str] = lambda: uuid4().hex[:12],
    ) -> None:
        self._configured = configured
        self._temporary = temporary
        self._new_suffix = new_suffix
        self._heap = HeapSavepointStore(new_suffix=new_suffix)
        self._below: dict[str, SavepointStore] = {}
        """Those of jobs that have run here, by the location of their checkpoint directory."""
        self._of_job: dict[JobId, SavepointStore] = {}

    # -- jobs

    def add(self, job_id: JobId, checkpoints: CheckpointStorage) -> None:
        """A job begins, with this checkpoint directory. Its store's root stays known after its end."""
        store = self._of_job[job_id] = self.of(checkpoints)
        if isinstance(store, FilesystemSavepointStore) and store is not self._configured:
            self._below[checkpoints.location()] = store

    def remove(self, job_id: JobId) -> None:
        """The job is over: nobody asks for savepoints of it any more."""
        self._of_job.pop(job_id, None)

    def of_job(self, job_id: JobId) -> SavepointStore | None:
        """None for a job that does not run here, when each has its own."""
        return self._of_job.get(job_id, self._configured)

    def of(self, checkpoints: CheckpointStorage) -> SavepointStore:
        """The store for jobs with this checkpoint directory; does not block."""
        if self._configured is not None:
            return self._configured
        root = checkpoints.location()
        if self.is_temporary(root):
            return self._heap
        return self._below.get(root) or FilesystemSavepointStore(
            checkpoints, folder=FOLDER, new_suffix=self._new_suffix
        )

    def is_temporary(self, root: str) -> bool:
        return self._temporary is not None and f"{root}/".startswith(f"{self._temporary}/")

    # -- paths

    def find(
        self, path: str, working_directory: str = "", checkpoints: CheckpointStorage | None = None
    ) -> FoundPointer:
        """The pointer at a path from outside; `checkpoints` are those of the job that is to start from it.

        A relative path is one below the client's working directory, if a savepoint is there, or else below a root.
        Raises as SavepointStore.load, and UnknownSavepointRoot; if none is found, what says most about why.
        """
        known = self._known(checkpoints)
        problems: list[tuple[str, StorageError]] = []
        for candidate in candidates(path, working_directory):
            for store in known:
                try:
                    return FoundPointer(store, store.canonical(candidate), store.load(candidate))
                except StorageError as error:
                    problems.append((candidate, error))
        raise self._most_telling(path, problems)

    def below(self, path: str, checkpoints: CheckpointStorage | None = None) -> tuple[str, ...]:
        """The savepoints in this folder, if it is one of a store; looked for as by `find`."""
        for store in self._known(checkpoints):
            with suppress(StorageError, OSError):
                if isinstance(store, FilesystemSavepointStore) and (found := store.below(path)):
                    return found
        return ()

    def close(self) -> None:
        for store in (self._configured, self._heap, *self._below.values()):
            if store is not None:
                store.close()

    def _known(self, checkpoints: CheckpointStorage | None) -> tuple[SavepointStore, ...]:
        """In the order in which they are looked in."""
        if self._configured is not None:
            return (self._configured,)
        first = () if checkpoints is None else (self.of(checkpoints),)
        return tuple(dict.fromkeys((*first, *self._below.values(), self._heap)))

    def _most_telling(self, path: str, problems: list[tuple[str, StorageError]]) -> StorageError:
        for kind in (CorruptState, ForgedPointer, UnreachableRoot):
            for _, problem in problems:
                if isinstance(problem, kind):
                    return problem
        outside: dict[str, list[str]] = {}
        for candidate, problem in problems:
            if isinstance(problem, OutsideRoot):
                outside.setdefault(candidate, []).append(problem.root)
        missing = [each for _, each in problems if isinstance(each, MissingState)]
        below_one = {each.path for each in missing}
        passed = [
            f"{place} is not below {' or '.join(roots)}"
            for place, roots in outside.items()
            if posixpath.isabs(place) and place not in below_one
        ]
        for problem in missing:
            if not passed or not isinstance(problem, MissingSavepoint) or problem.why:
                return problem
        if missing:
            places = ", ".join(dict.fromkeys(each.path for each in missing))
            return MissingSavepoint(path, "; ".join([f"none at {places}", *passed]))
        if self._configured is not None:
            return problems[-1][1]  # the last candidate is the path as it was written
        return UnknownSavepointRoot(path, tuple(dict.fromkeys(root for roots in outside.values() for root in roots)))


def candidates(path: str, working_directory: str) -> tuple[str, ...]:
    """What a path may mean, what it means first coming first: a relative one may be below the client's folder."""
    is_relative = not (posixpath.isabs(path) or is_url(path))
    return (posixpath.join(working_directory, path), path) if working_directory and is_relative else (path,)
