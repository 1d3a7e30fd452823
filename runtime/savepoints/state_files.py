"""StateFiles: parts of the files of one checkpoint, verified, without a whole file in memory.

A part with a checksum of its own is read alone. Of a file whose parts have none (snapshots of earlier releases) every
byte is read once, in pieces, before the first part of it is believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

from ...messages import KeyedStateHandle, StateHandle
from ...state.backends.group_parts import Part
from ...state.errors import CorruptState, MissingState
from ...state.storage import CheckpointStorage


class Closing(Protocol):
    """What holds descriptors and a temporary folder."""

    def close(self) -> None: ...


class StateFiles:
    """Of one opened savepoint. Blocks; from any thread."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self.storage = storage
        self.read_bytes = 0
        """That were read of files so far, but for verifying whole ones."""
        self._verified: set[str] = set()
        self._on_disk: WeakSet[Closing] = WeakSet()

    def fetched(self, what: Closing) -> None:
        """It has put files on this machine's disk, and holds them until `close`."""
        self._on_disk.add(what)

    def close(self) -> None:
        """Give back what is held on this machine. A later read fetches it again."""
        while self._on_disk:
            self._on_disk.pop().close()

    def path_of(self, handle: StateHandle) -> str:
        """For error texts."""
        return self.storage.location(handle.path) if handle.path is not None else "state inside the metadata"

    def part(self, handle: StateHandle, part: Part) -> bytes:
        """Raises MissingState, CorruptState, OutsideRoot, UnreachableRoot."""
        with self._named(handle):
            if part.checksum is None:
                self._verify_once(handle)
            data = self.storage.read_part(handle, part.offset, part.length)
        self.read_bytes += len(data) if handle.data is None else 0
        part.verified(data, self.path_of(handle))
        return data

    def read(self, handle: StateHandle) -> bytes:
        """All of it. Raises as `part`."""
        with self._named(handle):
            return self.storage.read(handle)

    def group(self, handle: KeyedStateHandle, group: int) -> bytes:
        """The part of a key group, or the header. Raises as `part`."""
        try:
            part = Part.of(handle.offsets[group])
        except (LookupError, TypeError, ValueError) as error:
            what = f"the place of key group {group}"
            raise CorruptState(self.path_of(handle.handle), what, f"{type(error).__name__}: {error}") from error
        return self.part(handle.handle, part)

    def verify(self, handle: StateHandle) -> None:
        """Read every byte of it. Raises as `part`."""
        with self._named(handle):
            self.storage.verify(handle)

    def _verify_once(self, handle: StateHandle) -> None:
        if handle.path is None or handle.path not in self._verified:
            self.storage.verify(handle)
            if handle.path is not None:
                self._verified.add(handle.path)

    @contextmanager
    def _named(self, handle: StateHandle) -> Iterator[None]:
        """Errors name the file by a path that leads to it from anywhere."""
        try:
            yield
        except CorruptState as error:
            raise CorruptState(self.path_of(handle), error.expected, error.found) from error
        except MissingState as error:
            raise MissingState(self.path_of(handle)) from error
