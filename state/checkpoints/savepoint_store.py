"""SavepointStore: where the pointers of savepoints are kept, and what their paths look like. Flink: SavepointStore.

A savepoint is a pointer to a completed checkpoint, which stays where its job's checkpoints are. A store holds pointers
only; it never touches the checkpoint. Nobody lists savepoints: who knows the path has the savepoint.

A store may block, and may be called from any thread. Paths come from outside, so each is checked before anything else.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol
from uuid import uuid4

from ...messages import CheckpointId, JobId, MalformedMessage, decode, encode, message
from ..checkpoint_folders import job_directory
from ..errors import (
    CorruptState,
    ForgedPointer,
    MissingSavepoint,
    MissingState,
    OutsideRoot,
    UnreachableRoot,
    UnwritableRoot,
    WrongSavepointStore,
)
from ..file_locations import is_url
from ..storage import CheckpointStorage

log = logging.getLogger(__name__)

POINTER_VERSION = 1

HEAP_PATHS = "jobmanager://savepoints/"
"""What every path of a HeapSavepointStore begins with."""

CALLED = "savepoint directory (savepoints.state.backend.fs.dir)"
"""How errors call the root of a FilesystemSavepointStore."""

_OF_ANOTHER = (
    "it was kept in the memory of the JobManager that took it, and only that one finds it, until it is disposed of or "
    "the process ends; for one that lasts, give the job that takes it a checkpoint_dir on its StreamEnvironment"
)
_TO_LAST = "set checkpoint_dir on the StreamEnvironment (and savepoints.state.backend, if it is set, to filesystem)"
_PREFIX = "savepoint-"
_JOB_CHARACTERS = 12


@message
class SavepointPointer:
    """What a savepoint's path leads to: a completed checkpoint, and the storage that holds it."""

    format_version: int
    job_id: JobId
    checkpoint_id: CheckpointId
    checkpoint_root: str
    """The URL of the CheckpointStorage below which the metadata and all state lie."""
    metadata_path: str
    """Relative to that root."""
    timestamp_ms: int
    """Wall time of the checkpoint's trigger."""
    name: str = ""
    """In a file, the file's own name; empty in memory, and in files of earlier versions."""


def checkpoints_of(
    pointer: SavepointPointer, path: str, open_storage: Callable[[str], CheckpointStorage] = CheckpointStorage
) -> CheckpointStorage:
    """The storage that the pointer at this path names. Raises CorruptState for a URL that cannot be opened, and
    UnwritableRoot where its server does not answer.
    """
    root = pointer.checkpoint_root
    try:
        return open_storage(root)
    except (UnwritableRoot, ValueError) as error:
        if isinstance(error.__cause__, OSError):
            raise
        why = error.cause if isinstance(error, UnwritableRoot) else error
        raise CorruptState(path, "the URL of a checkpoint directory", f"{root!r}: {why}") from error


def is_pointer(path: str) -> bool:
    """Whether a file of this name is a pointer of a FilesystemSavepointStore."""
    return path.rpartition("/")[2].startswith(_PREFIX)


def job_named_by(path: str) -> str:
    """How the folder of its job begins, by the name of a pointer; empty for other files."""
    return path.rpartition("/")[2].removeprefix(_PREFIX).rpartition("-")[0] if is_pointer(path) else ""


class SavepointStore(Protocol):
    """Pointers by path. `store` is all or nothing; what it has stored can be loaded until it is disposed of."""

    outlives_cluster: bool
    """Whether what is stored can be loaded by another cluster's store, later."""

    @property
    def checkpoints(self) -> CheckpointStorage | None:
        """The one storage that its pointers lead to, whatever they say; None where each says it for itself."""
        ...

    def canonical(self, path: str) -> str:
        """The path as `store` wrote it. Raises OutsideRoot or WrongSavepointStore."""
        ...

    def target(self, target_directory: str | None) -> None:
        """Raise what `store` would because of this directory; for a client, before any work is done."""
        ...

    def store(self, pointer: SavepointPointer, target_directory: str | None = None) -> str:
        """Keep a pointer that lasts; returns its path, which no other savepoint has had.

        Raises OutsideRoot or WrongSavepointStore for a directory that cannot be, and OSError when it cannot be written.
        """
        ...

    def load(self, path: str) -> SavepointPointer:
        """Raises MissingSavepoint, CorruptState, OutsideRoot, WrongSavepointStore, UnreachableRoot; ForgedPointer when
        it is the pointer of another savepoint.
        """
        ...

    def dispose(self, path: str) -> None:
        """Remove the pointer at this path; raises as `load` does, and removes nothing that cannot be loaded."""
        ...

    def close(self) -> None:
        """Its JobManager stops."""
        ...


