"""A keyed snapshot's parts, one for each key group and a header, as one run of bytes; and one part of it again.

Each part has its own checksum beside the one of the whole, so that whoever wants one key group reads that alone and
knows that it is what was written. The formats say what parts hold. Older snapshots have no such checksums.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ...messages import StateHandle
from ..checksum import joined_crc32
from ..errors import CorruptState
from ..handle_bytes import inline_handle

HEADER: Final = -1
"""Where the header stands among the key groups of a handle's offsets."""

_MUCH_PER_PART: Final = 32 * 1024
"""From this mean size on it is quicker to join the checksums of parts than to read all of them again."""

Offsets: TypeAlias = "dict[int, tuple[int, ...]]"
"""Key group -> where its part begins, its length, and its CRC-32 if the snapshot has one for it."""


class Part(NamedTuple):
    """Where one part lies."""

    offset: int
    length: int
    checksum: int | None

    @classmethod
    def of(cls, position: tuple[int, ...]) -> Part:
        """Raises ValueError for what is no position."""
        offset, length, *checksum = position
        return cls(offset, length, checksum[0] if checksum else None)

    def verified(self, data: Any, path: str) -> Any:
        """The bytes, if they are this part; else CorruptState."""
        if len(data) != self.length:
            raise CorruptState(path, f"{self.length} bytes at {self.offset}", f"{len(data)} bytes")
        if self.checksum is not None and (found := zlib.crc32(data)) != self.checksum:
            raise CorruptState(
                path, f"CRC-32 {self.checksum:08x} of {self.length} bytes at {self.offset}", f"{found:08x}"
            )
        return data


def lay_out(parts: Mapping[int, Any]) -> tuple[Offsets, StateHandle]:
    """The parts one behind the other, in their order, inline."""
    offsets: Offsets = {}
    at = 0
    for group, part in parts.items():
        view = memoryview(part)
        offsets[group] = (at, view.nbytes, zlib.crc32(view))
        at += view.nbytes
    data = b"".join(parts.values())
    if at < _MUCH_PER_PART * len(parts):
        return offsets, inline_handle(data)
    return offsets, StateHandle(None, data, at, joined_crc32((crc, size) for _, size, crc in offsets.values()))
