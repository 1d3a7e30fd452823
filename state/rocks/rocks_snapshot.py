"""RocksSnapshot: what one snapshot of a RocksDB store consists of: a main part, and table files that others may share.

The main part is plain data: which states there are, what opens the table files as one store (RocksDB's manifest), and
what an operator keeps beside its rows. The handle's offsets have it at HEADER. A table file never changes, so one that
a completed checkpoint has is not written again.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...messages import (
    CheckpointId,
    KeyedStateHandle,
    MalformedMessage,
    SharedFileId,
    SharedStateHandle,
    StateHandle,
    pack_plain,
    unpack_plain,
)
from ..backends.backend import ReadState, SnapshotTarget
from ..backends.frozen_state import FrozenState
from ..backends.group_parts import HEADER, Offsets, Part, lay_out
from ..backends.keyed_snapshot import StoredState
from ..backends.shared_files import UploadedFiles, store_shared
from ..errors import CorruptState, LocalStateFailed
from ..kinds.record_serializer import Convert, TypeNode
from ..kinds.schema_fit import Schema
from .store import StoreOptions, is_table

FORMAT_NAME: Final = "rocksdb"
"""What a handle says of the format."""

_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One state; its number is its place in the table."""

    name: str
    kind: str
    schema: Schema
    has_unknown: bool = False
    """Whether some of its rows may have NO_TIME."""


@dataclass(frozen=True, slots=True)
class MainPart:
    """The main part of a snapshot."""

    key_groups: range
    """Those that the files have rows of."""
    max_parallelism: int
    key_schema: Schema
    states: tuple[StateEntry, ...]
    files: Mapping[str, bytes]
    """What the store has beside its table files, by name."""
    kept: tuple[tuple[StateEntry, Mapping[int, Sequence[bytes]]], ...] = ()
    """What stands beside the rows, as payloads by key group."""

    def packed(self) -> bytes:
        return pack_plain(
            {
                "format": _FORMAT,
                "key_groups": [self.key_groups[0], self.key_groups[-1]],
                "max_parallelism": self.max_parallelism,
                "key": self.key_schema,
                "states": [_listed(state) for state in self.states],
                "files": dict(self.files),
                "kept": [
                    [_listed(state), {group: list(payloads) for group, payloads in held.items()}]
                    for state, held in self.kept
                ],
            }
        )

    @classmethod
    def read(cls, handle: KeyedStateHandle, read: ReadState) -> MainPart:
        """Raises CorruptState, or another StorageError."""
        data, path = read(handle.handle), handle.handle.path or "inline state"
        try:
            part = Part.of(handle.offsets[HEADER])
            content = unpack_plain(part.verified(data[part.offset : part.offset + part.length], path))
            if content["format"] != _FORMAT:
                raise CorruptState(path, f"RocksDB snapshot format {_FORMAT}", f"format {content['format']}")
            first, last = content["key_groups"]
            return cls(
                range(first, last + 1),
                content["max_parallelism"],
                content["key"],
                tuple(StateEntry(*state) for state in content["states"]),
                content["files"],
                tuple((StateEntry(*state), held) for state, held in content["kept"]),
            )
        except (MalformedMessage, LookupError, TypeError, ValueError) as error:
            raise CorruptState(path, "a snapshot of RocksDB", f"{type(error).__name__}: {error}") from error

    def kept_states(self, key_groups: range, decode_key: Convert) -> Iterable[StoredState]:
        """What is kept of these key groups."""
        for state, held in self.kept:
            own = {group: list(payloads) for group, payloads in held.items() if group in key_groups}
            if own:
                yield StoredState(state.name, state.kind, state.schema, decode_key, own)


def _listed(state: StateEntry) -> list[Any]:
    return [state.name, state.kind, state.schema, state.has_unknown]


class RocksSnapshot:
    """A checkpoint of a store in a folder, to be stored; the folder goes with this object. Called once."""

    def __init__(
        self,
        checkpoint_id: CheckpointId,
        options: StoreOptions,
        folder: str,
        names: Sequence[str],
        main: MainPart,
        key_node: TypeNode,
        views: Sequence[FrozenState],
        uploaded: UploadedFiles,
        *,
        whole: bool,
    ) -> None:
        """`whole`: it names no file of earlier snapshots."""
        self._checkpoint_id = checkpoint_id
        self._options = options
        """Held, since the folder may go with them."""
        self._folder = folder
        self._names = names
        self._main = main
        self._key_node = key_node
        self._views = views
        self._uploaded = uploaded
        self._tables = [SharedFileId(name) for name in names if is_table(name)]
        self._known = uploaded.begin(checkpoint_id, self._tables, whole=whole)
        # Also when nobody holds it any more because it was cancelled.
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __call__(self, target: SnapshotTarget) -> KeyedStateHandle | None:
        try:
            kept = (*self._main.kept, *(self._frozen(view) for view in self._views))
            if not self._tables and not kept:
                return None
            offsets, handle = self._main_part(tuple(each for each in kept if each[1]))
            shared = tuple(store_shared(self._tables, self._known, target, self._read, self._path))
            self._uploaded.written(self._checkpoint_id, shared)
            in_flight = sum(getattr(view, "in_flight", 0) for view in self._views)
            groups = self._main.key_groups
            return KeyedStateHandle(groups[0], groups[-1], offsets, handle, FORMAT_NAME, shared, in_flight)
        finally:
            self._remove()

    def _main_part(self, kept: tuple[Any, ...]) -> tuple[Offsets, StateHandle]:
        files = {name: self._read(SharedFileId(name)) for name in self._names if not is_table(name)}
        main, of = self._main, MainPart
        whole = of(main.key_groups, main.max_parallelism, main.key_schema, main.states, files, kept)
        return lay_out({HEADER: whole.packed()})

    def _frozen(self, view: FrozenState) -> tuple[StateEntry, Mapping[int, Sequence[bytes]]]:
        held: dict[int, list[bytes]] = {}
        for group, payload in view.payloads(self._main.max_parallelism, self._key_node.encode):
            held.setdefault(group, []).append(payload)
        return StateEntry(view.name, view.kind, view.schema), held

    def _path(self, name: SharedFileId) -> str:
        return os.path.join(self._folder, name)

    def _read(self, name: SharedFileId) -> bytes:
        try:
            with open(self._path(name), "rb") as file:
                return file.read()
        except OSError as error:
            raise LocalStateFailed(self._folder, str(error)) from error


def fetch(handle: KeyedStateHandle, main: MainPart, read: ReadState, folder: str) -> None:
    """Make a folder of the snapshot's files, of which a store can be opened. Every file's checksum has been compared
    by `read`. Raises LocalStateFailed, or a StorageError.
    """
    shared: dict[str, SharedStateHandle] = {each.file_id: each for each in handle.shared}
    try:
        os.makedirs(folder)
        for name, data in main.files.items():
            _write(folder, name, data)
        for name, each in shared.items():
            _write(folder, name, read(each.handle))
    except OSError as error:
        raise LocalStateFailed(folder, str(error)) from error


def _write(folder: str, name: str, data: bytes) -> None:
    if os.path.basename(name) != name:
        raise CorruptState(name, "the name of a file of RocksDB", "a path")
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
