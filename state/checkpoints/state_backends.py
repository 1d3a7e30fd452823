"""StateBackend: one kind of state backend as one object: the keyed state it makes, its limits, where its snapshots go.

A user's setting and a job graph name it. `backend_named` turns the name into the object where tasks are hosted, and
nothing else judges the name. It stands above backends/ (state while it is used) and joins them with the files of
snapshots. Flink: StateBackend, StateBackendLoader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ...messages import SubtaskState
from ..backends.backend import KeepingBackend, SnapshotTarget
from ..backends.heap_backend import HeapBackend
from ..errors import UnknownBackend
from ..keys.key_groups import KeyGroupRange
from ..rocks.memory import RocksMemory
from ..rocks.rocks_backend import RocksBackend
from ..rocks.rocks_snapshot import FORMAT_NAME
from ..rocks.store import StoreOptions
from .snapshot_file import MAX_INLINE_BYTES, store_in_file, store_inline

ROCKSDB: Final = "rocksdb"
DEFAULT_MEMORY_MB: Final = 256


class StateBackend(Protocol):
    """A value: all tasks of a process share it, on any thread."""

    @property
    def name(self) -> str:
        """What users and job graphs call it."""
        ...

    def keyed_backend(
        self, key_groups: KeyGroupRange | range, max_parallelism: int, *, key_type: Any = Any
    ) -> KeepingBackend:
        """New, empty keyed state of one operator subtask, for these key groups. Does not block."""
        ...

    @property
    def reads(self) -> frozenset[str]:
        """Formats of keyed snapshots that its keyed state restores beside the common one."""
        ...

    def store(self, state: SubtaskState, target: SnapshotTarget) -> SubtaskState:
        """Take a snapshot with inline handles, and say where it lies from now on: durable when this returns. Handles
        that have files already stay as they are. Blocks.

        Raises SnapshotTooLarge, a StorageError or OSError; then it has left no file of its own under its final name.
        """
        ...


class _OnHeap:
    """What both backends share that keep state on the heap."""

    __slots__ = ()
    reads = frozenset[str]()

    def keyed_backend(
        self, key_groups: KeyGroupRange | range, max_parallelism: int, *, key_type: Any = Any
    ) -> KeepingBackend:
        return HeapBackend(key_groups[0], key_groups[-1], max_parallelism, key_type=key_type)


@dataclass(frozen=True, slots=True)
class MemoryStateBackend(_OnHeap):
    """State on the heap; snapshots travel inside the acknowledgement, up to a limit.

    For tests and small state: the checkpoints are lost with the JobManager. Flink: MemoryStateBackend.
    """

    max_snapshot_bytes: int = MAX_INLINE_BYTES
    name: str = "memory"

    def store(self, state: SubtaskState, target: SnapshotTarget) -> SubtaskState:
        return store_inline(state, target, self.max_snapshot_bytes)


@dataclass(frozen=True, slots=True)
class FilesystemStateBackend(_OnHeap):
    """State on the heap; a snapshot becomes one file of the checkpoint directory, unless it is small.

    Flink: FsStateBackend.
    """

    name: str = "filesystem"

    def store(self, state: SubtaskState, target: SnapshotTarget) -> SubtaskState:
        return store_in_file(state, target)


@dataclass(frozen=True, slots=True)
class WorkingState:
    """Where and how a process keeps state that does not stay on the heap.

    `folder`: on a local disk, there already, and this process's own; None: a temporary one. `memory_mb`: what all tasks
    of the process may take for it. `compacts`: whether threads in the background may rewrite files. `copies`: a folder
    for copies of snapshots, which others of this machine use too; None: there are none.
    """

    folder: str | None = None
    memory_mb: int = DEFAULT_MEMORY_MB
    compacts: bool = True
    copies: str | None = None


class RocksDBStateBackend:
    """State in RocksDB on the local disk; snapshots share their unchanged files. Needs rocksdict.

    One for all tasks of a process, which share its memory. Flink: EmbeddedRocksDBStateBackend.
    """

    name = ROCKSDB
    reads = frozenset({FORMAT_NAME})

    def __init__(self, working: WorkingState) -> None:
        memory = RocksMemory(working.memory_mb)
        self._options = (
            StoreOptions.temporary(memory, compacts=working.compacts)
            if working.folder is None
            else StoreOptions(working.folder, memory, working.compacts)
        )

    def keyed_backend(
        self, key_groups: KeyGroupRange | range, max_parallelism: int, *, key_type: Any = Any
    ) -> KeepingBackend:
        return RocksBackend(key_groups[0], key_groups[-1], max_parallelism, self._options, key_type=key_type)

    def store(self, state: SubtaskState, target: SnapshotTarget) -> SubtaskState:
        return store_in_file(state, target)


MEMORY, FILESYSTEM = MemoryStateBackend(), FilesystemStateBackend()

_BACKENDS: dict[str, Callable[[WorkingState], StateBackend]] = {
    "memory": lambda _: MEMORY,
    "filesystem": lambda _: FILESYSTEM,
    ROCKSDB: RocksDBStateBackend,
}


def backend_names() -> tuple[str, ...]:
    """All that `backend_named` knows."""
    return tuple(_BACKENDS)


def backend_named(name: str, working: WorkingState = WorkingState()) -> StateBackend:
    """Raises UnknownBackend, which lists those that there are."""
    make = _BACKENDS.get(name)
    if make is None:
        raise UnknownBackend(f"found the state backend {name!r}; wanted one of {', '.join(_BACKENDS)}")
    return make(working)
