"""ScanSource keeps the contract of sources, and is refused where a file is not what the DataFrame says. No Spark."""

from __future__ import annotations

import datetime
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.actors.operators.source import END, Source
from understudy.runtime.connectors import InputChanged, NotAScan, OffsetMismatch, ScanPlan, ScanSource

from ....contracts.source import RECORDS, SourceContract
from ..harness import make_context

TABLE = pa.table({"n": list(range(RECORDS)), "name": [f"n{n}" if n % 7 else None for n in range(RECORDS)]})


def plan_of(*paths: Path, columns: tuple[str, ...] = ("n", "name"), **changed: Any) -> ScanPlan:
    size = sum(path.stat().st_size for path in paths)
    settings: dict[str, Any] = {"size_bytes": size, "foreign_dates_as_written": True}
    return ScanPlan(tuple(map(str, paths)), columns, **(settings | changed))


def rows_of(source: ScanSource) -> list[dict[str, Any]]:
    return [row for batch in batches_of(source) for row in batch.to_pylist()]


def batches_of(source: ScanSource) -> Iterator[pa.RecordBatch]:
    source.context = make_context()
    source.open()
    while (batch := source.poll()) is not END:
        yield batch


@pytest.fixture
def part(tmp_path: Path) -> Path:
    path = tmp_path / "part.parquet"
    pq.write_table(TABLE, path, row_group_size=25)
    return path


class TestScanSource(SourceContract):
    """Three files of several row groups each, in two folders, and one without rows."""

    paths: list[Path]

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def files(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        folder = tmp_path_factory.mktemp("scan")
        (folder / "deeper").mkdir()
        parts = (TABLE.slice(0, 31), TABLE.slice(31, 5), TABLE.slice(36), TABLE.slice(0, 0))
        cls.paths = [folder / name for name in ("a", "b", "deeper/c", "empty")]
        for path, rows in zip(cls.paths, parts, strict=True):
            pq.write_table(rows, path, row_group_size=11)

    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        made = ScanSource(
            plan_of(*self.paths), TABLE.schema, batch_rows=batch_rows, records_per_second=records_per_second
        )
        return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]


# -- columns


def test_columns_have_the_dataframes_names_order_and_number(part: Path) -> None:
    schema = pa.schema([("b", pa.string()), ("a", pa.int64()), ("again", pa.int64())])
    source = ScanSource(plan_of(part, columns=("name", "n", "n")), schema)
    assert rows_of(source)[1] == {"b": "n1", "a": 1, "again": 1}
    narrowed = source.for_columns(["again"])
    assert (narrowed.schema.names, narrowed.batch_rows > source.batch_rows) == (["again"], True)
    assert rows_of(narrowed) == [{"again": n} for n in range(RECORDS)]


def test_a_file_that_is_read_twice_gives_its_rows_twice(part: Path) -> None:
    assert len(rows_of(ScanSource(plan_of(part, part), TABLE.schema))) == 2 * RECORDS


def test_a_dataframe_without_files_has_no_rows(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.touch()
    assert rows_of(ScanSource(plan_of(), TABLE.schema)) == rows_of(ScanSource(plan_of(nothing), TABLE.schema)) == []


def test_a_column_with_a_dot_is_not_mistaken_for_a_field(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "a.b": [2]}), tmp_path / "x")
    for name, value in (("a", 1), ("a.b", 2)):
        plan = plan_of(tmp_path / "x", columns=(name,))
        assert rows_of(ScanSource(plan, pa.schema([("c", pa.int64())]))) == [{"c": value}]


NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array(["x", None], pa.large_string()), pa.string()),
        (pa.array([b"x", None], pa.large_binary()), pa.binary()),
        (pa.array(["x", None]).dictionary_encode(), pa.string()),
        (pa.array([NOON, None], pa.timestamp("ms", "UTC")), pa.timestamp("us", "America/New_York")),
        (pa.array([NOON.replace(tzinfo=None), None], pa.timestamp("us")), pa.timestamp("us")),
    ],
    ids=lambda each: str(getattr(each, "type", each)),
)
def test_what_spark_reads_as_another_arrow_type_is_cast(tmp_path: Path, stored: pa.Array, wanted: pa.DataType) -> None:
    pq.write_table(pa.table({"c": stored}), tmp_path / "x")
    source = ScanSource(plan_of(tmp_path / "x", columns=("c",)), pa.schema([("c", wanted)]))
    (batch,) = batches_of(source)
    assert batch.column(0).equals(stored.cast(wanted))


# -- what is refused