class HeapSavepointStore:
    """Pointers in the JobManager's memory: LOST WITH ITS PROCESS, even though the state stays on disk.

    Configuration: `savepoints.state.backend: jobmanager`. Flink: HeapSavepointStore. Safe from any thread, as each call
    reads or changes the dictionary once.
    """

    outlives_cluster = False
    checkpoints: CheckpointStorage | None = None

    def __init__(self, *, new_suffix: Callable[[], str] = lambda: uuid4().hex[:12]) -> None:
        self._new_suffix = new_suffix
        self._pointers: dict[str, SavepointPointer] = {}
        self._has_warned = False

    def canonical(self, path: str) -> str:
        self._check(path)
        return path

    def target(self, target_directory: str | None) -> None:
        if target_directory is not None:
            raise WrongSavepointStore(
                target_directory,
                f"savepoints are kept in the JobManager's memory, which has no directories; {_TO_LAST}",
            )

    def store(self, pointer: SavepointPointer, target_directory: str | None = None) -> str:
        self.target(target_directory)
        path = f"{HEAP_PATHS}{_name(pointer, self._new_suffix())}"
        self._pointers[path] = pointer
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "%s is kept in the JobManager's memory and is lost with its process; for one that lasts, %s",
                path,
                _TO_LAST,
            )
        return path

    def load(self, path: str) -> SavepointPointer:
        self._check(path)
        pointer = self._pointers.get(path)
        if pointer is None:
            raise MissingSavepoint(path, _OF_ANOTHER)
        return pointer

    def dispose(self, path: str) -> None:
        self._check(path)
        if self._pointers.pop(path, None) is None:
            raise MissingSavepoint(path, _OF_ANOTHER)

    def close(self) -> None:
        self._pointers.clear()

    def _check(self, path: str) -> None:
        if not path.startswith(HEAP_PATHS):
            raise WrongSavepointStore(
                path,
                f"savepoints are kept in the JobManager's memory here, under {HEAP_PATHS}; "
                "to use one in a file, set savepoints.state.backend.fs.dir",
            )


