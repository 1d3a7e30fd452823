"""The first bytes of a file say that it is compressed, text in UTF-16, or one JSON array, whatever its name says."""

from __future__ import annotations

import codecs
from typing import BinaryIO

HEAD_BYTES = 64
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def check_head(file: BinaryIO, format: str) -> None:
    """Raises ValueError, which says what the file is, if it cannot be of this format; else the file is at its start."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    for first, kind in _COMPRESSED.items():
        if head.startswith(first):
            raise ValueError(f"it is compressed by {kind}: decompress it first")
    if format == "parquet":
        return
    if head.startswith(_WIDE):
        raise ValueError("it is text in UTF-16, by its first bytes: convert it to UTF-8 first")
    if format == "jsonl" and head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        raise ValueError("it begins with [, as a JSON array does: wanted a JSON object in each line")
