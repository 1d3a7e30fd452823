"""Plain data there and back, and bytes that are no plain data."""

from __future__ import annotations

import struct
import threading
from collections import Counter, OrderedDict, defaultdict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from http import HTTPStatus
from typing import Any
from uuid import UUID

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.messages import (
    MAX_NESTED,
    AskOperator,
    Heartbeat,
    JobId,
    MalformedMessage,
    Row,
    UnsupportedValue,
    pack_plain,
    row_type,
    unpack_plain,
)

from ..examples import examples
from .samples import Box, Counted, Level, Outer, Point, Positive, Rights, Side, Trade, Tree
from .strategies import messages, plain_values

TUPLE, BIG_INT, SET, ROW, RECORD, DATETIME, TIMEDELTA, DECIMAL, UUID_, COMPLEX, FRACTION = (
    1,
    2,
    3,
    5,
    6,
    7,
    10,
    11,
    12,
    16,
    17,
)


def there_and_back(value: Any) -> Any:
    return unpack_plain(pack_plain(value))


def ext(code: int, content: Any) -> bytes:
    data: bytes = msgpack.packb(msgpack.ExtType(code, msgpack.packb(content, default=_ext_content)))
    return data


def _ext_content(value: Any) -> Any:
    return msgpack.ExtType(TUPLE, msgpack.packb(list(value)))


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = (value,)
    return value


# -- there and back


@given(plain_values())
@example(2**63)
@example(2**64)
@example(-(2**63) - 1)
@example(10**5000)
@example({2**70: [-(2**70)]})
@example("\ud800")
@example(datetime(2026, 1, 1, tzinfo=UTC))
@example(Decimal("-0.0"))
@example(complex(1, float("inf")))
@example(Fraction(-(10**50), 3))
def test_plain_data_comes_back_of_the_same_types(value: Any) -> None:
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_floats_that_are_no_numbers_come_back() -> None:
    nan, inf = there_and_back([float("nan"), float("inf")])
    assert nan != nan
    assert inf == float("inf")
    assert there_and_back(Decimal("NaN")).is_nan()


def test_a_key_keeps_its_hash() -> None:
    for key in (("JFK", 1), frozenset({1, (2, 3)}), Point(1, 2), Trade("A", 1.5), Side.SELL, 2**80):
        assert {key: "found"}[there_and_back(key)] == "found"


@pytest.mark.parametrize(
    "record",
    [
        Trade("A", 1.5, Side.SELL),
        Point(1),
        Side.BUY,
        Level.LOW,
        Outer.Inner(3),
        Box([1, (2, 3)]),
        Tree(Tree(), Tree(right=Tree())),
    ],
    ids=lambda record: type(record).__name__,
)
def test_records_come_back_as_they_were(record: Any) -> None:
    back = there_and_back([record, {"in": record}])
    assert back == [record, {"in": record}]
    assert type(back[0]) is type(record)


def test_fields_that_the_constructor_does_not_take_come_back() -> None:
    counted = Counted(3)
    counted.total = 10
    assert there_and_back(counted).total == 10


@given(messages())
def test_a_message_in_plain_data_comes_back(value: object) -> None:
    assert there_and_back([value, (value,)]) == [value, (value,)]


def test_a_message_in_plain_data_is_checked_like_any_other() -> None:
    forged = pack_plain([Heartbeat("x", 5)]).replace(b"\xa8sequence\x05", b"\xa8sequence\xc3")
    with pytest.raises(MalformedMessage, match=r"Heartbeat\.sequence: wanted int, found bool True"):
        unpack_plain(forged)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(1.5), 1.5),
        (np.int32(-3), -3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2026-01-01T00:00:00", "us"), datetime(2026, 1, 1)),
        (np.datetime64("2026-01-01T00:00:00.000007", "ns"), datetime(2026, 1, 1, microsecond=7)),
        (np.datetime64(-2_000_000, "ps"), datetime(1969, 12, 31, 23, 59, 59, 999_998)),
        (np.timedelta64(-7_000, "ns"), timedelta(microseconds=-7)),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (StrEnum("Colour", ["RED"]).RED, None),  # type: ignore[attr-defined]
        (HTTPStatus.OK, HTTPStatus.OK),
    ],
    ids=repr,
)
def test_what_is_nearly_plain_becomes_plain(value: Any, plain: Any) -> None:
    if plain is None:
        with pytest.raises(UnsupportedValue, match="cannot be found by name elsewhere"):
            pack_plain(value)
        return
    back = there_and_back(value)
    assert (back, type(back)) == (plain, type(plain))


