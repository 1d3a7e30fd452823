"""Scripts that are played on compiled and on interpreted state alike, and what is read afterwards."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st

from understudy.messages import CheckpointId, KeyedStateHandle
from understudy.state.backends.backend import KeyedStateBackend
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.checkpoints.assignment import cut_handle
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.kinds.descriptors import ReducingState, ValueState

MAX_PARALLELISM = 16


class Extent(NamedTuple):
    least: int
    greatest: float


class Declared:
    """One state of each shape."""

    seen = ValueState(tuple, default=(0, 0.0, False))
    last = ValueState(float)
    flag = ValueState(bool, default=False)
    extent = ValueState(Extent, default=Extent(0, 0.0))
    total = ReducingState(tuple[int, float], lambda held, added: (max(held[0], added[0]), held[1] + added[1]))


STATES: dict[str, Any] = {name: held for name, held in vars(Declared).items() if not name.startswith("_")}

INTEGERS = st.integers(-3, 300) | st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats()
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "seen": st.tuples(INTEGERS, FLOATS, st.booleans()),
    "last": FLOATS,
    "flag": st.booleans(),
    "extent": st.builds(Extent, INTEGERS, FLOATS),
    "total": st.tuples(INTEGERS, FLOATS),
}


@dataclass(frozen=True)
class KeyKind:
    """Keys of one type: those of batches in columns of these types."""

    types: Sequence[pa.DataType]
    keys: st.SearchStrategy[Any]

    def columns(self, keys: Sequence[Any]) -> list[pa.Array]:
        parts = [keys] if len(self.types) == 1 else list(zip(*keys, strict=True)) or [()] * len(self.types)
        return [pa.array(part, kind) for part, kind in zip(parts, self.types, strict=True)]


TEXTS = st.sampled_from(["", "JFK", "LGA", "Ødegård", "x" * 600]) | st.text(max_size=3).filter(str.isprintable)
KEY_KINDS = {
    "int64": KeyKind([pa.int64()], INTEGERS),
    "int16": KeyKind([pa.int16()], st.integers(-40, 40)),
    "uint64": KeyKind([pa.uint64()], st.integers(0, 2**64 - 1)),
    "float64": KeyKind([pa.float64()], st.sampled_from([0.0, -0.0, 1.0, 1.5]) | st.floats(allow_nan=False)),
    "float32": KeyKind([pa.float32()], st.floats(width=32, allow_nan=False)),
    "bool": KeyKind([pa.bool_()], st.booleans()),
    "text": KeyKind([pa.string()], TEXTS),
    "large text": KeyKind([pa.large_string()], TEXTS),
    "texts of a dictionary": KeyKind([pa.dictionary(pa.int32(), pa.string())], TEXTS),
    "bytes": KeyKind([pa.binary()], st.binary(max_size=3)),
    "date": KeyKind([pa.date32()], st.dates(date(1960, 1, 1), date(2030, 1, 1))),
    "timestamp": KeyKind([pa.timestamp("us")], st.datetimes(datetime(1960, 1, 1), datetime(2030, 1, 1))),
    "decimal": KeyKind([pa.decimal128(9, 2)], st.integers(-500, 500).map(lambda cents: Decimal(cents).scaleb(-2))),
    "narrow decimal": KeyKind([pa.decimal32(7, 2)], st.integers(-50, 50).map(lambda cents: Decimal(cents).scaleb(-2))),
    "uuid": KeyKind([pa.uuid()], st.integers(0, 20).map(lambda number: UUID(int=number))),
    "text and int": KeyKind([pa.string(), pa.int64()], st.tuples(TEXTS, st.integers(0, 3))),
    "three": KeyKind([pa.int32(), pa.bool_(), pa.string()], st.tuples(st.integers(0, 2), st.booleans(), TEXTS)),
}

Change = tuple[Any, str, Any]
"""(key, state, value); the value None clears."""
Script = list[tuple[bool, list[Change]]]
"""Batches; one that is True comes in columns."""


def scripts(kind: KeyKind) -> st.SearchStrategy[Script]:
    change = st.sampled_from(sorted(STATES)).flatmap(
        lambda state: st.tuples(kind.keys, st.just(state), st.none() | VALUES[state])
    )
    return st.lists(st.tuples(st.booleans(), st.lists(change, max_size=12)), max_size=4)


def play(backend: KeyedStateBackend, script: Script, kind: KeyKind) -> None:
    """All of it on this backend."""
    for declared in STATES.values():
        backend.state(declared)
    for in_columns, batch in script:
        if in_columns and isinstance(backend, SlotBackend):
            _write_in_columns(backend, batch, kind)
        else:
            for key, state, value in batch:
                backend.current_key = key
                accessor = backend.state(STATES[state])
                if value is None:
                    accessor.clear()
                elif state == "total":
                    accessor.add(value)
                else:
                    accessor.update(value)


def _write_in_columns(backend: SlotBackend, batch: Iterable[Change], kind: KeyKind) -> None:
    """What a compiled function does."""
    changes = list(batch)
    slots = backend.slots_of(kind.columns([key for key, _, _ in changes]))
    for slot, (_, state, value) in zip(slots.tolist(), changes, strict=True):
        columns = backend.columns(STATES[state])
        if value is None:
            columns.present[slot] = False
            continue
        if state == "total" and columns.present[slot]:
            value = Declared.total.reduce(tuple(column[slot].item() for column in columns.values), value)
        columns.present[slot] = True
        for column, item in zip(columns.values, value if columns.is_tuple else (value,), strict=True):
            column[slot] = item


def typed(value: Any) -> Any:
    """Tells 1, 1.0 and True apart, and 0.0 and -0.0; all NaNs are one."""
    if isinstance(value, tuple):
        return (type(value).__name__, *map(typed, value))
    return (type(value).__name__, repr(value))


def reads(backend: KeyedStateBackend, keys: Iterable[Hashable]) -> dict[Any, Any]:
    """What every key holds, by state; keys that hold nothing are left out."""
    found = {}
    for key in keys:
        backend.current_key = key
        held = {}
        for name, declared in STATES.items():
            accessor = backend.state(declared)
            held[name] = typed(accessor.get() if name == "total" else accessor.value())
        found[key] = held
    return found


def keys_of(script: Script) -> list[Any]:
    return list(dict.fromkeys(key for _, batch in script for key, _, _ in batch))


def written(backend: KeyedStateBackend) -> list[KeyedStateHandle]:
    handle = backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    return [] if handle is None else [handle]


def compiled(key_groups: range = range(MAX_PARALLELISM)) -> SlotBackend:
    return SlotBackend(key_groups[0], key_groups[-1], MAX_PARALLELISM)


def interpreted(key_groups: range = range(MAX_PARALLELISM)) -> HeapBackend:
    return HeapBackend(key_groups[0], key_groups[-1], MAX_PARALLELISM)


def restored_into(backend: Any, handles: Sequence[KeyedStateHandle]) -> Any:
    """The backend, with its own share of these."""
    shares = [share for handle in handles if (share := cut_handle(handle, backend.key_groups)) is not None]
    backend.restore(shares, lambda handle: handle.data or b"")
    return backend


def filled(keys: Iterable[Any], value: Any = 1, kind: pa.DataType | None = None) -> SlotBackend:
    """With an int, called "held", for each of these keys, which came in one column."""
    backend = compiled()
    declared = ValueState(int, default=0, name="held")
    backend.state(declared)
    slots = backend.slots_of([pa.array(list(keys), kind)])
    columns = backend.columns(declared)
    columns.present[slots], columns.values[0][slots] = True, value
    return backend
