"""Compaction and expiry of Iceberg tables: the same rows, the markers stay, and no commit is lost to them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy.runtime.connectors.lakes import iceberg_upkeep
from understudy.runtime.connectors.lakes.iceberg_upkeep import compact, expire
from understudy.testing import OperatorHarness

from .lake import SCHEMA, IcebergLake, rows
from .sink_contract import before, committer, running
from .source_contract import keys, read_all

pytest.importorskip("pyiceberg")

KILLED = 9


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


def fill(lake: IcebergLake, commits: int, **options: Any) -> None:
    with running(lake.sink(**options)) as sink:
        for number in range(commits):
            sink.process(rows([number]))
            sink.complete(sink.snapshot())


def live(lake: IcebergLake) -> list[str]:
    return [task.file.file_path for task in lake.table().scan().plan_files()]


def test_small_files_are_compacted_beside_the_job(lake: IcebergLake) -> None:
    lake.make()
    with running(lake.sink(commits_per_compaction=4)) as sink:
        for number in range(9):
            sink.process(rows([number]))
            sink.complete(sink.snapshot())
            if number % 4 == 3:
                committer(sink)._upkeep.join()
    assert lake.keys() == lake.duckdb() == list(range(9))
    assert len(live(lake)) == 2
    operations = [each.summary.operation.value for each in lake.table().snapshots()]
    assert operations.count("replace") == 2
    assert lake.table().current_snapshot().summary["total-records"] == "9"


def test_files_are_joined_within_their_partition(lake: IcebergLake) -> None:
    lake.make(partition_by=["text"])
    with running(lake.sink()) as sink:
        for number in range(8):
            sink.process([{"key": number, "text": "odd" if number % 2 else "even"}])
            sink.complete(sink.snapshot())
    expected = lake.read().sort_by("key")
    assert compact(lake.table()) == (8, 2)
    assert lake.read().sort_by("key").equals(expected)
    assert sorted(task.file.partition[0] for task in lake.table().scan().plan_files()) == ["even", "odd"]


def test_files_with_deleted_rows_are_left_alone_and_deleted_rows_stay_away(lake: IcebergLake) -> None:
    lake.make()
    fill(lake, 4)
    lake.delete(2)
    compact(lake.table())
    assert lake.keys() == [0, 1, 3]


def test_older_columns_come_out_as_null(lake: IcebergLake) -> None:
    lake.make()
    fill(lake, 2)
    with lake.table().update_schema() as update:
        update.union_by_name(pa.schema([("new", pa.int64())]))
    with running(lake.sink()) as sink:
        sink.process([{**row, "new": 7} for row in rows([5])])
        sink.complete(sink.snapshot())
    compact(lake.table())
    assert len(live(lake)) == 1
    assert lake.read().sort_by("key").column("new").to_pylist() == [None, None, 7]


@pytest.mark.parametrize("what", ["the sink commits", "others append", "others delete a row", "others compact"])
def test_what_is_committed_meanwhile_is_neither_lost_nor_doubled(lake: IcebergLake, what: str) -> None:
    lake.make()
    fill(lake, 3)
    rewritten: Callable[..., Any] = iceberg_upkeep._rewritten
    with running(lake.sink(), job_id="next") as sink:

        def meanwhile(*args: Any) -> Any:
            made = rewritten(*args)
            if what == "the sink commits":
                sink.process(rows([100]))
                sink.complete(sink.snapshot())
            elif what == "others append":
                lake.append(rows([100]))
            elif what == "others delete a row":
                lake.delete(1)
            else:
                patch.undo()
                compact(lake.table())
            return made

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(iceberg_upkeep, "_rewritten", meanwhile)
            compact(lake.table())
    assert lake.keys() == {"others delete a row": [0, 2], "others compact": [0, 1, 2]}.get(what, [0, 1, 2, 100])
    on_disk = {str(path) for path in lake.data_files()}
    assert {path.removeprefix("file://") for path in live(lake)} <= on_disk


def test_a_compaction_in_the_middle_of_the_sinks_commit(lake: IcebergLake) -> None:
    lake.make()
    fill(lake, 3)
    with running(lake.sink(), job_id="next") as sink:
        before(committer(sink), "_commit_now", lambda: compact(lake.table()))
        sink.process(rows([100]))
        sink.complete(sink.snapshot())
    assert lake.keys() == [0, 1, 2, 100]


def test_expired_snapshots_take_their_files_with_them_and_leave_the_markers(lake: IcebergLake) -> None:
    lake.make()
    fill(lake, 5)
    markers = {name: value for name, value in lake.table().properties.items() if name.startswith("understudy.")}
    assert list(markers.values()) == ["5"]
    assert compact(lake.table()) == (5, 1)
    assert len(lake.data_files()) == 6
    snapshots, files = expire(lake.table(), 0)
    assert (snapshots, len(lake.table().snapshots())) == (5, 1)
    assert files > 5, "data files, manifests and lists of manifests"
    assert len(lake.data_files()) == 1
    assert lake.keys() == lake.duckdb() == list(range(5))
    assert markers.items() <= lake.table().properties.items()


def test_an_attempt_that_is_restored_after_an_expiry_commits_nothing_twice(lake: IcebergLake) -> None:
    lake.make()
    with running(lake.sink()) as sink:
        sink.process(rows([1]))
        snapshot = sink.snapshot()
        sink.complete(snapshot)
        compact(lake.table())
        expire(lake.table(), 0)
        sink.crash()
        again = sink.restored(snapshot)
        again.process(rows([2]))
        again.complete(again.snapshot())
    assert lake.keys() == [1, 2]


def test_tags_newer_snapshots_and_what_they_have_are_kept(lake: IcebergLake) -> None:
    lake.make()
    fill(lake, 3)
    tagged = lake.table().snapshots()[1].snapshot_id
    lake.table().manage_snapshots().create_tag(tagged, "audited").commit()
    compact(lake.table())
    assert expire(lake.table(), 3_600_000) == (0, 0)
    expire(lake.table(), 0)
    with OperatorHarness(lake.source(version=tagged)) as reading:
        assert read_all(reading)
        assert keys(reading) == [0, 1]
    assert lake.keys() == [0, 1, 2]


def test_a_source_that_follows_passes_over_a_compaction(lake: IcebergLake) -> None:
    lake.make()
    fill(lake, 3)
    source = lake.source(watch_ms=1, only_new=True)
    compact(lake.table())
    lake.append(rows([9]))
    assert source.versions().added(lake.table().snapshots()[-2].snapshot_id) == ()
    assert len(source.versions().added(lake.version())) == 1


KILLER = """
import os, sys
from pathlib import Path
from understudy.runtime.connectors.lakes import iceberg_upkeep
from tests.runtime.connectors.lakes.lake import IcebergLake
import pyiceberg.table

