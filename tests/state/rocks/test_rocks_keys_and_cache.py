"""Keys that are equal have one row, and what is held as objects never shows: with a cache of a few entries, too."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.messages import CheckpointId
from understudy.state.backends.private_copy import MISSING
from understudy.state.errors import StateNotStorable, WrongStateType
from understudy.state.keys.key_groups import key_group
from understudy.state.kinds.descriptors import FoldingState, ListState, MapState, ReducingState, ValueState
from understudy.state.kinds.record_serializer import node_of
from understudy.state.rocks import cached_rows
from understudy.state.rocks.cached_rows import CachedRows
from understudy.state.rocks.memory import RocksMemory
from understudy.state.rocks.rocks_backend import RocksBackend
from understudy.state.rocks.rocks_state import RocksState
from understudy.state.rocks.row_codec import RowCodec
from understudy.state.rocks.row_keys import RowKeys, end_of, group_prefix, place_of
from understudy.state.rocks.store import StoreOptions

from ...examples import examples

ROWS = RowKeys(range(128), 128, node_of(Any))


class Color(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    A = "a"


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EQUAL = [
    (1, 1.0, True, Decimal(1), Fraction(1), np.int64(1), Number.ONE),
    (0, -0.0, False),
    (0.5, Decimal("0.50"), Fraction(1, 2), np.float32(0.5)),
    (2**70, float(2**70), Decimal(2**70)),
    ("a", Word.A, np.str_("a")),
    ((1, "x"), (1.0, "x"), Pair(True, "x")),
    (frozenset({1, 2, 300}), frozenset({300.0, 2, 1})),
    (NOON, NOON.astimezone(timezone(timedelta(hours=5)))),
    (Point(1, (2,)), Point(1.0, (2.0,))),
    (float("nan"), np.float64("nan")),
    (time(12, tzinfo=UTC), time(13, tzinfo=timezone(timedelta(hours=1)))),
]
DIFFERENT = [1, 1.5, "1", b"1", (1,), ((1,),), frozenset({1}), Point(1, 2), Pair(1, 2), ("set", b"\x01"), Color.RED]
DIFFERENT += ["RED", date(2026, 1, 1), datetime(2026, 1, 1), NOON, timedelta(1), UUID(int=1), 2**70, time(12)]
DIFFERENT += [datetime(2026, 1, 1, 12), Decimal("0.1"), 0.1, ("record", "Point", 1, 2), 2**64, -1, 1e300]


@pytest.mark.parametrize("keys", EQUAL, ids=repr)
def test_equal_keys_have_one_row(keys: tuple[Any, ...]) -> None:
    assert len({ROWS.row(3, (), key) for key in keys}) == 1
    assert set(ROWS.rows(3, (), keys)) == {ROWS.row(3, (), keys[0])}


def test_keys_that_are_not_equal_have_rows_of_their_own() -> None:
    assert len(set(ROWS.rows(3, (), DIFFERENT))) == len(DIFFERENT)


def test_a_row_begins_with_its_key_group() -> None:
    for key in DIFFERENT:
        row = ROWS.row(7, (0, 10), key)
        assert place_of(row) == (key_group(key, 128), 7)
        prefix = group_prefix(key_group(key, 128), 7)
        assert prefix <= row < end_of(prefix)


def test_the_end_of_a_prefix_sorts_behind_all_of_it() -> None:
    assert end_of(b"\x00\xff") == b"\x01"
    assert end_of(b"\x00\x01") == b"\x00\x02"


# --- the cache


class _Store:
    """Rows in a dict."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}

    def get(self, row: bytes) -> bytes | None:
        return self.rows.get(row)

    def get_many(self, rows: list[bytes]) -> list[bytes | None]:
        return [self.rows.get(row) for row in rows]

    def write(self, changes: list[tuple[bytes, bytes | None]]) -> None:
        for row, value in changes:
            if value is None:
                self.rows.pop(row, None)
            else:
                self.rows[row] = value


def _cached(store: _Store) -> CachedRows:
    codec = RowCodec(None, None)
    return CachedRows(
        store,  # type: ignore[arg-type]
        RocksMemory(8),
        lambda keys: ROWS.rows(0, (), list(keys)),
        ROWS.check_own,
        lambda _, held: codec.packed_each(held),
        codec.held,
    )


@pytest.fixture
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_rows, "GENERATION_ENTRIES", 3)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["get", "set", "append", "delete", "pop", "read ahead", "write back"]),
        st.integers(0, 9),
        st.integers(0, 5),
    ),
    max_size=60,
)

BACK = ("write back", 0, 0)
GONE_AND_THE_SAME_AGAIN = [("append", 0, 1), BACK, ("delete", 0, 0), BACK, ("append", 0, 1), BACK]
OTHERS = [("get", key, 0) for key in range(1, 8)]
CHANGED_IN_PLACE_AND_DROPPED = [("append", 0, 1), *OTHERS, ("append", 0, 2), *OTHERS]
DELETED_UNREAD_BESIDE_A_LIST = [("set", 0, 1), *OTHERS, ("append", 8, 1), BACK, ("delete", 0, 0), BACK]


