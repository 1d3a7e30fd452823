"""DeltaSink on real tables: the contract of all lakes, and what is Delta's own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import ColumnConflict, DeltaSink, DeltaSource, NoTable, UnsupportedTable

from .lake import SCHEMA, DeltaLake, Lake, rows
from .sink_contract import LakeSinkContract, before, committer, running

pytest.importorskip("deltalake")


class TestDeltaSink(LakeSinkContract):
    def make_lake(self, folder: Path) -> DeltaLake:
        return DeltaLake(folder)

    def empty(self, lake: Lake) -> None:
        assert isinstance(lake, DeltaLake)
        shutil.rmtree(lake.path / "_delta_log")
        lake.make()

    def forget_history(self, lake: Lake) -> None:
        forget_history(lake)


def forget_history(lake: Lake) -> None:
    """As a clean-up of the log does that keeps it for no time at all."""
    assert isinstance(lake, DeltaLake)
    lake.append([])
    lake.table().create_checkpoint()
    for entry in sorted((lake.path / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(tmp_path)


def test_a_reader_may_skip_files_by_what_the_log_says_of_them(lake: DeltaLake) -> None:
    lake.make(pa.schema([("key", pa.int64()), ("text", pa.string()), ("share", pa.float64())]))
    with running(lake.sink()) as sink:
        sink.process([{"key": 5, "text": "b", "share": 1.0}, {"key": 7, "text": None, "share": float("nan")}])
        sink.complete(sink.snapshot())
    (stats,) = (json.loads(action["add"]["stats"]) for action in lake.log(1) if "add" in action)
    assert stats == {
        "numRecords": 2,
        "minValues": {"key": 5, "text": "b"},
        "maxValues": {"key": 7, "text": "b"},
        "nullCount": {"key": 0, "text": 1, "share": 0},
    }


def test_the_commit_says_who_wrote_it(lake: DeltaLake) -> None:
    lake.make()
    with running(lake.sink(), job_id="nightly") as sink:
        sink.process(rows([1]))
        sink.complete(sink.snapshot())
    (info,) = (action["commitInfo"] for action in lake.log(1) if "commitInfo" in action)
    assert info["understudy.job"] == "nightly"


@pytest.mark.parametrize("what", ["append", "delete", "compact", "add a column"])
def test_others_may_change_the_table_in_the_middle_of_a_commit(lake: DeltaLake, what: str) -> None:
    lake.make()
    lake.append(rows([100]))
    lake.append(rows([101]))

    def change() -> None:
        from deltalake import Field

        if what == "append":
            lake.append(rows([102]))
        elif what == "delete":
            lake.delete(100)
        elif what == "compact":
            lake.table().optimize.compact()
        else:
            lake.table().alter.add_columns([Field("new", "long")])

    with running(lake.sink()) as sink:
        before(committer(sink), "_commit_now", change)
        sink.process(rows([1]))
        sink.complete(sink.snapshot())
    expected = {"append": [1, 100, 101, 102], "delete": [1, 101]}.get(what, [1, 100, 101])
    assert lake.keys() == expected


def test_small_files_are_compacted_beside_the_job(lake: DeltaLake) -> None:
    lake.make()
    with running(lake.sink(commits_per_compaction=4)) as sink:
        for number in range(9):
            sink.process(rows([number]))
            sink.complete(sink.snapshot())
            if number % 4 == 3:
                committer(sink)._upkeep.join()
    assert lake.keys() == list(range(9))
    assert len(lake.table().file_uris()) == 2
    assert [entry["operation"] for entry in lake.table().history()].count("OPTIMIZE") == 2


def test_a_vacuum_removes_what_a_killed_attempt_has_left(lake: DeltaLake) -> None:
    lake.make()
    sink = running(lake.sink())
    sink.process(rows([1]))
    sink.snapshot()
    sink.crash()
    with running(lake.sink(), job_id="next") as again:
        again.process(rows([1]))
        again.complete(again.snapshot())
    assert len(lake.data_files()) == 2
    lake.table().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert len(lake.data_files()) == 1
    assert lake.keys() == [1]


def test_without_a_table_it_has_to_be_said_what_it_is_like(lake: DeltaLake) -> None:
    with pytest.raises(NoTable, match="give schema= to make one"):
        lake.sink()


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("x")
    for make in (DeltaSink, DeltaSource):
        with pytest.raises(NoTable, match=f"{make.__name__}: {tmp_path}/table is a file, and a Delta table is "):
            make(str(tmp_path / "table"))


def test_a_table_of_other_columns_is_refused(lake: DeltaLake) -> None:
    lake.make()
    with pytest.raises(ColumnConflict, match="'text' is string in the table, found int64"):
        lake.sink(schema=pa.schema([("key", pa.int64()), ("text", pa.int64())]))
    with pytest.raises(ColumnConflict, match="no column 'new': evolve=True adds it"):
        lake.sink(schema=SCHEMA.append(pa.field("new", pa.int64())))
    with pytest.raises(ColumnConflict, match="wanted a table partitioned by"):
        lake.sink(partition_by="text")


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.duration("s"), pa.null()], ids=str)
def test_a_type_that_delta_does_not_have_is_refused(lake: DeltaLake, kind: pa.DataType) -> None:
    with pytest.raises(ColumnConflict, match=r"'x' is .*, which a Delta table cannot hold") as refused:
        lake.sink(schema=pa.schema([("x", kind)]))
    assert "\n" not in str(refused.value)


def test_types_without_a_place_of_their_own_are_stored_as_wider_ones(lake: DeltaLake) -> None:
    given = {"a": pa.uint8(), "b": pa.uint64(), "c": pa.timestamp("ns"), "d": pa.timestamp("s", "Europe/Paris")}
    with running(lake.sink(schema=pa.schema(given.items()))) as sink:
        batch = pa.RecordBatch.from_pydict(
            {"a": [255], "b": [2**64 - 1], "c": [1000], "d": [1]}, schema=pa.schema(given.items())
        )
        sink.process(batch)
        sink.complete(sink.snapshot())
    assert lake.read().schema.types == [pa.int16(), pa.decimal128(20), pa.timestamp("us"), pa.timestamp("us", "UTC")]
    assert lake.read()["b"].to_pylist() == [2**64 - 1]


def test_a_table_with_rules_for_its_rows_is_refused(lake: DeltaLake) -> None:
    lake.make()
    lake.table().alter.add_constraint({"positive": "key > 0"})
    with pytest.raises(UnsupportedTable, match="constraint 'positive'"):
        lake.sink()


def test_a_setting_that_makes_no_sense_is_refused(lake: DeltaLake) -> None:
    lake.make()
    for wrong in ({"file_bytes": 0}, {"commits_per_compaction": 0}):
        with pytest.raises(ValueError, match="wanted"):
            lake.sink(**wrong).writer()


def test_secrets_are_in_no_text(lake: DeltaLake) -> None:
    options: dict[str, Any] = {"storage_options": {"secret_access_key": "hidden-key"}}
    lake.make()
    sink = lake.sink(**options)
    assert "hidden-key" not in repr(sink) + repr(sink.writer()) + repr(sink.committer())
