"""The bytes that a StateHandle stands for: in the handle itself, or read from a file and then verified."""

from __future__ import annotations

import zlib

from ..messages import StateHandle
from .errors import CorruptState


def inline_handle(data: bytes) -> StateHandle:
    """A handle that holds the bytes themselves."""
    return StateHandle(path=None, data=data, size_bytes=len(data), checksum=zlib.crc32(data))


def verified(data: bytes, handle: StateHandle) -> bytes:
    """The bytes, if they are those that the handle was made for; else CorruptState."""
    path = handle.path or "inline state"
    if len(data) != handle.size_bytes:
        raise CorruptState(path, f"{handle.size_bytes} bytes", f"{len(data)} bytes")
    found = zlib.crc32(data)
    if found != handle.checksum:
        raise CorruptState(path, f"CRC-32 {handle.checksum:08x}", f"{found:08x}")
    return data