where, moment = sys.argv[2:]
lake = IcebergLake(Path(sys.argv[1]))
table = lake.table()
home, name = {
    "rewriting": (iceberg_upkeep, "_rewritten"),
    "committing": (pyiceberg.table.Table, "_do_commit"),
    "deleting": (iceberg_upkeep, "_delete"),
}[where]
whole = getattr(home, name)

def killed(*args, **options):
    if moment == "after":
        whole(*args, **options)
    os.kill(os.getpid(), 9)

if where == "deleting":
    iceberg_upkeep.compact(table)
setattr(home, name, killed)
iceberg_upkeep.look_after(table, "it", 0)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("where", ["rewriting", "committing", "deleting"])
def test_a_kill_leaves_a_readable_table_with_the_same_rows(lake: IcebergLake, where: str, moment: str) -> None:
    lake.make()
    fill(lake, 4)
    script = [sys.executable, "-c", KILLER, str(lake.folder), where, moment]
    root = Path(__file__).parents[4]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(script, cwd=root, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert found.returncode == -KILLED, found.stderr
    assert lake.keys() == lake.duckdb() == list(range(4))
    with running(lake.sink(), job_id="next") as sink:
        sink.process(rows([4]))
        sink.complete(sink.snapshot())
    compact(lake.table())
    expire(lake.table(), 0)
    assert lake.keys() == lake.duckdb() == list(range(5))


def test_a_failure_of_the_upkeep_costs_nothing(lake: IcebergLake, caplog: pytest.LogCaptureFixture) -> None:
    lake.make()
    with running(lake.sink(commits_per_compaction=1)) as sink, pytest.MonkeyPatch.context() as patch:
        patch.setattr(iceberg_upkeep, "_groups", lambda _: 1 / 0)
        sink.process(rows([1]))
        sink.complete(sink.snapshot())
        committer(sink)._upkeep.join()
    assert "division by zero" in caplog.text
    assert lake.keys() == [1]


def test_settings_that_make_no_sense_are_refused(lake: IcebergLake) -> None:
    lake.make(SCHEMA)
    for wrong in (
        {"commits_per_compaction": 0},
        {"keep_snapshots_ms": 1000},
        {"keep_snapshots_ms": -1, "commits_per_compaction": 1},
    ):
        with pytest.raises(ValueError, match=r"wanted|commits_per_compaction"):
            lake.sink(**wrong)
