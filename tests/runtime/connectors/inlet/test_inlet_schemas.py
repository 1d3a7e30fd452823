"""Records in the log of an inlet whose schema is another one by now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy.messages import CheckpointId, pack_plain
from understudy.runtime.connectors import InletSchemaChanged, SentRecords, columns_to_bytes

from .stage import Stage

OLD = pa.schema([("customer", pa.string()), ("cents", pa.int32())])


def under_the_old_schema(folder: Path) -> dict[str, Any]:
    """Of four records, the state holds one to be emitted, another is behind its mark in the same segment, and one is in
    a segment that follows. Of each kind one is packed.
    """
    stage = Stage(folder, schema=OLD)
    stage.sent(SentRecords("a", 1, 1, False, pack_plain(["ann", 1])))
    offset = stage.source.offset()
    batch = pa.record_batch([["bob", "cid"], [2, 3]], schema=OLD)
    stage.sent(SentRecords("a", 2, 2, True, columns_to_bytes(batch)))
    stage.source.on_checkpoint(CheckpointId(1))
    stage.settle()
    stage.sent(SentRecords("a", 4, 1, False, pack_plain(["dot", 4])))
    return offset


def rows_emitted(stage: Stage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while isinstance(batch := stage.source.poll(), pa.RecordBatch):
        assert batch.schema.equals(stage.source.schema)
        found += batch.to_pylist()
        stage.settle()
    return found


@pytest.mark.parametrize("has_state", [True, False], ids=["from a checkpoint", "from the log alone"])
def test_records_of_an_older_schema_are_converted_by_the_names_of_their_columns(
    tmp_path: Path, has_state: bool
) -> None:
    offset = under_the_old_schema(tmp_path) if has_state else under_the_old_schema(tmp_path) and None
    new = pa.schema([("cents", pa.int64()), ("shop", pa.string()), ("customer", pa.string())])
    again = Stage(tmp_path, attempt=1, offset=offset, schema=new)
    later = again.source.offset()
    wanted = [
        {"cents": cents, "shop": None, "customer": name} for cents, name in enumerate(("ann", "bob", "cid", "dot"), 1)
    ]
    assert rows_emitted(again) == wanted
    again.sent(SentRecords("a", 5, 1, False, pack_plain([5, "mall", "eve"])))
    third = Stage(tmp_path, attempt=2, offset=later, schema=new)
    assert rows_emitted(third) == [*wanted, {"cents": 5, "shop": "mall", "customer": "eve"}]


@pytest.mark.parametrize("has_state", [True, False], ids=["from a checkpoint", "from the log alone"])
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (pa.schema([("customer", pa.string()), ("cents", pa.list_(pa.int64()))]), "column 'cents'"),
        (pa.schema([("customer", pa.string())]), "extra cents"),
        (pa.schema([*OLD, pa.field("shop", pa.string(), nullable=False)]), "missing shop"),
        (None, "without one are not converted"),
    ],
    ids=["other type", "fewer", "not null", "none"],
)
def test_records_of_another_schema_that_do_not_fit_are_named(
    tmp_path: Path, has_state: bool, schema: pa.Schema | None, says: str
) -> None:
    offset = under_the_old_schema(tmp_path) if has_state else under_the_old_schema(tmp_path) and None
    with pytest.raises(InletSchemaChanged, match=says) as caught:
        Stage(tmp_path, attempt=1, offset=offset, schema=schema)
    assert "have the columns customer: string, cents: int32; its schema wants" in str(caught.value)
    assert [row["cents"] for row in rows_emitted(Stage(tmp_path, attempt=2, offset=offset, schema=OLD))] == [1, 2, 3, 4]
