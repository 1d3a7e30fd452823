"""StateFiles: the files of the checkpoint storage, encrypted where this process has keys; callers see plain bytes.

A file that is not encrypted is read as it is, so encryption can begin in the middle of a job's life. One that is, and
cannot be opened here, is WrongEncryptionKey, also where this process has no keys at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from fsspec import AbstractFileSystem

from .durable_files import DurableFiles
from .keyring import (
    CHUNK_BYTES,
    HEAD_BYTES,
    SEALED_CHUNK_BYTES,
    Keyring,
    Opener,
    is_sealed,
    plain_size,
)


class StateFiles(DurableFiles):
    """DurableFiles of which whole files are written and read. Those of `create` are not encrypted."""

    def __init__(self, fs: AbstractFileSystem, keys: Keyring | None = None) -> None:
        """Without `keys`, those that the environment names. Raises InvalidEncryptionKeys."""
        super().__init__(fs)
        self.keys = keys or Keyring.of(os.environ)
        self.plain = DurableFiles(fs)
        """The same files as they lie there."""

    def write(self, path: str, parts: Iterable[bytes]) -> None:
        super().write(path, self._sealed(parts))

    def write_new(self, path: str, temporary: str, parts: Iterable[bytes]) -> None:
        """As there; on a disk it goes by way of `write`."""
        super().write_new(path, temporary, parts if self.has_folders else self._sealed(parts))

    def read(self, path: str, start: int | None = None, end: int | None = None, *, is_there: bool = False) -> bytes:
        """Raises CorruptState and WrongEncryptionKey, too."""
        first = start or 0
        if self.keys is None:
            data = super().read(path, start, end, is_there=is_there)
            if first == 0 and is_sealed(data):
                Opener(None, path, super().read(path, 0, HEAD_BYTES, is_there=is_there))
            return data
        last = None if end is None else -(-end // CHUNK_BYTES)
        behind = None if last is None else HEAD_BYTES + last * SEALED_CHUNK_BYTES
        if first < CHUNK_BYTES:
            data = super().read(path, None if behind is None else 0, behind, is_there=is_there)
            if not is_sealed(data):
                return data[first:end]
            opener = Opener(self.keys, path, data[:HEAD_BYTES])
            return opener.chunks(data[HEAD_BYTES:], 0, is_whole=end is None)[first:end]
        head = super().read(path, 0, HEAD_BYTES, is_there=is_there)
        if not is_sealed(head):
            return super().read(path, start, end, is_there=is_there)
        number = first // CHUNK_BYTES
        data = super().read(path, HEAD_BYTES + number * SEALED_CHUNK_BYTES, behind, is_there=is_there)
        found = Opener(self.keys, path, head).chunks(data, number)
        base = number * CHUNK_BYTES
        return found[first - base : None if end is None else end - base]

    def size_bytes(self, path: str, *, is_there: bool = False) -> int:
        """Of what it holds. Without keys that of the file: who finds another size than wanted, reads its begin."""
        found = super().size_bytes(path, is_there=is_there)
        if self.keys is None or not is_sealed(super().read(path, 0, HEAD_BYTES, is_there=is_there)):
            return found
        return plain_size(found)

    def _sealed(self, parts: Iterable[bytes]) -> Iterable[bytes]:
        return parts if self.keys is None else self.keys.sealed(parts)
