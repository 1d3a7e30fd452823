"""The first bytes of a file say that it is compressed, text in UTF-16, or one JSON array, whatever its name says."""

from __future__ import annotations

import codecs
import re
from typing import BinaryIO

HEAD_BYTES = 64
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
"""How large its blocks are, and then the mark of a block, or of the end: a column may be called BZh."""
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def check_head(file: BinaryIO, format: str) -> None:
    """Raises ValueError, which says what the file is, if it cannot be of this format; else the file is at its start.

    A Parquet file is not looked at: in a store, its first bytes come with a block of megabytes that nobody wants. One
    that has no footer goes to `check_compression`.
    """
    if format == "parquet":
        return
    head = check_compression(file)
    if head.startswith(_WIDE):
        raise ValueError("it is text in UTF-16, by its first bytes: convert it to UTF-8 first")
    if format == "jsonl" and head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        raise ValueError("it begins with [, as a JSON array does: wanted a JSON object in each line")


def check_compression(file: BinaryIO) -> bytes:
    """The first bytes of a file, which is at its start then. Raises ValueError if it is compressed as a whole."""
    file.seek(0)
    head = file.read(HEAD_BYTES)
    file.seek(0)
    kinds = (kind for first, kind in _COMPRESSED.items() if head.startswith(first))
    if (kind := "bzip2" if _BZIP2.match(head) else next(kinds, None)) is not None:
        raise ValueError(f"it is compressed by {kind}: decompress it first")
    return head