@pytest.mark.parametrize(
    ("stored", "wanted", "told"),
    [
        ({"c": [1]}, pa.int32(), "'c' is int64 in .* and int32 in the DataFrame"),
        ({"c": pa.array([1], pa.uint8())}, pa.int16(), "'c' is uint8"),
        ({"c": [[1]]}, pa.list_(pa.int64()), "of type list"),
        ({"c": [NOON.replace(tzinfo=None)]}, pa.timestamp("us", "UTC"), r"'c' is timestamp\[us\]"),
        ({"c": pa.array([1], pa.timestamp("ns", "UTC"))}, pa.timestamp("us", "UTC"), r"'c' is timestamp\[ns"),
        ({"d": [1]}, pa.int64(), "no column 'c'"),
        ({"C": [1]}, pa.int64(), "no column 'c'"),
        ({"c": [1], "C": [2]}, pa.int64(), "several by that name"),
    ],
)
def test_a_file_with_other_columns_is_not_a_scan(
    tmp_path: Path, stored: dict[str, Any], wanted: pa.DataType, told: str
) -> None:
    pq.write_table(pa.table(stored), tmp_path / "x")
    with pytest.raises(NotAScan, match=told):
        ScanSource(plan_of(tmp_path / "x", columns=("c",)), pa.schema([("c", wanted)]))


def test_every_file_is_looked_at(part: Path, tmp_path: Path) -> None:
    pq.write_table(TABLE.rename_columns(["n", "other"]), tmp_path / "x")
    with pytest.raises(NotAScan, match=r"x has no column 'name'"):
        ScanSource(plan_of(part, tmp_path / "x"), TABLE.schema)


@pytest.mark.parametrize(
    ("metadata", "foreign", "is_read"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"org.apache.spark.version": "2.4.8"}, True, False),
        ({"org.apache.spark.version": "3.5.1"}, False, True),
        ({"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyDateTime": ""}, True, False),
    ],
)
def test_dates_of_an_older_calendar_are_left_to_spark(
    tmp_path: Path, metadata: dict[str, str], foreign: bool, is_read: bool
) -> None:
    table = pa.table({"c": [datetime.date(1500, 1, 1)]})
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "x")
    plan = plan_of(tmp_path / "x", columns=("c",), foreign_dates_as_written=foreign)
    if is_read:
        assert rows_of(ScanSource(plan, table.schema)) == table.to_pylist()
    else:
        with pytest.raises(NotAScan, match="older calendar"):
            ScanSource(plan, table.schema)


def test_a_file_that_is_not_what_spark_listed_is_not_a_scan(part: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAScan, match="changed since the DataFrame was made"):
        ScanSource(plan_of(part, size_bytes=7), TABLE.schema)
    plan = plan_of(part)
    os.rename(part, tmp_path / "elsewhere")
    with pytest.raises(NotAScan, match=r"part\.parquet cannot be found"):
        ScanSource(plan, TABLE.schema)
    (tmp_path / "text").write_text("n,name\n")
    with pytest.raises(NotAScan, match="cannot be read as Parquet"):
        ScanSource(plan_of(tmp_path / "text"), TABLE.schema)


def test_two_columns_of_one_name_are_not_a_scan(part: Path) -> None:
    with pytest.raises(NotAScan, match="one name"):
        ScanSource(plan_of(part, columns=("n", "n")), pa.schema([("n", pa.int64()), ("n", pa.int64())]))


# -- files that change later


def test_a_file_that_was_written_again_is_told(part: Path) -> None:
    source = ScanSource(plan_of(part), TABLE.schema)
    written = part.stat().st_mtime_ns
    os.utime(part, ns=(written, written + 1_000_000))
    with pytest.raises(InputChanged, match=rf"part\.parquet .*written at {written + 1_000_000}.* of {written}"):
        rows_of(source)


def test_a_file_that_is_written_while_it_is_read_is_told(part: Path) -> None:
    batches = batches_of(ScanSource(plan_of(part), TABLE.schema, batch_rows=10))
    next(batches)
    os.utime(part)
    with pytest.raises(InputChanged):
        list(batches)


def test_a_file_that_has_gone_is_told(part: Path) -> None:
    source = ScanSource(plan_of(part), TABLE.schema)
    part.unlink()
    with pytest.raises(InputChanged, match=r"part\.parquet cannot be found"):
        rows_of(source)


def test_an_offset_among_files_of_other_sizes_is_refused(part: Path) -> None:
    source = ScanSource(plan_of(part), TABLE.schema)
    next(batches_of(source))
    offset = source.offset()
    pq.write_table(TABLE, part, row_group_size=25, compression="none")
    other = ScanSource(plan_of(part), TABLE.schema)
    other.context = make_context()
    other.open()
    with pytest.raises(OffsetMismatch, match="other files than the DataFrame has now"):
        other.seek(offset)
