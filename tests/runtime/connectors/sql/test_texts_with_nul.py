"""A NUL in a text, which PostgreSQL refuses and SQLite takes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.errors import UserCodeError
from understudy.actors.flow.records import RecordMismatch
from understudy.runtime.connectors.sql.row_changes import _has_nul_as_json
from understudy.runtime.connectors.sql.sql_sinks import SqlSink
from understudy.testing import OperatorHarness

from .databases import asked

RECORDS = [{"id": 1, "b": "a"}, {"id": 2, "b": "a\0b"}]
TEXTS = pa.RecordBatch.from_pylist(RECORDS, pa.schema([("id", pa.int64()), ("b", pa.large_string())]))
WORDS = pa.RecordBatch.from_pydict({"id": TEXTS.column("id"), "b": pa.array(["a", "a\0b"]).dictionary_encode()})


@pytest.mark.parametrize("batch", [RECORDS, TEXTS, WORDS], ids=["records", "texts", "words"])
def test_a_text_that_postgresql_has_not_is_refused_before_its_checkpoint(url: str, batch: Any) -> None:
    """Later the job would fail of it after each restart."""
    asked(url, "CREATE TABLE t (id integer PRIMARY KEY, b varchar(9))")
    harness = OperatorHarness(SqlSink(url, "t"))
    if url.startswith("postgresql"):
        with pytest.raises(UserCodeError) as raised:
            harness.process(batch)
        assert isinstance(raised.value.__cause__, RecordMismatch)
        assert "column 'b' has a text with the character U+0000" in str(raised.value.__cause__)
        return
    harness.process(batch)
    harness.complete(harness.snapshot())
    assert asked(url, "SELECT b FROM t ORDER BY id") == [("a",), ("a\0b",)]


NESTED = pa.struct([("x", pa.string()), ("more", pa.list_(pa.string()))])
BROKEN = [
    ["a", "a\0b"],
    {"x": "a\0b", "more": []},
    {"x": "a", "more": ["b", "\0"]},
    {"deep": [{"y": ["a\0"]}]},
    {"a\0": 1},
    '{"x": "a\\u0000"}',
    '["\\\\\\u0000"]',
]
FINE = [["a", "b"], {"x": "u0000", "more": ["\\u0000"]}, '["\\\\u0000"]', "[null]", [], {"deep": [{"y": [None]}]}]


def _sink(url: str, kind: str) -> OperatorHarness[Any]:
    asked(url, f"CREATE TABLE t (id integer PRIMARY KEY, b {kind})")
    return OperatorHarness(SqlSink(url, "t"))


@pytest.mark.parametrize("value", BROKEN, ids=str)
def test_a_json_value_that_jsonb_has_not_is_refused_before_its_checkpoint(pg_url: str, value: Any) -> None:
    harness = _sink(pg_url, "jsonb")
    with pytest.raises(UserCodeError) as raised:
        harness.process([{"id": 1, "b": value}])
    assert isinstance(raised.value.__cause__, RecordMismatch)
    assert "column 'b' has a value with the character U+0000" in str(raised.value.__cause__)


@pytest.mark.parametrize(("kind", "values"), [("jsonb", FINE), ("json", [*FINE, *BROKEN]), ("text", BROKEN[:4])])
def test_what_the_column_takes_is_written(pg_url: str, kind: str, values: list[Any]) -> None:
    harness = _sink(pg_url, kind)
    for number, each in enumerate(values):
        harness.process([{"id": number, "b": each}])
        harness.complete(harness.snapshot())
    assert asked(pg_url, "SELECT count(*) FROM t") == [(len(values),)]


def test_only_the_values_of_a_slice_are_looked_at(pg_url: str) -> None:
    values = pa.array([{"x": "\0"}, {"x": "a", "more": ["b"]}, {"x": "a", "more": ["\0"]}], NESTED)
    harness = _sink(pg_url, "jsonb")
    harness.process(pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), values], names=["id", "b"]).slice(1, 1))
    harness.complete(harness.snapshot())
    assert asked(pg_url, "SELECT id FROM t") == [(2,)]


MAP = pa.map_(pa.string(), pa.string())
NUL, PLAIN = [("b", "\0")], [("a", "a")]
TYPED_BROKEN = {
    "map": pa.array([None, NUL], MAP),
    "name in a map": pa.array([[("\0", None)]], MAP),
    "map in a struct": pa.array([{"m": NUL}], pa.struct([("m", MAP)])),
    "list in a map": pa.array([[(1, ["\0"])]], pa.map_(pa.int64(), pa.list_(pa.string()))),
    "view": pa.array(['{"x": "\\u0000"}'], pa.string_view()),
    "view in a list": pa.array([["a\0"]], pa.list_(pa.string_view())),
}
TYPED_FINE = {
    "map": pa.array([PLAIN, None, []], MAP),
    "no maps": pa.array([], MAP),
    "slice of maps": pa.array([NUL, None, PLAIN, [], NUL], MAP).slice(1, 3),
    "null map with entries": pa.MapArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array(["\0", "a"]), pa.array(["\0", "b"]), mask=pa.array([True, False])
    ),
    "map in a struct": pa.array([{"m": PLAIN}, None], pa.struct([("m", MAP)])),
    "view": pa.array(['["\\\\u0000"]', None], pa.string_view()),
    "view in a list": pa.array([["a"], None], pa.list_(pa.string_view())),
    "union": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array(["a", "b"]), pa.array([1, 2])]),
}


@pytest.mark.parametrize("name", TYPED_BROKEN)
def test_it_is_found_in_maps_and_views(name: str) -> None:
    assert _has_nul_as_json(TYPED_BROKEN[name])


@pytest.mark.parametrize("name", TYPED_FINE)
def test_maps_and_views_without_one_are_not_refused(name: str) -> None:
    assert not _has_nul_as_json(TYPED_FINE[name])


def test_it_is_found_in_a_column_of_views(pg_url: str) -> None:
    harness = _sink(pg_url, "text")
    views = pa.array(["a", "a\0b"], pa.string_view())
    with pytest.raises(UserCodeError) as raised:
        harness.process(pa.RecordBatch.from_arrays([pa.array([1, 2]), views], names=["id", "b"]))
    assert "column 'b' has a text with the character U+0000" in str(raised.value.__cause__)


@pytest.mark.parametrize("name", ["map", "slice of maps", "map in a struct", "view", "view in a list"])
def test_maps_and_views_are_written_to_jsonb(pg_url: str, name: str) -> None:
    values = TYPED_FINE[name]
    harness = _sink(pg_url, "jsonb")
    harness.process(pa.RecordBatch.from_arrays([pa.array(range(len(values))), values], names=["id", "b"]))
    harness.complete(harness.snapshot())
    assert asked(pg_url, "SELECT count(*) FROM t") == [(len(values),)]
