"""The seal of a file that carries its own checksum: magic, CRC-32 and length of what follows it.

What the file means, and where it lies, are not at home here.
"""

from __future__ import annotations

import zlib
from struct import Struct

from .errors import CorruptState

_SEAL = Struct(">4sIQ")
_MAGIC = b"USS1"
SEAL_BYTES = _SEAL.size


def seal_of(data: bytes) -> bytes:
    return _SEAL.pack(_MAGIC, zlib.crc32(data), len(data))


def opened(path: str, seal: bytes) -> tuple[int, int]:
    """The checksum and the length that it promises; raises CorruptState."""
    if len(seal) < SEAL_BYTES:
        raise CorruptState(path, f"at least {SEAL_BYTES} bytes", f"{len(seal)} bytes")
    magic, checksum, size = _SEAL.unpack(seal)
    if magic != _MAGIC:
        raise CorruptState(path, f"a file that begins with {_MAGIC!r}", repr(magic))
    return checksum, size