class FilesystemSavepointStore:
    """Each pointer in a sealed file of its own: `<root>[/<target_directory>]/savepoint-<job id, shortened>-<random>`.

    The root is that of `files`, or a `folder` of it. In a folder of a checkpoint directory the pointers lead to this
    directory's own checkpoints alone, so that the directory may be moved as a whole.
    Configuration: `savepoints.state.backend: filesystem`. Flink: FsSavepointStore.
    """

    outlives_cluster = True

    def __init__(
        self,
        files: CheckpointStorage,
        *,
        folder: str = "",
        new_suffix: Callable[[], str] = lambda: uuid4().hex[:12],
    ) -> None:
        self.checkpoints: CheckpointStorage | None = files if folder else None
        self._files = files
        self._folder = folder
        self._new_suffix = new_suffix

    def check(self) -> None:
        """Make the root and write a file into it; raises UnwritableRoot and UnreachableRoot."""
        try:
            self._files.check()
        except UnwritableRoot as error:
            raise UnwritableRoot(self._files.url, error.__cause__, CALLED) from error

    def canonical(self, path: str) -> str:
        return self._files.location(self._resolve(path))

    def target(self, target_directory: str | None) -> None:
        self._resolve(_PREFIX, target_directory)

    def store(self, pointer: SavepointPointer, target_directory: str | None = None) -> str:
        name = _name(pointer, self._new_suffix())
        relative = self._resolve(name, target_directory)
        try:
            self._files.write_sealed(relative, encode(replace(pointer, name=name)))
            self._files.mark.renew()
        except BaseException:
            with suppress(OSError):  # it may have been put in place before something failed
                self._files.delete(relative)
            raise
        return self._files.location(relative)

    def load(self, path: str) -> SavepointPointer:
        return self._read(self._resolve(path))

    def below(self, path: str) -> tuple[str, ...]:
        """The savepoints in a folder of the root, or in the root, whether or not they can be read; none in a folder
        that is not here. Raises StateError, OSError where it cannot be looked into.
        """
        found = self._files.list_files(self._folder if self._is_root(path) else self._resolve(path))
        return tuple(self._files.location(each) for each in found if posixpath.basename(each).startswith(_PREFIX))

    def dispose(self, path: str) -> None:
        relative = self._resolve(path)
        self._read(relative)
        self._files.delete(relative)
        with suppress(OSError):  # it is gone, whether or not the disk can promise that it stays so
            self._files.make_deletions_last([relative])

    def close(self) -> None:
        """Files stay."""

    def _read(self, relative: str) -> SavepointPointer:
        try:
            found = _decoded(self._files.read_sealed(relative), relative)
        except CorruptState as error:
            raise CorruptState(self._files.location(relative), error.expected, error.found) from error
        except MissingState as error:
            raise MissingSavepoint(self._files.location(relative)) from error
        except UnreachableRoot as error:
            raise UnreachableRoot(self._files.url, CALLED, error.found) from error
        if found.name not in ("", own := posixpath.basename(relative)):
            raise ForgedPointer(
                self._files.location(relative),
                f"holds the pointer of {found.name}, of checkpoint {found.checkpoint_id}; wanted its own, {own}: "
                "somebody has copied or renamed a file of savepoints. Name the savepoint by its own name, or bring "
                "the right file back from a backup",
            )
        return replace(found, name="")

    def _resolve(self, path: str, folder: str | None = None) -> str:
        """A path from outside, or a name of ours in a folder from outside."""
        told = path if folder is None else folder
        if told.startswith(HEAP_PATHS):
            here = f"savepoints are kept in files here, below {self._root}"
            raise WrongSavepointStore(told, f"{here}; this one is in a JobManager's memory")
        if folder is None:
            self._refuse_root(path)
        wanted = posixpath.join(folder or "", path)
        if not is_url(wanted):
            wanted = posixpath.join(self._folder, wanted)
        try:
            relative = self._files.resolve(wanted)
        except OutsideRoot as error:
            raise OutsideRoot(told, self._root, CALLED) from error
        if self._folder and not relative.startswith(f"{self._folder}/"):
            raise OutsideRoot(told, self._root, CALLED)
        return relative

    def _refuse_root(self, path: str) -> None:
        """The folder in place of what is in it: raises MissingSavepoint."""
        if self._is_root(path):
            raise MissingSavepoint(path, f"this is a folder of savepoints; name one of them, {self._root}/{_PREFIX}...")

    def _is_root(self, path: str) -> bool:
        with suppress(OutsideRoot):
            return self._files.resolve(posixpath.join(path, _PREFIX)) in (_PREFIX, f"{self._folder}/{_PREFIX}")
        return False

    @property
    def _root(self) -> str:
        return posixpath.join(self._files.url, self._folder) if self._folder else self._files.url


def _name(pointer: SavepointPointer, suffix: str) -> str:
    return f"{_PREFIX}{job_directory(pointer.job_id)[:_JOB_CHARACTERS]}-{suffix}"


def _decoded(data: bytes, path: str) -> SavepointPointer:
    try:
        found = decode(data)
    except MalformedMessage as error:
        raise CorruptState(path, "a savepoint's pointer", str(error)) from error
    if not isinstance(found, SavepointPointer):
        raise CorruptState(path, "a savepoint's pointer", type(found).__name__)
    if found.format_version != POINTER_VERSION:
        raise CorruptState(path, f"a pointer of format {POINTER_VERSION}", f"format {found.format_version}")
    return found