@pytest.mark.usefixtures("_tiny")
@examples(200)
@given(script=OPERATIONS)
@example(script=GONE_AND_THE_SAME_AGAIN)
@example(script=CHANGED_IN_PLACE_AND_DROPPED)
@example(script=DELETED_UNREAD_BESIDE_A_LIST)
def test_a_cache_of_three_entries_is_a_dict(script: list[tuple[str, int, int]]) -> None:
    store, codec, model = _Store(), RowCodec(None, None), dict[int, Any]()
    rows = _cached(store)
    for what, key, argument in script:
        match what:
            case "get":
                assert rows.get(key, "none") == model.get(key, "none")
            case "set":
                rows[key] = model[key] = argument
            case "append":
                held = rows.get(key)
                if isinstance(held, list):
                    held.append(argument)
                    model[key] = [*model[key], argument]
                else:
                    rows[key] = [argument]
                    model[key] = [argument]
            case "delete":
                del rows[key]
                model.pop(key, None)
            case "pop":
                assert rows.pop(key, MISSING) == model.pop(key, MISSING)
            case "read ahead":
                rows.read_ahead(range(key, key + argument))
            case "write back":
                rows.write_back()
                assert {row: codec.held(raw) for row, raw in store.rows.items()} == {
                    ROWS.row(0, (), each): held for each, held in model.items()
                }
    assert {key: rows.get(key, MISSING) for key in range(10)} == {key: model.get(key, MISSING) for key in range(10)}


def test_what_is_dropped_while_others_are_read_ahead_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """And then a change in place is noticed."""
    monkeypatch.setattr(cached_rows, "GENERATION_ENTRIES", 4)
    rows = _cached(_Store())
    for key in range(4):  # a generation, which is the older one then
        rows[key] = [key]
    for key in range(4, 7):
        rows[key] = [key]
    rows.read_ahead([0, 1])  # with the first of these the younger one is full
    rows.get(1).append("more")
    for key in range(10, 20):
        rows.get(key)
    assert [rows.get(key) for key in (0, 1, 2, 6)] == [[0], [1, "more"], [2], [6]]


@pytest.fixture
def backend() -> Iterator[RocksBackend]:
    backend = RocksBackend(0, 15, 16, StoreOptions.temporary(RocksMemory(8)))
    yield backend
    backend.close()


NUMBER, NUMBERS = ValueState(int, name="number", default=0), ListState(int, name="numbers")


@pytest.mark.usual_sizes
def test_reading_ahead_spares_the_waits_for_single_rows(backend: RocksBackend) -> None:
    state: Any = backend.state(NUMBER)
    for key in range(100):
        backend.current_key = key
        state.update(key)
    backend.snapshot(CheckpointId(1))
    state.drop()
    backend.current_key = 0
    assert state.value() == 0
    waited = state._in_default.misses
    backend.read_ahead(list(range(100)))
    for key in range(100):
        backend.current_key = key
        assert state.value() == key
    assert state._in_default.misses == waited


def test_the_keys_that_come_back_are_those_that_were_used(backend: RocksBackend) -> None:
    state: Any = backend.state(NUMBER)
    for key in (True, 2.0, Decimal("0.5"), Point(1, 2), "x"):
        backend.current_key = key
        state.update(1)
    assert sorted(map(repr, backend.each_key())) == sorted(map(repr, (True, 2.0, Decimal("0.5"), Point(1, 2), "x")))
    backend.current_key = 1
    assert state.value() == 1


def test_a_wrong_type_inside_a_value_fails_the_snapshot_with_its_key(backend: RocksBackend) -> None:
    state: Any = backend.state(ValueState(list[int], name="lists"))
    backend.operator_name = "count"
    backend.current_key = "JFK"
    state.update([1, "x"])
    with pytest.raises(WrongStateType, match=r"operator 'count': state 'lists' .*found str 'x' at \[1\] for key 'JFK'"):
        backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    state.update([1])
    backend.snapshot(CheckpointId(2))


def test_a_value_that_is_no_plain_data_fails_the_snapshot_with_its_state(backend: RocksBackend) -> None:
    state: Any = backend.state(ValueState(object, name="anything"))
    backend.current_key = "JFK"
    state.update(object())
    with pytest.raises(StateNotStorable, match="state 'anything': key 'JFK'"):
        backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]


def test_a_key_of_another_subtask_can_be_read_and_not_written(backend: RocksBackend) -> None:
    own = RocksBackend(0, 3, 16, StoreOptions.temporary(RocksMemory(8)))
    state: Any = own.state(NUMBER)
    own.current_key = next(key for key in range(100) if key_group(key, 16) == 9)
    assert state.value() == 0
    state.update(1)
    with pytest.raises(StateNotStorable, match="is of key group 9, and this subtask owns 0 to 3"):
        own.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    own.close()


def test_keys_are_counted_without_a_list_of_them(backend: RocksBackend) -> None:
    keys = 20_000
    state: Any = backend.state(NUMBER)
    for key in range(keys):
        backend.current_key = f"a key that takes some bytes, number {key}"
        state.update(key)
    backend.snapshot(CheckpointId(1))
    gc.collect()
    tracemalloc.start()
    try:
        assert backend.key_count("number") == keys
        counted = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert len(backend.keys("number")) == keys
        listed = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert counted < listed / 4


@pytest.mark.parametrize("kind", [ValueState, ListState, MapState, ReducingState, FoldingState])
def test_nothing_of_the_backend_hides_a_method_that_users_call(kind: type) -> None:
    """`is_empty` of a MapState was that of the whole state."""
    of_users = {name for name in dir(kind) if not name.startswith("_")}
    assert of_users & vars(RocksState).keys() <= {"set_namespace"}