def test_a_row_keeps_the_names_of_its_columns() -> None:
    row = row_type(("origin", "dep delay"))("JFK", 3)
    back = there_and_back(row)
    assert isinstance(back, Row)
    assert (back._columns, tuple(back)) == (("origin", "dep delay"), ("JFK", 3))


# -- what cannot be sent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (object(), "an object cannot be sent or stored"),
        (len, "builtin_function_or_method"),
        (Fraction(1, 2**70_000), "a fraction of more than 65536 bits"),
        (np.datetime64(1, "ns"), "datetime64"),
        (np.datetime64(1_001, "ns"), "no time of Python is 1970-01-01T00:00:00.000001001 of datetime64"),
        (np.timedelta64(1, "ns"), "timedelta64"),
        (np.timedelta64(5), "timedelta64"),
        (np.timedelta64(3, "M"), "timedelta64"),
        (Rights.READ | Rights.WRITE, "Rights"),
        ({"deep": [(1, object())]}, "object"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_plain_data_does_not_know_is_refused(value: Any, text: str) -> None:
    with pytest.raises(UnsupportedValue, match=text):
        pack_plain(value)


def test_what_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    through_tuples: list[Any] = []
    through_tuples.append((through_tuples,))
    through_messages: list[Any] = []
    through_messages.append(AskOperator(JobId("j"), "op", True, through_messages, None, None))
    for value in (loop, through_tuples, through_messages):
        with pytest.raises(UnsupportedValue):
            pack_plain(value)


# -- how deep


def test_what_can_be_sent_can_be_read_however_deep() -> None:
    assert there_and_back(nested(1, MAX_NESTED)) == nested(1, MAX_NESTED)
    with pytest.raises(UnsupportedValue, match="nested deeper"):
        pack_plain(nested(1, MAX_NESTED + 1))
    within = AskOperator(JobId("j"), "op", True, nested(1, MAX_NESTED - 5), None, None)
    assert there_and_back(nested(within, 4)) == nested(within, 4)
    with pytest.raises(UnsupportedValue, match="nested deeper"):
        pack_plain(nested(within, 5))


def test_deep_bytes_are_refused_before_they_use_up_the_stack() -> None:
    """Each level stands on the C stack of the thread that reads; a few hundred would end the process."""
    tuples = messages_within = msgpack.packb([1])
    for _ in range(500):
        tuples = msgpack.packb([msgpack.ExtType(TUPLE, tuples)])
        said = msgpack.packb(["OperatorAnswer", {"answer": messages_within}])
        messages_within = msgpack.packb(msgpack.ExtType(13, said))
    refused: list[str] = []
    for data in (tuples, messages_within):
        reader = threading.Thread(target=lambda data=data: refused.append(_refusal(data)))
        reader.start()
        reader.join()
    assert len(refused) == 2
    assert all("deeper than" in text for text in refused)


# -- bytes that are no plain data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x81\x91\x01\x02",
        ext(99, 1),
        ext(0, 1),
        ext(TUPLE, 5),
        ext(TUPLE, {"a": 1}),
        ext(SET, [[]]),
        ext(SET, [{}]),
        ext(BIG_INT, "9" * 5000),
        ext(BIG_INT, [1]),
        ext(ROW, []),
        ext(ROW, [5, [1]]),
        ext(ROW, [[5], [1]]),
        ext(ROW, [["a"], [1, 2]]),
        ext(ROW, [["a", "b"], [1]]),
        ext(RECORD, []),
        ext(RECORD, ["a:b"]),
        ext(RECORD, [["a"], {}]),
        ext(RECORD, [None, None]),
        ext(DATETIME, "99999-01-01"),
        ext(DATETIME, 5),
        ext(TIMEDELTA, [10**18, 0, 0]),
        ext(TIMEDELTA, ["a"]),
        ext(TIMEDELTA, [float("nan"), 0, 0]),
        ext(DECIMAL, "no number"),
        ext(DECIMAL, [0, [1], 5]),
        ext(UUID_, b"short"),
        ext(UUID_, "sixteen letters!"),
        ext(UUID_, [0] * 16),
        ext(COMPLEX, []),
        ext(COMPLEX, ["1", "2"]),
        ext(COMPLEX, [1.0, 2]),
        ext(FRACTION, [1, 0]),
        ext(FRACTION, [1.0, 2.0]),
        ext(FRACTION, [1]),
        b"\xc7\x0c\xff" + b"\xff" * 12,
        b"\xc7\x01\xff\x00",
        b"\xc7\x0c\xff" + struct.pack("!Iq", 0, -(2**62)),
        b"\xc7\x0c\xff" + struct.pack("!Iq", 0, 2**62),
        b"\xdd\xff\xff\xff\xff",
        (b"\xdd" + struct.pack("!I", 2**20)) * 500,
    ],
    ids=lambda data: data[:12].hex(),
)
def test_bytes_that_are_no_plain_data_are_malformed(data: bytes) -> None:
    assert _refusal(data)


