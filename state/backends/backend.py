"""The contract of keyed state backends, and their registry. What a backend must pass: tests/contracts/keyed_state.py.

A backend belongs to one operator of one subtask and to its task's thread. It holds one range of key groups. Life:
made, restored (once, maybe), states bound, used and snapshotted, closed. Flink: AbstractKeyedStateBackend.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

from ...messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    StateHandle,
    SubtaskIndex,
    VertexId,
)
from ..errors import UnknownBackend
from ..keys.key_groups import KeyGroupRange
from ..kinds.descriptors import KeyedStateDeclaration
from ..storage import CheckpointStorage, checkpoint_directory

S = TypeVar("S", bound=KeyedStateDeclaration)

NO_KEY: Final = type("NoKey", (), {"__repr__": lambda _: "NO_KEY", "__hash__": None})()
"""`current_key` where none is set. No dict takes it, so a write need not look for it first."""

NO_NAMESPACE: Final = ()
"""The namespace of state that knows none. Flink: VoidNamespace."""


@dataclass(frozen=True, slots=True)
class SnapshotTarget:
    """Where one subtask's snapshot goes. `storage` is None where no checkpoint directory is configured."""

    storage: CheckpointStorage | None
    job_id: JobId
    checkpoint_id: CheckpointId
    vertex_id: VertexId
    subtask_index: SubtaskIndex
    attempt_id: ExecutionAttemptId

    @property
    def path(self) -> str:
        """The subtask's file, relative to the root. It names the attempt: a zombie overwrites nothing."""
        name = "-".join(quote(str(part), safe="") for part in (self.vertex_id, self.subtask_index, self.attempt_id))
        return f"{checkpoint_directory(self.job_id, self.checkpoint_id)}/{name}"


KeyedSnapshot: TypeAlias = Callable[[SnapshotTarget], KeyedStateHandle | None]
"""The asynchronous part of a snapshot: run once, on any thread. None: there is no state."""

ReadState: TypeAlias = Callable[[StateHandle], bytes]
"""The bytes behind a handle, verified: `handle_reader(storage)`, or `CheckpointStorage.read`."""


class KeyedStateBackend(Protocol):
    """Keyed state of one operator subtask."""

    current_key: Any
    """The key whose state the accessors see; set before each record. NO_KEY where there is none."""

    operator_name: str
    """Whose state it is, for error texts; set when the states are bound."""

    def state(self, declaration: S) -> S:
        """The accessor of a declared state, with the declaration's methods. The same state twice is the same accessor.

        Raises StateIncompatible when what was restored under this name does not fit.
        """

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        """The synchronous part: short. What changes afterwards does not show in what the returned callable writes."""

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


MakeBackend: TypeAlias = Callable[..., KeyedStateBackend]
"""Called with first key group, last key group (inclusive), max_parallelism, and keyword options of the kind's own."""

_kinds: dict[str, MakeBackend] = {}


def register_backend(kind: str, make: MakeBackend) -> None:
    """Let jobs choose this kind of backend by name. A later one of the same name wins."""
    _kinds[kind] = make


def make_keyed_backend(
    kind: str, key_groups: KeyGroupRange | range, max_parallelism: int, **options: Any
) -> KeyedStateBackend:
    """A new, empty backend for these key groups; raises UnknownBackend."""
    make = _kinds.get(kind)
    if make is None:
        raise UnknownBackend(f"no state backend {kind!r} is registered; there are: {sorted(_kinds)}")
    return make(key_groups[0], key_groups[-1], max_parallelism, **options)
