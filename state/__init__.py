"""What is remembered: state kinds, backends, handles, key groups, checkpoint stores. Imports messages."""

if __name__ != "understudy.state":  # pragma: no cover
    raise ImportError("import understudy.state, not state: the folder is part of the package understudy")

from .backends.backend import (
    NO_KEY,
    NO_NAMESPACE,
    KeyedSnapshot,
    KeyedStateBackend,
    ReadState,
    SnapshotTarget,
)
from .backends.binding import bind_states
from .backends.heap_backend import HeapBackend
from .backends.operator_state import OperatorStateBackend
from .checkpoints.assignment import assign_operator, assign_state, cut_handle, operator_states, redistribute_lists
from .checkpoints.channel_state import channel_handle, read_channel
from .checkpoints.snapshot_file import (
    SnapshotStore,
    SubtaskSnapshot,
    state_handles,
    state_size_bytes,
)
from .checkpoints.state_backends import StateBackend, backend_named, backend_names
from .columns.batch_codec import pack_batch, unpack_batch
from .durable_files import DurableFiles, DurableFileSystem
from .errors import (
    CallIsOver,
    CorruptState,
    ForgedPointer,
    HasCurrentKey,
    InvalidState,
    MissingSavepoint,
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
    WrongSavepointStore,
    WrongStateType,
)
from .keys.key_groups import (
    InvalidKey,
    KeyGroupRange,
    default_max_parallelism,
    java_hash,
    key_group,
    key_group_range,
    key_groups_of,
    operator_index_of,
)
from .kinds.declared_states import declared_states
from .kinds.descriptors import (
    FoldingState,
    KeyedStateDeclaration,
    ListState,
    MapState,
    OperatorListState,
    ReducingState,
    StateDeclaration,
    ValueState,
)
from .kinds.ttl import Ttl
from .record_log import LogWriter
from .storage import (
    CheckpointStorage,
    checkpoint_directory,
    handle_reader,
    inlets_directory,
    inline_handle,
    job_directory,
)

__all__ = [
    "NO_KEY",
    "NO_NAMESPACE",
    "CallIsOver",
    "CheckpointStorage",
    "CorruptState",
    "DurableFileSystem",
    "DurableFiles",
    "FoldingState",
    "ForgedPointer",
    "HasCurrentKey",
    "HeapBackend",
    "InvalidKey",
    "InvalidState",
    "KeyGroupRange",
    "KeyedSnapshot",
    "KeyedStateBackend",
    "KeyedStateDeclaration",
    "ListState",
    "LogWriter",
    "MapState",
    "MissingSavepoint",
    "MissingState",
    "NoCurrentKey",
    "OperatorListState",
    "OperatorStateBackend",
    "OutsideRoot",
    "ReadOnlyState",
    "ReadState",
    "ReducingState",
    "SnapshotStore",
    "SnapshotTarget",
    "SnapshotTooLarge",
    "StateBackend",
    "StateDeclaration",
    "StateError",
    "StateIncompatible",
    "StateNotStorable",
    "StorageError",
    "SubtaskSnapshot",
    "Ttl",
    "UnboundState",
    "UnknownBackend",
    "UnreachableRoot",
    "UnwritableRoot",
    "ValueState",
    "WrongSavepointStore",
    "WrongStateType",
    "assign_operator",
    "assign_state",
    "backend_named",
    "backend_names",
    "bind_states",
    "channel_handle",
    "checkpoint_directory",
    "cut_handle",
    "declared_states",
    "default_max_parallelism",
    "handle_reader",
    "inlets_directory",
    "inline_handle",
    "java_hash",
    "job_directory",
    "key_group",
    "key_group_range",
    "key_groups_of",
    "operator_index_of",
    "operator_states",
    "pack_batch",
    "read_channel",
    "redistribute_lists",
    "state_handles",
    "state_size_bytes",
    "unpack_batch",
]