def test_a_timestamp_of_msgpack_is_a_datetime() -> None:
    assert unpack_plain(msgpack.packb(msgpack.Timestamp(0, 1000))) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
        microseconds=1
    )


def test_of_equal_keys_the_last_counts() -> None:
    assert unpack_plain(b"\x83\x01\xa1a\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xa1b\x02\xa1c") == {1: "b", 2: "c"}


@examples(500)
@given(st.binary(max_size=100))
def test_random_bytes_are_plain_or_malformed(data: bytes) -> None:
    _unpack_or_refuse(data)


@examples(500)
@given(
    plain_values()
    | messages()
    | st.sampled_from(
        [Trade("A", 1.5), Point(1), Side.BUY, UUID(int=5), {"a": row_type(("x", "y"))(1, 2)}, Positive(5)]
    ),
    st.data(),
)
def test_damaged_bytes_are_plain_or_malformed(value: Any, data: st.DataObject) -> None:
    damaged = bytearray(pack_plain(value))
    for _ in range(data.draw(st.integers(1, 4), label="flips")):
        bit = data.draw(st.integers(0, len(damaged) * 8 - 1), label="bit")
        damaged[bit // 8] ^= 1 << bit % 8
    _unpack_or_refuse(bytes(damaged))


def _refusal(data: bytes) -> str:
    try:
        found = unpack_plain(data)
    except MalformedMessage as error:
        return str(error)
    raise AssertionError(f"read as {found!r:.100}")


def _unpack_or_refuse(data: bytes) -> None:
    """What was read is plain data: it can be packed and read again."""
    try:
        found = unpack_plain(data)
    except MalformedMessage:
        return
    assert unpack_plain(pack_plain(found)) == found or "nan" in repr(found).lower()


def test_a_time_of_pandas_without_nanoseconds_is_pythons() -> None:
    """Also one that a program makes itself, or that a list of Arrow holds."""
    pd = pytest.importorskip("pandas")
    berlin = timezone(timedelta(hours=1))
    given = {
        "at": pd.Timestamp("2026-01-02 03:04:05.000006"),
        "zoned": pd.Timestamp("2026-01-02 03:04:05", tz="Europe/Berlin"),
        "took": pd.Timedelta(days=-1, microseconds=7),
        "none": [pd.NaT],
    }
    back = there_and_back(given)
    assert back == {
        "at": datetime(2026, 1, 2, 3, 4, 5, 6),
        "zoned": datetime(2026, 1, 2, 3, 4, 5, tzinfo=berlin),
        "took": timedelta(days=-1, microseconds=7),
        "none": [None],
    }
    assert [type(back[name]) for name in ("at", "zoned", "took")] == [datetime, datetime, timedelta]
    for finer in (pd.Timestamp(1), pd.Timestamp(1, tz="UTC"), pd.Timedelta(1)):
        with pytest.raises(UnsupportedValue, match="it has nanoseconds"):
            pack_plain(finer)
