"""A NUL in a text, which PostgreSQL refuses and SQLite takes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.errors import UserCodeError
from understudy.actors.flow.records import RecordMismatch
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
