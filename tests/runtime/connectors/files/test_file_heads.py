"""A file that is not what its name says is refused when the stream is built, and the error says what it is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec import AbstractFileSystem
from fsspec.spec import AbstractBufferedFile

from understudy import UnreadableFile, UnreadableInput
from understudy.runtime.connectors import FileSource, WatchedFileSource
from understudy.runtime.connectors.files.file_readers import CsvForm
from understudy.runtime.connectors.files.file_source import _describe

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


@pytest.mark.parametrize("content", [b"", b"BZh,b\n1,2\n", b"PK,b\n1,2\n"], ids=["empty", "BZh", "PK"])
def test_text_that_begins_as_a_compressed_file_does_is_read(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    source = FileSource(str(tmp_path / "a.txt"), "text")
    lines = [
        line for split in source.splits for batch in source.open_split(split) for line in batch["line"].to_pylist()
    ]
    assert lines == content.decode().splitlines()


class _Fetched(AbstractBufferedFile):
    def _fetch_range(self, start: int, end: int) -> bytes:
        self.fs.fetched.append((start, min(end, self.size)))
        return bytes(self.fs.content[start:end])


class _Store(AbstractFileSystem):
    """Of one object, with the buffers that fsspec gives to all stores."""

    protocol = "store-of-one"

    def __init__(self, content: bytes) -> None:
        super().__init__(skip_instance_cache=True)
        self.content, self.fetched = content, list[tuple[int, int]]()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {"name": path, "size": len(self.content), "type": "file"}

    def _open(self, path: str, mode: str = "rb", **_: Any) -> _Fetched:
        return _Fetched(self, path, mode, block_size=1 << 20)


def test_of_a_parquet_file_in_a_store_the_beginning_is_not_fetched() -> None:
    """fsspec reads a block ahead, of 50 MB in S3: for each file of a folder, before the job starts."""
    file = io.BytesIO()
    pq.write_table(pa.table({"a": np.random.default_rng(1).integers(0, 1 << 60, 1 << 19)}), file)
    store = _Store(file.getvalue())
    _describe(store, ["a.parquet"], "parquet", CsvForm())
    assert min(start for start, _ in store.fetched) > 0
    assert sum(end - start for start, end in store.fetched) < len(store.content)


def test_a_folder_that_is_watched_refuses_it_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(GZIP)
    with pytest.raises(UnreadableInput, match="it is compressed by gzip: decompress it first"):
        WatchedFileSource(str(tmp_path), "csv")


def test_of_lines_in_another_encoding_the_error_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("ok\nMünchen\n".encode("latin-1"))
    source = FileSource(str(tmp_path / "a.txt"), "text")
    with pytest.raises(UnreadableFile, match=r"line 2 is not UTF-8.*: convert the file to UTF-8 first"):
        list(source.open_split(source.splits[0]))
