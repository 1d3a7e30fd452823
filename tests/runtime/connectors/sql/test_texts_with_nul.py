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
