"""An error says where in a value that stands which does not travel, however the value is built."""

from __future__ import annotations

import io
import socket
import sqlite3
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.messages import UnsupportedValue, pack_plain, refusal_of, row_type

from .samples import Box, Point, Trade


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def deep_list(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def loop() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["again"] = [made]
    return made


def boxed(depth: int) -> Any:
    made = Box(1)
    for _ in range(depth):
        made = Box(made)
    return made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"items": [1, 2, 3, Box(object())]}, "at ['items'][3].content: an object cannot be sent or stored"),
        (object(), "an object cannot be sent or stored"),
        ([Point(1, Rude())], "at [0].y: a "),  # type: ignore[arg-type]
        (row_type(("a", "b"))(1, [len]), "at .b[0]: a builtin_function_or_method"),
        ({(1, len): 2}, "at  key (1, <built-in function len>)[1]: a builtin_function"),
        ({1, frozenset({len})}, "a builtin_function_or_method"),
        ([np.array([len])], "at [0]: a NumPy array of dtype object"),
        (deep_list(100_000), "lists or dicts are nested deeper than 500"),
        (loop(), "at ['again'][0]: a dict contains itself"),
        (boxed(50), "tuples, sets or records are nested deeper than 32"),
        ([Trade("A", 10**5000)], ""),
        ([Trade("A", 10**5000), len], "at [1]: "),
    ],
    ids=range(12),
)
def test_a_refusal_says_where_what_and_why(value: Any, text: str) -> None:
    why = refusal_of(value)
    assert text in (why or "")
    assert bool(why) is bool(text)
    if text:
        with pytest.raises(UnsupportedValue) as caught:
            pack_plain(value)
        assert text in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [threading.Lock, threading.RLock, threading.Event, socket.socket, io.StringIO, lambda: sqlite3.connect(":memory:")],
)
def test_what_belongs_to_a_process_is_to_be_made_in_open(make: Any) -> None:
    text = str(refusal_of({"held": (value := make())}))
    assert "cannot be sent or stored" in text
    assert "Make it in the operator's open()" in text
    assert "dataclass" not in text
    if hasattr(value, "close"):
        value.close()


def test_a_refusal_of_a_type_says_what_is_allowed_and_how_to_add_to_it() -> None:
    why = refusal_of([object()]) or ""
    assert "allowed are None, bool, int" in why
    assert "understudy.register_serializer" in why


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [(pa.timestamp("ns"), 'pa.timestamp("us")'), (pa.duration("ns"), 'pa.duration("us")')],
)
def test_a_time_finer_than_pythons_says_what_to_cast_its_column_to(kind: pa.DataType, wanted: str) -> None:
    """As a column of nanoseconds has them where pandas is installed; Python's own go to microseconds."""
    pytest.importorskip("pandas")
    why = refusal_of([pa.array([1], kind)[0].as_py()]) or ""
    assert f"it has nanoseconds, and Python's go to microseconds: cast its column to {wanted}" in why


def test_the_way_into_a_deep_record_is_cut_short() -> None:
    assert len(refusal_of(deep_list(100_000)) or "") < 200


def test_what_contains_itself_only_by_turns_is_no_loop() -> None:
    shared = [1]
    assert refusal_of([shared, shared, {"a": shared}]) is None
