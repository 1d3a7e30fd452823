"""Files of JSON lines as a source: columns that are missing or come late, and lines that are no JSON."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from understudy.runtime.connectors import (
    FileSource,
    UnreadableInput,
)

from .reading import FileContract, all_rows


class TestJsonLinesSource(FileContract):
    format = "jsonl"

    @classmethod
    def write(cls, rows: pa.Table, path: Path) -> None:
        path.write_text("\n".join(f'{{"n": {n}, "name": "n{n}"}}\n' for n in rows["n"].to_pylist()))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.ZST"])
def test_of_a_compressed_file_it_is_said_that_it_is(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b'{"n": 1}\n'))
    with pytest.raises(UnreadableInput, match="as jsonl: it is compressed by gzip: decompress it first"):
        FileSource(str(tmp_path / name), "jsonl")


def test_jsonl_objects_may_leave_out_columns(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"a": 1}\n\n{"b": "x"}\n')
    (tmp_path / "2.jsonl").write_text('{"c": 2.5}')
    rows = all_rows(FileSource(str(tmp_path), "jsonl"))
    assert rows == [{"a": 1, "b": None, "c": None}, {"a": None, "b": "x", "c": None}, {"a": None, "b": None, "c": 2.5}]


def test_a_field_that_comes_after_the_columns_were_taken_is_named_and_never_left_out(tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    path.write_text('{"a": 1}\n' * 150_000 + '{"a": 2, "refund": 7}\n')
    with pytest.raises(UnreadableInput, match=r"the field 'refund' comes later .* schema=, or .* columns="):
        all_rows(FileSource(str(path), "jsonl"))
    whole = pa.schema([("a", pa.int64()), ("refund", pa.int64())])
    for wanted in (
        {"columns": ["a"]},
        {"schema": whole},
        {"schema": pa.schema([("a", pa.int64())])},
    ):
        assert all_rows(FileSource(str(path), "jsonl", **wanted))[-1]["a"] == 2  # type: ignore[arg-type]
    assert all_rows(FileSource(str(path), "jsonl").for_columns(["a"]))[-1] == {"a": 2}


@pytest.mark.parametrize(
    ("bad", "why"), [('{"a": 1', "Expecting"), ("[1]", "it is no object"), ("{'a': 1}", "Expecting")]
)
def test_a_line_that_is_no_json_is_named_by_its_number_in_the_file(tmp_path: Path, bad: str, why: str) -> None:
    good = '{"a": 1234567890}\n'
    (tmp_path / "a.jsonl").write_text(good * 100_000 + bad + "\n" + good)
    with pytest.raises(UnreadableInput, match=rf"line 100001 is no JSON object: {why}.*: {re.escape(repr(bad))}"):
        all_rows(FileSource(str(tmp_path / "a.jsonl"), "jsonl"))
