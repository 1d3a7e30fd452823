"""What is remembered: state kinds, backends, handles, key groups, checkpoint stores. Imports messages."""

if __name__ != "understudy.state":  # pragma: no cover
    raise ImportError("import understudy.state, not state: the folder is part of the package understudy")

from .assignment import assign_state, cut_handle, redistribute_lists
from .backend import (
    KeyedSnapshot,
    KeyedStateBackend,
    ReadState,
    SnapshotTarget,
    make_keyed_backend,
    register_backend,
)
from .binding import bind_states
from .descriptors import (
    FoldingState,
    KeyedStateDeclaration,
    ListState,
    MapState,
    OperatorListState,
    ReducingState,
    StateDeclaration,
    ValueState,
    declared_states,
)
from .durable_files import DurableFiles, DurableFileSystem
from .errors import (
    CorruptState,
    InvalidState,
    MissingState,
    NoCurrentKey,
    OutsideRoot,
    ReadOnlyState,
    SnapshotTooLarge,
    StateError,
    StateIncompatible,
    StateNotStorable,
    StorageError,
    UnboundState,
    UnknownBackend,
    UnreachableRoot,
    UnwritableRoot,
)
from .filesystem_backend import FilesystemBackend
from .heap_states import NO_KEY, NO_NAMESPACE
from .key_groups import (
    InvalidKey,
    KeyGroupRange,
    default_max_parallelism,
    java_hash,
    key_group,
    key_group_range,
    key_groups_of,
    operator_index_of,
)
from .memory_backend import MemoryBackend
from .operator_state import OperatorStateBackend
from .record_serializer import Serializer, register_serializer
from .snapshot_file import (
    SnapshotStore,
    SubtaskSnapshot,
    discard_state,
    snapshot_store,
    state_handles,
    state_size_bytes,
    store_in_file,
    store_inline,
)
from .storage import CheckpointStorage, checkpoint_directory, handle_reader, inline_handle, job_directory

__all__ = [
    "NO_KEY",
    "NO_NAMESPACE",
    "CheckpointStorage",
    "CorruptState",
    "DurableFileSystem",
    "DurableFiles",
    "FilesystemBackend",
    "FoldingState",
    "InvalidKey",
    "InvalidState",
    "KeyGroupRange",
    "KeyedSnapshot",
    "KeyedStateBackend",
    "KeyedStateDeclaration",
    "ListState",
    "MapState",
    "MemoryBackend",
    "MissingState",
    "NoCurrentKey",
    "OperatorListState",
    "OperatorStateBackend",
    "OutsideRoot",
    "ReadOnlyState",
    "ReadState",
    "ReducingState",
    "Serializer",
    "SnapshotStore",
    "SnapshotTarget",
    "SnapshotTooLarge",
    "StateDeclaration",
    "StateError",
    "StateIncompatible",
    "StateNotStorable",
    "StorageError",
    "SubtaskSnapshot",
    "UnboundState",
    "UnknownBackend",
    "UnreachableRoot",
    "UnwritableRoot",
    "ValueState",
    "assign_state",
    "bind_states",
    "checkpoint_directory",
    "cut_handle",
    "declared_states",
    "default_max_parallelism",
    "discard_state",
    "handle_reader",
    "inline_handle",
    "java_hash",
    "job_directory",
    "key_group",
    "key_group_range",
    "key_groups_of",
    "make_keyed_backend",
    "operator_index_of",
    "redistribute_lists",
    "register_backend",
    "register_serializer",
    "snapshot_store",
    "state_handles",
    "state_size_bytes",
    "store_in_file",
    "store_inline",
]
