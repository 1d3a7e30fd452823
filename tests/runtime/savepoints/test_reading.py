"""Savepoints opened as data: every kind of state of every format, as rows, as Arrow, by key, by SQL."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    IncompleteSavepoint,
    MissingState,
    NoSuchState,
    NotASavepoint,
    QueryFailed,
    Savepoint,
)
from understudy.runtime.savepoints.arrow_columns import as_type, inferred, unified
from understudy.state.errors import MissingSavepoint

from ...actors.extension_types import Code
from .made import KEYS, MAX_PARALLELISM, Declared, aggregation, declared_states, savepoint

STORED = Path(__file__).parent.parent / "clusters" / "stored"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Savepoint:
    return Savepoint.open(savepoint(tmp_path_factory.mktemp("made")))


def by_key(rows: list[dict[str, Any]]) -> dict[Any, Any]:
    return {row["key"]: row["value"] for row in rows}


def test_each_kind_of_declared_state_has_its_values(opened: Savepoint) -> None:
    declared = opened.operator("declared")
    found = {name: by_key(declared.state(name).to_dicts()) for name in ("value", "items", "table", "total", "folded")}
    assert found["value"] == {key: at * 10 for at, key in enumerate(KEYS)}
    assert found["items"] == {key: list(range(at % 4)) for at, key in enumerate(KEYS) if at % 4}
    assert found["table"] == {key: {f"entry {at}": at} for at, key in enumerate(KEYS)}
    assert found["total"] == {key: at for at, key in enumerate(KEYS)}
    assert found["folded"] == dict.fromkeys(KEYS, (0, 0.0))


def test_state_of_rocksdb_reads_the_same(opened: Savepoint, tmp_path: Path) -> None:
    other = Savepoint.open(savepoint(tmp_path, {"declared": declared_states(state_backend="rocksdb")}))
    declared, in_rocksdb = opened.operator("declared"), other.operator("declared")
    names = sorted(each.name for each in declared.states() if each.name in vars(Declared))
    assert sorted(each.name for each in in_rocksdb.states() if each.name in vars(Declared)) == names
    for name in names:
        found = in_rocksdb.state(name).to_dicts()
        assert sorted(found, key=repr) == sorted(declared.state(name).to_dicts(), key=repr)
    assert sorted(in_rocksdb.timers().to_dicts(), key=repr) == sorted(declared.timers().to_dicts(), key=repr)


def test_a_record_is_a_dict_of_its_fields_whether_its_class_is_loaded_or_not(opened: Savepoint) -> None:
    legs = opened.operator("declared").state("leg")
    assert by_key(legs.to_dicts())["JFK"] == {"origin": "origin 30", "delay": 15.0}
    assert legs.to_arrow().schema.field("value").type == pa.struct([("origin", pa.string()), ("delay", pa.float64())])
    assert legs.type == "Leg(origin: str, delay: float)"


def test_the_times_of_a_state_with_a_ttl_are_a_column(opened: Savepoint) -> None:
    fresh = opened.operator("declared").state("fresh").to_arrow()
    assert fresh.column_names == ["key", "value", "updated_ms"]
    assert fresh["updated_ms"].unique().to_pylist() == [1_000]


def test_timers_of_both_domains(opened: Savepoint) -> None:
    timers = opened.operator("declared").timers()
    assert timers.count() == 2 * len(KEYS)
    assert sorted(timers.key("JFK").to_dicts(), key=str) == [
        {"key": "JFK", "domain": "event", "time_ms": 1030, "namespace": None},
        {"key": "JFK", "domain": "processing", "time_ms": 2030, "namespace": ("window", 30)},
    ]


def test_keys_of_several_types_become_text_and_keys_of_one_keep_it(opened: Savepoint) -> None:
    mixed = opened.operator("declared").state("value").to_arrow()
    assert mixed.schema.field("key").type == pa.string()
    assert {"JFK", "3", "('JFK', 1)", "2.5"} <= set(mixed["key"].to_pylist())
    assert opened.operator("aggregation").states()[0].to_arrow().schema.field("sensor").type == pa.int64()


def test_the_parts_of_a_tuple_are_counted_from_one() -> None:
    assert inferred([("JFK", 1)]).type == pa.struct({"_1": pa.string(), "_2": pa.int64()})


def test_a_tuple_is_one_text_whether_or_not_its_key_group_has_other_keys() -> None:
    for keys in ([("JFK", 1)], [("JFK", 1), None]):
        assert as_type(inferred(keys), pa.string())[0].as_py() == inferred([("JFK", 1), 3])[0].as_py() == "('JFK', 1)"


def test_columnar_aggregations_and_rows_of_joins_are_tables(opened: Savepoint) -> None:
    (aggregation,) = opened.operator("aggregation").states()
    table = aggregation.to_arrow().sort_by("sensor")
    assert table["sum(amount)"].to_pylist() == list(range(40))
    assert aggregation.key(7).to_dicts() == [{"sensor": 7, "count(*)": 1, "sum(amount)": 7, "count(amount)": 1}]
    left, right = opened.operator("rows").states()
    assert left.name == "rows by key of input 1"
    assert sorted(left.key(3).to_arrow()["left"].to_pylist()) == ["row 10", "row 17", "row 3"]
    assert right.to_arrow().column_names == ["id", "right", "time", "mark"]


def test_items_of_lists_say_their_subtask(opened: Savepoint) -> None:
    (noted,) = opened.operator("lists").states()
    assert [(row["subtask"], row["value"]) for row in noted.to_dicts()] == [
        (subtask, subtask * 100 + at) for subtask in (0, 1) for at in range(5)
    ]
    with pytest.raises(NoSuchState):
        noted.key(3)


@pytest.mark.parametrize("key", ["JFK", ("JFK", 1), 2.5, 7])
def test_a_key_reads_its_own_key_group_and_nothing_else(opened: Savepoint, key: Any) -> None:
    state = opened.operator("declared").state("value")
    before = opened.files.read_bytes
    assert by_key(state.key(key).to_dicts()) == {key: KEYS.index(key) * 10}
    read = opened.files.read_bytes - before
    whole = sum(snapshot.handle.handle.size_bytes for snapshot in opened.operator("declared").keyed.snapshots)
    assert 0 < read < whole / 4
    assert state.key("nowhere").to_dicts() == []
    assert state.key(key).to_arrow().num_rows == 1


def test_batches_have_one_schema_and_all_rows(opened: Savepoint) -> None:
    for table in opened.tables():
        batches = list(table.batches(7))
        assert {batch.schema for batch in batches} == {table.arrow_schema()}
        assert max(batch.num_rows for batch in batches) <= 7
        together = pa.Table.from_batches(batches)
        assert together.equals(table.to_arrow().cast(together.schema))
        assert together.num_rows == len(table.to_dicts()) == table.count()


def test_key_groups_cut_a_table_into_parts(opened: Savepoint) -> None:
    whole = opened.operator("declared").state("value")
    parts = [whole.groups(at, at + 3).to_dicts() for at in range(0, MAX_PARALLELISM, 4)]
    assert [row for part in parts for row in part] == whole.to_dicts()


def test_sql_over_operators_and_states(opened: Savepoint) -> None:
    found = opened.query(
        'SELECT sum(a.value) AS value, count(*) AS n FROM declared.total a JOIN "declared".value b USING (key)'
    )
    assert found.to_pylist() == [{"value": sum(range(len(KEYS))), "n": len(KEYS)}]
    assert opened.query("WITH one AS (SELECT 1 AS x) SELECT x FROM one").to_pylist() == [{"x": 1}]
    with pytest.raises(NoSuchState, match=r"'declared\.value'"):
        opened.query("SELECT * FROM declared.nothing")
    with pytest.raises(QueryFailed, match=r'tables: "declared"."value"') as failed:
        opened.query("SELECT * FROM value")
    assert "pg_" not in str(failed.value), "nobody has asked for tables of DuckDB's own"
    for sql, count in [("", 0), (" -- nothing", 0), ("select 1; select 2", 2)]:
        with pytest.raises(QueryFailed, match=f"wanted one SELECT, found {count} statements"):
            opened.query(sql)
    with pytest.raises(QueryFailed, match="SELECT"):
        opened.query("DROP TABLE value")


def test_a_name_that_is_not_there_is_answered_with_those_that_are(opened: Savepoint) -> None:
    with pytest.raises(NoSuchState, match="'declared', 'aggregation', 'rows', 'lists'"):
        opened.operator("declare")
    with pytest.raises(NoSuchState, match="'value', 'leg', 'items'"):
        opened.operator("declared").state("valu")


def test_a_checkpoint_is_opened_by_its_folder_or_metadata_and_a_moved_directory_as_a_whole(tmp_path: Path) -> None:
    pointer = savepoint(tmp_path / "there")
    (metadata,) = (tmp_path / "there").glob("job-*/chk-3/_metadata")
    expected = Savepoint.open(pointer).operator("lists").states()[0].to_dicts()
    assert Savepoint.open(metadata).operator("lists").states()[0].to_dicts() == expected
    assert Savepoint.open(f"{metadata.parent}/").operator("lists").states()[0].to_dicts() == expected
    shutil.move(tmp_path / "there", tmp_path / "moved")
    moved = Savepoint.open(tmp_path / "moved" / "savepoints" / pointer.name)
    assert moved.operator("lists").states()[0].to_dicts() == expected


def test_state_inside_the_metadata_reads_the_same(tmp_path: Path, opened: Savepoint) -> None:
    inline = Savepoint.open(savepoint(tmp_path, inline=1 << 30))
    assert not list(tmp_path.glob("job-*/chk-3/attempt*"))
    assert [table.to_dicts() for table in inline.tables()] == [table.to_dicts() for table in opened.tables()]


def test_what_is_no_savepoint_is_said_to_be_none(tmp_path: Path) -> None:
    pointer = savepoint(tmp_path)
    with pytest.raises(NotASavepoint, match=f"checkpoint_dir; name one of its savepoints: .*{pointer.name}"):
        Savepoint.open(tmp_path)
    (job,) = tmp_path.glob("job-*")
    with pytest.raises(NotASavepoint, match=r"name one of its checkpoints: .*chk-3"):
        Savepoint.open(job)
    (tmp_path / "notes.txt").write_text("no savepoint, but notes")
    with pytest.raises(NotASavepoint, match="wanted a file that begins with"):
        Savepoint.open(tmp_path / "notes.txt")
    with pytest.raises(MissingSavepoint):
        Savepoint.open("/nowhere")
    with pytest.raises(NotASavepoint, match="JobManager's memory"):
        Savepoint.open("jobmanager://savepoints/savepoint-1")
    for look in (Savepoint.open, Savepoint.verify, Savepoint.new().write):
        with pytest.raises(NotASavepoint, match="pathlib makes one slash of two: write it as a text"):
            look(Path("s3://bucket/savepoint-1"))
        with pytest.raises(NotASavepoint, match=r"it holds U\+0000"):
            look("/tmp/a\0b")
    with pytest.raises(TypeError, match="wanted a path or URL, found 5"):
        Savepoint.open(5)  # type: ignore[arg-type]
    (job / "chk-3" / "_metadata").unlink()
    with pytest.raises(IncompleteSavepoint, match="never complete"):
        Savepoint.open(job / "chk-3")
    with pytest.raises(MissingState, match="_metadata"):
        Savepoint.open(pointer)
    with pytest.raises(MissingSavepoint):
        Savepoint.open(job / "chk-4")


def test_a_savepoint_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    """Its parts have no checksums of their own: the file is verified before the first part is believed."""
    (pointer,) = (STORED / "0.1.0" / "savepoints").iterdir()
    old = Savepoint.open(pointer)
    numbers = by_key(old.operator("every-kind").state("number").to_dicts())
    assert len(numbers) == 24
    assert numbers == {
        key: value[0] for key, value in by_key(old.operator("compiled").state("held").to_dicts()).items()
    }
    assert old.operator("numbers").state("source-offset").count() == 2
    assert old.operator("kinds").state("two-phase-commit").count() == 4


def test_a_savepoint_on_another_file_system() -> None:
    import fsspec

    (pointer,) = (STORED / "0.1.0" / "savepoints").iterdir()
    memory = fsspec.filesystem("memory")
    memory.put(str(STORED / "0.1.0"), "/state-data", recursive=True)
    try:
        found = Savepoint.open(f"memory://state-data/savepoints/{pointer.name}")
        assert found.operator("every-kind").state("total").count() == 24
    finally:
        memory.rm("/state-data", recursive=True)


def test_columns_of_a_users_own_extension_type_have_one_type() -> None:
    assert unified([pa.null(), Code(), Code()]) == Code()
    assert unified([Code(), pa.int64()]) == pa.string()
    assert unified([pa.int64(), pa.float64(), pa.int64()]) == pa.float64()


def test_state_with_columns_of_a_users_own_extension_type_is_a_table(tmp_path: Path) -> None:
    made = savepoint(tmp_path, {"aggregation": aggregation(30, coded=Code())})
    table = Savepoint.open(made).operator("aggregation").states()[0]
    assert table.arrow_schema().field("sensor").type == pa.string(), "where it is not known"
    pa.register_extension_type(Code())
    try:
        assert table.arrow_schema().field("sensor").type == Code()
        assert sorted(table.to_arrow()["sensor"].to_pylist()) == sorted(map(str, range(30)))
    finally:
        pa.unregister_extension_type(Code().extension_name)


def test_a_link_leads_to_its_savepoint_and_what_is_no_file_is_called_by_its_kind(tmp_path: Path) -> None:
    """A link to one elsewhere, and a pipe, were said to be folders with themselves in them."""
    path = savepoint(tmp_path / "one", {"declared": declared_states()})
    links = tmp_path / "links"
    links.mkdir()
    latest, pipe, loop = links / "latest", links / "pipe", links / "loop"
    latest.symlink_to(path)
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    assert Savepoint.open(latest).path == os.path.realpath(path)
    with pytest.raises(NotASavepoint, match="it is a named pipe; wanted"):
        Savepoint.open(pipe)
    (links / "zero").symlink_to("/dev/zero")
    with pytest.raises(NotASavepoint, match="/dev/zero: not a savepoint: it is a device"):
        Savepoint.open(links / "zero")
    (links / "other").symlink_to(__file__)
    with pytest.raises(NotASavepoint, match="wanted a file that begins with"):
        Savepoint.open(links / "other")
    with pytest.raises(MissingSavepoint):
        Savepoint.open(loop)
