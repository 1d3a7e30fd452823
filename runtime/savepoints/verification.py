"""Verification: every byte of a savepoint read, and every state decoded; what is missing or corrupt, by file.

A file is compared with the checksum that the metadata has for it. Then each header, key group and list item is decoded,
so that what was written wrongly, under a right checksum, is found too. Of an incremental checkpoint each run is
decoded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ...messages import StateHandle
from ...state.checkpoints.snapshot_file import state_handles
from ...state.errors import StateError, StorageError
from ...state.file_locations import AnyPath
from .errors import NotASavepoint, UnreadableState
from .found import Found, follow, read_metadata
from .reading import SavepointReader


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `path`: of the file."""

    path: str
    text: str

    def __str__(self) -> str:
        return self.text if self.text.startswith(self.path) else f"{self.path}: {self.text}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was read, and what is wrong with it."""

    path: str
    files: int
    """That were read: pointer, metadata, state."""
    size_bytes: int
    """Of state that was read."""
    entries: int
    """Rows of all states that could be decoded."""
    problems: tuple[Problem, ...]

    @property
    def is_whole(self) -> bool:
        return not self.problems

    def check(self) -> None:
        """Raises StorageError for the first problem."""
        for problem in self.problems:
            raise StorageError(problem.path, problem.text)


def verify(path: AnyPath) -> Verification:
    """Raises NotASavepoint, and UnreachableRoot; what is wrong with a savepoint is a problem in the result."""
    files = 0
    try:
        leads = follow(path)
        files += leads.pointer is not None
        checkpoint = read_metadata(leads)
    except NotASavepoint:
        raise
    except StorageError as error:
        return Verification(os.fspath(path), files, 0, 0, (_problem(error, os.fspath(path)),))
    savepoint = SavepointReader(Found(leads.path, leads.storage, checkpoint))
    handles: dict[str, StateHandle] = {}
    inline = 0
    problems: list[Problem] = []
    for state in checkpoint.states():
        for handle in state_handles(state):
            if handle.path is None:
                inline += handle.size_bytes
                _try(problems, savepoint, handle)
            else:
                handles.setdefault(handle.path, handle)
    for handle in handles.values():
        _try(problems, savepoint, handle)
    entries = 0 if problems else _decoded(savepoint, problems)
    size = inline + sum(handle.size_bytes for handle in handles.values())
    return Verification(leads.path, files + 1 + len(handles), size, entries, tuple(problems))


def _try(problems: list[Problem], savepoint: SavepointReader, handle: StateHandle) -> None:
    try:
        savepoint.files.verify(handle)
    except (StorageError, OSError) as error:
        problems.append(_problem(error, savepoint.files.path_of(handle)))


def _decoded(savepoint: SavepointReader, problems: list[Problem]) -> int:
    """The number of rows of all states."""
    count = 0
    for operator in savepoint.operators():
        try:
            operator.decode_runs()
            count += sum(table.count() for table in operator.states())
        except UnreadableState as error:
            problems.append(Problem(savepoint.path, str(error)))
        except StateError as error:
            problems.append(_problem(error, savepoint.path))
    return count


def _problem(error: Exception, path: str) -> Problem:
    """`path`: of the file, where the error does not say it."""
    where = str(getattr(error, "path", path))
    return Problem(where, str(error).removeprefix(f"{where}: "))
