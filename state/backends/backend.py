"""The contract of keyed state backends. What a backend must pass: tests/contracts/keyed_state.py.

A backend belongs to one operator of one subtask and to its task's thread. It holds one range of key groups. Life:
made, restored (once, maybe), states bound, used and snapshotted, closed. Flink: AbstractKeyedStateBackend.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable
from urllib.parse import quote

from ...messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    SharedFileId,
    StateHandle,
    SubtaskIndex,
    VertexId,
)
from ..checkpoint_folders import checkpoint_directory, shared_directory
from ..kinds.state_declaration import KeyedStateDeclaration
from ..storage import CheckpointStorage

if TYPE_CHECKING:
    from .frozen_state import KeptState
    from .timer_queue import TimerQueues

S = TypeVar("S", bound=KeyedStateDeclaration)

NO_KEY: Final = type("NoKey", (), {"__repr__": lambda _: "NO_KEY", "__hash__": None})()
"""`current_key` where none is set. No dict takes it, so a write need not look for it first."""

NO_NAMESPACE: Final = ()
"""The namespace of state that knows none. Flink: VoidNamespace."""


INLINE_BELOW_BYTES: Final = 20 * 1024
"""Smaller snapshots make no file. Flink: state.storage.fs.memory-threshold."""


class CopiesFiles(Protocol):
    """Keeps copies of a snapshot's files. It raises nothing: a copy is a shortcut, and may be missing."""

    def keep(self, path: str, chunks: Iterable[bytes]) -> None: ...

    def keep_file(self, path: str, source: str) -> None: ...


@dataclass(frozen=True, slots=True)
class SnapshotTarget:
    """Where one subtask's snapshot goes. `storage` is None where no checkpoint directory is configured."""

    storage: CheckpointStorage | None
    job_id: JobId
    checkpoint_id: CheckpointId
    vertex_id: VertexId
    subtask_index: SubtaskIndex
    attempt_id: ExecutionAttemptId
    inline_below_bytes: int = INLINE_BELOW_BYTES
    """What takes less than this need not become a file."""
    copies: CopiesFiles | None = None
    """Who wants a copy of each file on this machine."""
    when_stored: list[Callable[[], None]] | None = None
    """A backend that adds a call here may use the memory of its inline handle again when it is called: once the
    snapshot is stored, or given up. None: handles have bytes of their own.
    """

    @property
    def path(self) -> str:
        """The subtask's file, relative to the root. It names the attempt: a zombie overwrites nothing."""
        return f"{checkpoint_directory(self.job_id, self.checkpoint_id)}/{self._name}"

    def shared_path(self, file_id: SharedFileId) -> str:
        """The place of a new file that later checkpoints may hold too. It names checkpoint and attempt: what one
        snapshot writes, no other one does.
        """
        return f"{self._shared}{quote(file_id, safe='')}"

    def write(
        self,
        path: str,
        chunks: bytes | Iterable[bytes],
        *,
        first_checksum: int | None = None,
        source: str | None = None,
    ) -> StateHandle:
        """Write a file, as CheckpointStorage does. `source`: a file of this machine with the same bytes, which never
        changes.
        """
        assert self.storage is not None, "snapshots in files need a checkpoint directory"
        parts = [chunks] if isinstance(chunks, bytes) else list(chunks)
        try:
            handle = self.storage.write(path, parts, first_checksum=first_checksum)
        except BaseException:
            self.storage.take_back(path)
            raise
        if self.copies is not None and handle.path is not None:
            if source is None:
                self.copies.keep(handle.path, parts)
            else:
                self.copies.keep_file(handle.path, source)
        return handle

    def wrote(self, path: str) -> bool:
        """Whether a path is one of this snapshot's own shared files, and not one that it has from earlier ones."""
        return path.startswith(self._shared)

    @property
    def _shared(self) -> str:
        return f"{shared_directory(self.job_id)}/{self.checkpoint_id}-{self._name}-"

    @property
    def _name(self) -> str:
        return "-".join(quote(str(part), safe="") for part in (self.vertex_id, self.subtask_index, self.attempt_id))


KeyedSnapshot: TypeAlias = Callable[[SnapshotTarget], KeyedStateHandle | None]
"""The asynchronous part of a snapshot: run once, on any thread. None: there is no state.

It may write shared files (`SnapshotTarget.shared_path`), and hold those that completed checkpoints of this job hold; a
checkpoint that has not completed may still go, with its files. When it raises, it has removed what it wrote.
"""

ReadState: TypeAlias = Callable[[StateHandle], bytes]
"""The bytes behind a handle, verified: `handle_reader(storage)`, or `CheckpointStorage.read`."""


NO_TIME: Final = -(2**63)
"""A time in ms that is not known yet."""


