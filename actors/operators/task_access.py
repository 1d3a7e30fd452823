"""TaskAccess: what a task lends to a built-in source beyond OperatorContext: storage, work off its thread, promises.

Users' operators get none of it: they have threads of their own, which a simulated task cannot have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pykka

from ...state import CheckpointStorage

T = TypeVar("T")


class RunAside(Protocol):
    """Runs `work`, which may block, off the task's thread; calls `done` with its result, or `failed` with what it
    raised, on the task's thread between two steps. Neither is called once the task has ended.
    """

    def __call__(
        self, work: Callable[[], T], done: Callable[[T], object], failed: Callable[[BaseException], object]
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class TaskAccess:
    """One task's."""

    storage: CheckpointStorage
    """Of the job's checkpoints."""
    open_storage: Callable[[str], CheckpointStorage]
    restored_root: str
    """The URL of the storage that the restored state came from; empty: the job's own."""
    from_savepoint: bool
    """Whether that state is a savepoint's: what the job that took it did later is no concern of this one."""
    earlier_inlets: tuple[str, ...]
    """Folders of inlets' logs, in `storage`, to be read behind those that the restored state names; oldest first."""
    run_aside: RunAside
    promise: Callable[[], pykka.Future[Any]]
