"""IcebergSink on real tables: the contract of all lakes, and what is Iceberg's own."""

from __future__ import annotations

import datetime
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

from understudy import ColumnConflict, IcebergSink, IcebergSource, MissingExtra, NoCatalog, NoTable

from .lake import SCHEMA, IcebergLake, Lake, rows
from .sink_contract import LakeSinkContract, before, committer, refused, running

pytest.importorskip("pyiceberg")


class TestIcebergSink(LakeSinkContract):
    def make_lake(self, folder: Path) -> IcebergLake:
        return IcebergLake(folder)

    def empty(self, lake: Lake) -> None:
        assert isinstance(lake, IcebergLake)
        lake.loaded().drop_table(lake.NAME)
        lake.make()

    def forget_history(self, lake: Lake) -> None:
        forget_history(lake)


def forget_history(lake: Lake) -> None:
    """As an expiry does that keeps nothing but the newest snapshot."""
    assert isinstance(lake, IcebergLake)
    lake.append([])
    newest, table = lake.version(), lake.table()
    table.maintenance.expire_snapshots().by_ids(
        [each.snapshot_id for each in table.snapshots() if each.snapshot_id != newest]
    ).commit()


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


def test_the_snapshot_says_who_made_it(lake: IcebergLake) -> None:
    lake.make()
    with running(lake.sink(), job_id="nightly") as sink:
        sink.process(rows([1]))
        sink.complete(sink.snapshot())
    summary = lake.table().current_snapshot().summary
    assert summary["understudy.job"] == "nightly"
    (marker,) = (name for name in lake.table().properties if name.startswith("understudy.marker."))
    assert summary[marker] == lake.table().properties[marker] == "1"
    assert "commit.retry.num-retries" not in lake.table().properties


@pytest.mark.parametrize("what", ["append", "delete", "add a column"])
def test_others_may_change_the_table_in_the_middle_of_a_commit(lake: IcebergLake, what: str) -> None:
    lake.make()
    lake.append(rows([100, 101]))

    def change() -> None:
        if what == "append":
            lake.append(rows([102]))
        elif what == "delete":
            lake.delete(100)
        else:
            with lake.table().update_schema() as update:
                update.union_by_name(pa.schema([("new", pa.int64())]))

    with running(lake.sink()) as sink:
        before(committer(sink), "_commit_now", change)
        sink.process(rows([1]))
        sink.complete(sink.snapshot())
    assert lake.keys() == {"append": [1, 100, 101, 102], "delete": [1, 101]}.get(what, [1, 100, 101])


def test_partitions_of_a_table_may_be_made_of_its_columns(lake: IcebergLake) -> None:
    from pyiceberg.transforms import DayTransform

    lake.make(pa.schema([("key", pa.int64()), ("at", pa.timestamp("us"))]))
    with lake.table().update_spec() as update:
        update.add_field("at", DayTransform(), "day")
    if find_spec("pyiceberg_core") is None:  # what computes days of a column
        with pytest.raises(MissingExtra, match="needs pyiceberg-core"):
            lake.sink()
        return
    first = datetime.datetime(2026, 1, 1)
    written = [{"key": hour, "at": first + datetime.timedelta(hours=hour)} for hour in range(48)]
    with running(lake.sink()) as sink:
        sink.process(written)
        sink.complete(sink.snapshot())
    assert lake.read().sort_by("key").to_pylist() == written
    assert len(lake.data_files()) == 2


def test_files_of_another_partitioning_are_not_committed(lake: IcebergLake) -> None:
    lake.make()
    with running(lake.sink()) as sink:
        sink.process(rows([1]))
        staged = sink.snapshot()
        with lake.table().update_spec() as update:
            update.add_identity("text")
        with refused(ColumnConflict, "files were written for partitioning 0, and the table has 1 now"):
            sink.complete(staged)
        sink.crash()


def test_without_a_table_it_has_to_be_said_what_it_is_like(lake: IcebergLake) -> None:
    with pytest.raises(NoTable, match="give schema= to make one"):
        lake.sink()


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        (
            {"type": "rest", "uri": "http://127.0.0.1:9"},
            "nothing listens at http://127.0.0.1:9 .* the port",
        ),
        (
            {"type": "sql", "uri": "sqlite:////nosuch/catalog.db"},
            "sqlite:////nosuch/catalog.db: .* database",
        ),
        ({"type": "resst", "uri": "http://user:secret@x"}, r"http://user:\*\*\*@x: ValueError: 'resst' is not a valid"),
    ],
)
def test_a_catalog_that_cannot_be_opened_is_named(properties: dict[str, str], told: str) -> None:
    for make in (IcebergSink, IcebergSource):
        with pytest.raises(NoCatalog, match=f"{make.__name__}: cannot open its catalog: .*{told}"):
            make("sales.totals", catalog=properties)


@pytest.mark.parametrize("name", ["totals", "sales."])
def test_a_name_without_a_namespace_is_refused(lake: IcebergLake, name: str) -> None:
    with pytest.raises(NoTable, match="is no name of an Iceberg table"):
        IcebergSink(name, catalog=lake.catalog)


def test_a_table_of_other_columns_is_refused(lake: IcebergLake) -> None:
    lake.make()
    with pytest.raises(ColumnConflict, match="'text' is string in the table, found int64"):
        lake.sink(schema=pa.schema([("key", pa.int64()), ("text", pa.int64())]))
    with pytest.raises(ColumnConflict, match="no column 'new': evolve=True adds it"):
        lake.sink(schema=SCHEMA.append(pa.field("new", pa.int64())))
    with pytest.raises(ColumnConflict, match="wanted a table partitioned by"):
        lake.sink(partition_by="text")


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.null()], ids=str)
def test_a_type_that_iceberg_does_not_have_is_refused(lake: IcebergLake, kind: pa.DataType) -> None:
    with pytest.raises(ColumnConflict, match=r"'x' is .*, which an Iceberg table cannot hold"):
        lake.sink(schema=pa.schema([("x", kind)]))


def test_secrets_are_in_no_text(lake: IcebergLake) -> None:
    lake.make()
    lake.catalog |= {"s3.secret-access-key": "hidden-key"}
    sink = lake.sink()
    assert "hidden-key" not in repr(sink) + repr(sink.writer()) + repr(sink.committer()) + repr(lake.source())