class StateClock(Protocol):
    """What state that expires asks for the time: ms since the epoch."""

    def processing_ms(self) -> int:
        """What the clock says."""
        ...

    def event_ms(self) -> int:
        """How far event time has come; it never goes back. NO_TIME: not known yet."""
        ...

    def written_ms(self, what: str) -> int:
        """The event time of what is written now: that of the record at hand. NO_TIME: not known yet. Raises an error
        that names `what`, if a record has none.
        """
        ...


class KeyedStateBackend(Protocol):
    """Keyed state of one operator subtask."""

    current_key: Any
    """The key whose state the accessors see; set before each record. NO_KEY where there is none."""

    operator_name: str
    """Whose state it is, for error texts; set when the states are bound."""

    clock: StateClock | None
    """Set before states with a TTL are bound."""

    def state(self, declaration: S) -> S:
        """The accessor of a declared state, with the declaration's methods. The same state twice is the same accessor.

        Raises StateIncompatible when what was restored under this name does not fit.
        """

    def timers(self) -> TimerQueues:
        """The timers of its keys: the same queues each time, and part of every snapshot. Raises CorruptState."""

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        """The synchronous part: short. What changes afterwards does not show in what the returned callable writes."""

    def read_ahead(self, keys: Sequence[Any]) -> None:
        """Records with these keys are next: what they hold may be read in one go."""

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        """The next snapshot may hold files of the one that was taken for this checkpoint."""

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        """Take this backend's own key groups from snapshots, of other parallelisms too. Before any use."""

    def read_only(self) -> AbstractContextManager[None]:
        """While a question is answered: every change raises ReadOnlyState."""

    def keys(self, state_name: str, namespace: Hashable = ()) -> Collection[Any]:
        """The keys that hold something."""

    def each_key(self) -> Iterator[Any]:
        """Every key that holds something in some state and namespace now, once each, in any order. `current_key` is
        that key until the next one is taken; meanwhile its state may change.
        """

    def entry_count(self) -> int:
        """How many (state, namespace, key) hold something."""

    def close(self) -> None:
        """Let go of memory and files. Snapshots being written finish unharmed."""


@runtime_checkable
class CountedBackend(KeyedStateBackend, Protocol):
    """A backend that knows without looking through its state how much it holds, to show it."""

    def stored_entries(self) -> int:
        """As `entry_count`, with what has expired and is still there. On the thread of its task."""


@runtime_checkable
class KeyCountingBackend(KeyedStateBackend, Protocol):
    """A backend that counts keys without a list of them."""

    def key_count(self, state_name: str, namespace: Hashable = ()) -> int:
        """How many `keys` gives."""


def key_count(backend: KeyedStateBackend, state_name: str, namespace: Hashable = ()) -> int:
    """How many keys hold something."""
    if isinstance(backend, KeyCountingBackend):
        return backend.key_count(state_name, namespace)
    return len(backend.keys(state_name, namespace))


@runtime_checkable
class SampledBackend(KeyedStateBackend, Protocol):
    """A backend that gives some of its keys without looking through all of them."""

    def some_keys(self, most: int) -> list[Any]:
        """At most `most` of each state, in any order; some may have expired. On the thread of its task."""


@runtime_checkable
class IncrementalBackend(KeyedStateBackend, Protocol):
    """One whose checkpoints hold files of earlier ones if that is wanted."""

    def track_changes(self, owner: str) -> None:
        """From now on note what changes. Before any use. `owner`: names the operator within its subtask."""

    def increment(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        """As `snapshot`, but what has not changed since the last completed checkpoint may stay where it lies."""


@runtime_checkable
class SharingBackend(KeyedStateBackend, Protocol):
    """One whose every snapshot may name files of earlier ones."""

    def whole_snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        """As `snapshot`, but it names none: all is written again."""


# A backend is asked for these at each snapshot, and `isinstance` takes a Protocol's members one by one: a fifth of a
# small snapshot's time. One method tells each kind from the others.


def is_counted(backend: KeyedStateBackend | None) -> TypeGuard[CountedBackend]:
    return hasattr(backend, "stored_entries")


def is_sampled(backend: KeyedStateBackend | None) -> TypeGuard[SampledBackend]:
    return hasattr(backend, "some_keys")


def is_incremental(backend: KeyedStateBackend | None) -> TypeGuard[IncrementalBackend]:
    return hasattr(backend, "increment")


def is_sharing(backend: KeyedStateBackend | None) -> TypeGuard[SharingBackend]:
    return hasattr(backend, "whole_snapshot")


class KeepingBackend(KeyedStateBackend, Protocol):
    """One that holds the state of operators of the user's."""

    def keep(self, part: KeptState) -> None:
        """Give it what was restored under its name, and make it a part of every snapshot. Raises what `load` does."""
