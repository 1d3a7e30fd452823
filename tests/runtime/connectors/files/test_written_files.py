"""What FileSink writes: values that come back as they went, columns, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from understudy.actors.flow.records import RecordMismatch
from understudy.actors.operators.collector import Collector
from understudy.messages import row_type
from understudy.runtime.connectors import (
    FileSink,
    FileSource,
    UnusableOutput,
)

from ..harness import Running, make_context

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def written(folder: Path, format: str, batches: Sequence[Any], schema: pa.Schema | None = None) -> list[Path]:
    running = Running(FileSink(str(folder), format, schema))
    for batch in batches:
        running.operator.process_batch(batch, Collector())
    running.checkpoint(1)
    running.complete(1)
    running.operator.close()
    return sorted(folder.glob("part-*"))


NASTY = [(1, 'a "quoted" word'), (2, "two\nlines, one value"), (3, ""), (4, None), (5, "NA")]


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_values_come_back_as_they_went(tmp_path: Path, format: str) -> None:
    (file,) = written(
        tmp_path, format, [NASTY[:2], pa.table({"n": [3], "text": [""]}).to_batches()[0], NASTY[3:]], SCHEMA
    )
    assert file.suffix == f".{format}"
    source = FileSource(str(tmp_path), format)
    source.context = make_context()
    source.open()
    batch = source.poll()
    assert isinstance(batch, pa.RecordBatch)
    assert [tuple(row.values()) for row in batch.to_pylist()] == NASTY


def test_a_reader_of_the_folder_does_not_see_what_is_in_progress(tmp_path: Path) -> None:
    running = Running(FileSink(str(tmp_path), schema=SCHEMA))
    running.take((1, "a"))
    running.checkpoint(1)
    running.complete(1)
    running.take((2, "b"))
    assert ds.dataset(tmp_path).to_table().to_pydict() == {"n": [1], "text": ["a"]}


def test_json_carries_what_json_does_not_know(tmp_path: Path) -> None:
    record = {"day": date(2024, 1, 2), "price": Decimal("1.50"), "raw": b"\x00", "inner": row_type(("a",))(1), "s": {1}}
    (file,) = written(tmp_path, "jsonl", [[record, {"other": "ü"}]])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines == [{"day": "2024-01-02", "price": "1.50", "raw": "AA==", "inner": [1], "s": [1]}, {"other": "ü"}]


def test_the_first_batch_decides_the_columns(tmp_path: Path) -> None:
    running = Running(FileSink(str(tmp_path)))
    running.take({"a": 1})
    running.checkpoint(1)
    with pytest.raises(ValueError, match="record 0: column 'a' holds the str 'x', wanted int64"):
        running.take({"a": "x"})
    running.operator.close()


@pytest.mark.parametrize(
    ("upstream", "told"),
    [
        (pa.schema([("n", pa.int64())]), "missing text"),
        (SCHEMA.append(pa.field("more", pa.int8())), "extra more"),
        (
            pa.schema([("n", pa.list_(pa.int8())), ("text", pa.string())]),
            "column 'n': found list<item: int8>, wanted int64",
        ),
    ],
)
def test_a_stream_that_does_not_fit_is_refused_at_submit(upstream: pa.Schema, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        FileSink("out", schema=SCHEMA).output_schema(upstream)
    assert FileSink("out", schema=SCHEMA).output_schema(None) is None


def test_csv_refuses_nested_columns() -> None:
    nested = pa.schema([("tags", pa.list_(pa.string()))])
    for refused in (lambda: FileSink("out", "csv", nested), lambda: FileSink("out", "csv").check_schema(nested)):
        with pytest.raises(ValueError, match=r"nested columns, found tags \(list<item: string>\)"):
            refused()


@pytest.mark.parametrize(("value", "type"), [([1], "list<item: int64>"), ({"b": 1}, "struct<b: int64>")])
@pytest.mark.parametrize("columnar", [False, True])
def test_csv_refuses_nested_columns_of_the_first_batch(tmp_path: Path, value: Any, type: str, columnar: bool) -> None:
    running = Running(FileSink(str(tmp_path), "csv"))
    batch = pa.RecordBatch.from_pylist([{"n": 1, "a": value}]) if columnar else [{"n": 1, "a": value}]
    with pytest.raises(RecordMismatch, match=rf'found a \({type}\): write format="jsonl" or "parquet", or make a text'):
        running.operator.process_batch(batch, Collector())
    running.operator.close()
    assert not [each for each in tmp_path.rglob("*") if each.is_file() and "part-" in each.name]


@pytest.mark.parametrize("type", [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.duration("s"), pa.null()])
def test_csv_takes_columns_that_are_not_nested(type: pa.DataType) -> None:
    FileSink("out", "csv", pa.schema([("a", type)]))


def test_a_file_that_could_not_be_finished_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    running = Running(FileSink(str(tmp_path)))
    running.take({"a": 1})
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", disk_full)
        with pytest.raises(UnusableOutput, match=r"its disk is full \(.* are free\): make space, .*No space left"):
            running.checkpoint(1)
    running.operator.close()
    assert not any(path.suffix == ".parquet" for path in tmp_path.rglob("*"))


def test_a_record_that_cannot_be_written_fails_and_leaves_nothing(tmp_path: Path) -> None:
    running = Running(FileSink(str(tmp_path), "jsonl"))
    with pytest.raises(TypeError, match="a PosixPath cannot be written as JSON"):
        running.take({"a": tmp_path})
    running.operator.close()
    assert not any(path.suffix == ".jsonl" for path in tmp_path.rglob("*"))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted one of parquet, csv, jsonl"):
        FileSink("out", "xml")
