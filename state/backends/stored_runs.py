"""Runs of an incremental snapshot as bytes: a file for each run, and a manifest that lists them.

    run      := sections index        the sections are a snapshot in the backend's own format
    index    := plain data: [format of the sections, {key group: (offset, length)}]
    manifest := plain data, at the pseudo key group HEADER: [1, [[file id, length of the index], ...]], the oldest first

A run is a shared file of its handle, or lies in the handle itself while it is small. It is written once and never
changed; any number of checkpoints list it. A subtask that restores some of the key groups reads their sections of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from ...messages import (
    KeyedStateHandle,
    MalformedMessage,
    SharedFileId,
    SharedStateHandle,
    StateHandle,
    pack_plain,
    unpack_plain,
)
from ..errors import CorruptState
from ..handle_bytes import inline_handle
from .backend import ReadState, SnapshotTarget
from .group_parts import HEADER

_RUNS_OF: Final = "runs of "
"""What a handle says of the format, before the format of the sections."""

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Where a run lies."""

    shared: SharedStateHandle
    index_bytes: int
    format_name: str
    """Of its sections."""


class RunBytes(NamedTuple):
    """A run that has been read: a handle as the backend's own snapshots have, and the bytes that it points into."""

    handle: KeyedStateHandle
    data: bytes


def store_run(file_id: SharedFileId, sections: KeyedStateHandle, target: SnapshotTarget) -> StoredRun:
    """Write a run, whose sections come inline. Blocks."""
    data = sections.handle.data
    assert data is not None, "sections are written inline"
    index = pack_plain([sections.backend, {group: list(where) for group, where in sections.offsets.items()}])
    if target.storage is None or len(data) + len(index) < target.inline_below_bytes:
        whole = inline_handle(b"".join((data, index)))
        return StoredRun(SharedStateHandle(file_id, whole), len(index), sections.backend)
    path = target.shared_path(file_id)
    stored = target.write(path, (data, index), first_checksum=sections.handle.checksum)
    return StoredRun(SharedStateHandle(file_id, stored), len(index), sections.backend)


def format_of(handle: KeyedStateHandle) -> str:
    """In which format its keyed state is, be it whole or in runs."""
    return handle.backend.removeprefix(_RUNS_OF)


def manifest_of(key_groups: range, runs: Sequence[StoredRun]) -> KeyedStateHandle:
    """The handle of a snapshot that is made of these runs, one at least, the oldest first."""
    listed = inline_handle(pack_plain([_FORMAT, [[run.shared.file_id, run.index_bytes] for run in runs]]))
    shared = tuple(run.shared for run in runs)
    offsets: dict[int, tuple[int, ...]] = {HEADER: (0, listed.size_bytes)}
    format_name = f"{_RUNS_OF}{runs[-1].format_name}"
    return KeyedStateHandle(key_groups[0], key_groups[-1], offsets, listed, format_name, shared)


def runs_of(handle: KeyedStateHandle, read: ReadState) -> list[RunBytes]:
    """What makes up this handle, the oldest first: its runs, or itself if it has none. Raises a StorageError."""
    if not is_of_runs(handle):
        return [RunBytes(handle, read(handle.handle))]
    found = []
    for file, index_bytes in run_files(handle, read):
        data = read(file)
        found.append(RunBytes(run_in(file, data[len(data) - index_bytes :], handle), data))
    return found


def is_of_runs(handle: KeyedStateHandle) -> bool:
    """Whether it is a list of runs, and not whole."""
    return handle.backend.startswith(_RUNS_OF)


def run_files(handle: KeyedStateHandle, read: ReadState) -> list[tuple[StateHandle, int]]:
    """The runs that it lists, the oldest first: the file of each, and how many bytes at its end are the index. Raises a
    StorageError.
    """
    try:
        listed = _listed(read(handle.handle), handle)
        files = {each.file_id: each.handle for each in handle.shared}
        return [(files[SharedFileId(file_id)], index_bytes) for file_id, index_bytes in listed]
    except (MalformedMessage, LookupError, TypeError, ValueError) as error:
        path = handle.handle.path or "inline state"
        raise CorruptState(path, "a list of runs", f"{type(error).__name__}: {error}") from error


def run_in(file: StateHandle, index: bytes, handle: KeyedStateHandle) -> KeyedStateHandle:
    """The run in a file of this handle, as a handle of its own. Raises CorruptState."""
    owned = range(handle.first_key_group, handle.last_key_group + 1)
    try:
        format_name, offsets = unpack_plain(index)
        own = {group: tuple(at) for group, at in offsets.items() if group < 0 or group in owned}
    except (MalformedMessage, AttributeError, TypeError, ValueError) as error:
        where = file.path or "inline state"
        raise CorruptState(where, "a run of keyed state", f"{type(error).__name__}: {error}") from error
    return replace(handle, offsets=own, handle=file, backend=format_name, shared=())


def _listed(data: bytes, handle: KeyedStateHandle) -> list[Any]:
    at, length = handle.offsets[HEADER]
    match unpack_plain(data[at : at + length]):
        case [1, list(listed)]:
            return listed
        case [int(other), *_]:
            raise ValueError(f"format {other}; wanted {_FORMAT}")
        case other:
            raise ValueError(f"found {other!r:.60}")
