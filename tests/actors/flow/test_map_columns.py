"""Maps of Arrow as records have them: dicts, however deep they lie."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.flow.map_columns import with_dicts
from understudy.actors.flow.records import RecordMismatch, batch_of, rows_of, values_of

TEXTS = pa.map_(pa.string(), pa.int64())
POINT = pa.struct([("x", pa.int64())])

KINDS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "of texts": (TEXTS, [[("a", 1), ("b", None)], None, []], [{"a": 1, "b": None}, None, {}]),
    "of dates": (pa.map_(pa.date32(), pa.string()), [[(date(2024, 1, 1), "x")]], [{date(2024, 1, 1): "x"}]),
    "of maps": (pa.map_(pa.string(), TEXTS), [[("a", [("b", 2)]), ("c", None)]], [{"a": {"b": 2}, "c": None}]),
    "in a list": (pa.list_(TEXTS), [[[("a", 1)], None], None], [[{"a": 1}, None], None]),
    "in a large list": (pa.large_list(TEXTS), [[[("a", 1)]]], [[{"a": 1}]]),
    "in a list of one size": (pa.list_(TEXTS, 1), [[[("a", 1)]]], [[{"a": 1}]]),
    "in a struct": (
        pa.struct([("m", TEXTS), ("n", pa.int64())]),
        [{"m": [("a", 1)], "n": 2}, None],
        [{"m": {"a": 1}, "n": 2}, None],
    ),
    "of structs": (pa.map_(pa.string(), POINT), [[("a", {"x": 1})]], [{"a": {"x": 1}}]),
    "whose keys no dict can have": (
        pa.map_(POINT, TEXTS),
        [[({"x": 1}, [("a", 1)])]],
        [[({"x": 1}, {"a": 1})]],
    ),
    "no map": (pa.list_(POINT), [[{"x": 1}]], [[{"x": 1}]]),
    "a number": (pa.int64(), [1, None], [1, None]),
}


@pytest.mark.parametrize(("kind", "pairs", "dicts"), KINDS.values(), ids=KINDS)
def test_a_map_is_a_dict_and_becomes_the_same_map_again(kind: pa.DataType, pairs: list[Any], dicts: list[Any]) -> None:
    column = pa.array(pairs, kind)
    assert values_of(column) == dicts
    assert [each.column for each in rows_of(pa.record_batch({"column": column}))] == dicts
    assert with_dicts(pa.record_batch({"column": column})) == [{"column": each} for each in dicts]
    again = batch_of([{"column": each} for each in dicts], pa.schema([("column", kind)])).column("column")
    assert again.to_pylist() == column.to_pylist()


def test_a_row_of_a_map_spread_out_has_a_dict() -> None:
    (row,) = rows_of(pa.record_batch({"prices": pa.array([[("lamp", 3)]], TEXTS)}))
    assert {**row} == {"prices": {"lamp": 3}}
    assert row["prices"]["lamp"] == 3


def test_a_map_with_a_key_twice_is_refused_as_a_dict_would_lose_one() -> None:
    with pytest.raises(RecordMismatch, match=r"a map has the key 'a' twice, .*map_entries"):
        values_of(pa.array([[("a", 1), ("b", 2), ("a", 3)]], TEXTS))
