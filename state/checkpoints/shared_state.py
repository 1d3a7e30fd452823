"""SharedStateRegistry: which files of checkpoints somebody still needs. Flink: SharedStateRegistry.

Several may need one file: the job that would restore from a checkpoint, the user whose savepoint that checkpoint is, a
job that was started from it, and, where backends are incremental, later checkpoints that hold the same file. A file is
handed out for deletion once, when the last of them has let go. Metadata that are being deleted count, too: deletions
come in any order and may be tried again, and whoever finds metadata takes what they lead to for there.

One registry per JobManager. A plain value: it deletes nothing itself, and belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ...messages import CheckpointId, JobId


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file of a checkpoint. `root`: the storage's `location()`; `path`: relative to it."""

    root: str
    path: str


@dataclass(frozen=True, slots=True)
class CheckpointOf:
    """A job, from the first acknowledgement of its checkpoint until it would not restore from it any more."""

    job_id: JobId
    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class SavepointAt:
    """A user, until the savepoint at this path is disposed of."""

    path: str


@dataclass(frozen=True, slots=True)
class RestoredJob:
    """A job that was started from another one's checkpoint, until its own first checkpoint has superseded that one."""

    job_id: JobId


@dataclass(frozen=True, slots=True)
class DoomedMetadata:
    """The metadata file of a checkpoint that everybody has let go of, until it is deleted. Fields as of StateFile."""

    root: str
    path: str


Owner: TypeAlias = CheckpointOf | SavepointAt | RestoredJob | DoomedMetadata


class SharedStateRegistry:
    """Files by owner, and owners by file."""

    def __init__(self) -> None:
        self._files: dict[Owner, dict[StateFile, None]] = {}
        self._owners: dict[StateFile, set[Owner]] = {}

    def register(self, owner: Owner, files: Iterable[StateFile]) -> None:
        """The owner needs these files, besides those it has named before."""
        owned = self._files.setdefault(owner, {})
        for file in files:
            owned[file] = None
            self._owners.setdefault(file, set()).add(owner)

    def release(self, owner: Owner) -> tuple[StateFile, ...]:
        """The owner needs nothing more; returns what nobody needs now, in the order in which it was named.

        An owner who is not known, or not any more, needs nothing.
        """
        return tuple(file for file in self._files.pop(owner, {}) if self._let_go(file, owner))

    def files_of(self, owner: Owner) -> tuple[StateFile, ...]:
        """What it has named, in that order."""
        return tuple(self._files.get(owner, ()))

    def knows(self, owner: Owner) -> bool:
        return owner in self._files

    def is_needed(self, file: StateFile) -> bool:
        return file in self._owners

    def needed_below(self, root: str) -> frozenset[str]:
        """Paths of all files of one storage that somebody needs, be it not only until metadata are gone."""
        return frozenset(
            file.path
            for file, owners in self._owners.items()
            if file.root == root and not all(isinstance(owner, DoomedMetadata) for owner in owners)
        )

    def _let_go(self, file: StateFile, owner: Owner) -> bool:
        """Whether this was the last who needed it."""
        owners = self._owners[file]
        owners.discard(owner)
        if owners:
            return False
        del self._owners[file]
        return True
