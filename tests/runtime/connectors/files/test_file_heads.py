"""A file that is not what its name says is refused when the stream is built, and the error says what it is."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from pathlib import Path

import pytest

from understudy import UnreadableFile, UnreadableInput
from understudy.runtime.connectors import FileSource, WatchedFileSource

GZIP = gzip.compress(b"a,b\n1,2\n", mtime=0)


@pytest.mark.parametrize(
    ("format", "content", "said"),
    [
        ("csv", GZIP, "it is compressed by gzip: decompress it first"),
        ("text", GZIP, "it is compressed by gzip: decompress it first"),
        ("jsonl", bz2.compress(b'{"a": 1}'), "it is compressed by bzip2: decompress it first"),
        ("parquet", lzma.compress(b"PAR1"), "it is compressed by xz: decompress it first"),
        ("csv", "a,b\n1,2\n".encode("utf-16"), "it is text in UTF-16, by its first bytes: convert it to UTF-8 first"),
        ("text", "a,b\n".encode("utf-16"), "it is text in UTF-16, by its first bytes: convert it to UTF-8 first"),
        ("jsonl", b'\n[{"a": 1},\n {"a": 2}]', "it begins with [, as a JSON array does: wanted a JSON object in each"),
    ],
    ids=["csv-gzip", "text-gzip", "jsonl-bzip2", "parquet-xz", "csv-utf16", "text-utf16", "jsonl-array"],
)
def test_the_error_says_what_the_file_is(format: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{format}"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=re.escape(f"{path} cannot be read as {format}: {said}")):
        FileSource(str(path), format)


def test_a_folder_that_is_watched_refuses_it_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(GZIP)
    with pytest.raises(UnreadableInput, match="it is compressed by gzip: decompress it first"):
        WatchedFileSource(str(tmp_path), "csv")


def test_of_lines_in_another_encoding_the_error_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("ok\nMünchen\n".encode("latin-1"))
    source = FileSource(str(tmp_path / "a.txt"), "text")
    with pytest.raises(UnreadableFile, match=r"line 2 is not UTF-8.*: convert the file to UTF-8 first"):
        list(source.open_split(source.splits[0]))
