"""RowKeys: the bytes under which RocksDB keeps one key's value of one state and namespace.

    key group (2 bytes, big-endian) | number of the state (2 bytes) | namespace and key as plain data

So the rows of a key group stand together, which is what a rescale reads and removes, and in it those of a state. Keys
that are equal to Python get one row, as they get one entry of a dict: `canonical` makes them alike. The key itself is
kept with the value where it is not its canonical form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import isnan
from struct import Struct
from typing import Any, Final
from uuid import UUID

import msgpack
import numpy as np

from ...messages import full_name, pack_plain, shape_of, unpack_plain
from ..backends.backend import NO_NAMESPACE
from ..errors import StateNotStorable
from ..keys.key_groups import key_group, key_groups_of_list
from ..keys.key_hash import same_nan
from ..kinds.record_serializer import TypeNode

_PREFIX: Final = Struct(">HH")
PREFIX_BYTES: Final = _PREFIX.size

_AS_IT_IS: Final = frozenset({int, str, bytes, UUID, date, timedelta, type(None)})
_FAST: Callable[[Any], bytes] = msgpack.Packer(strict_types=True).pack


def pack(value: Any) -> bytes:
    """The same as `pack_plain`, quicker for what msgpack knows by itself. Raises UnsupportedValue."""
    try:
        return _FAST(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return pack_plain(value)


def packed_each(values: Sequence[Any]) -> list[bytes]:
    """`pack` for each."""
    try:
        return list(map(_FAST, values))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return list(map(pack, values))


def canonical(key: Any) -> Any:
    """What equal keys have in common; the key itself where that is it. Lists in it tag what else would be a tuple."""
    kind = type(key)
    if kind in _AS_IT_IS:
        return key
    if kind is tuple:
        parts = [canonical(part) for part in key]
        return key if all(map(_is, parts, key)) else tuple(parts)
    if kind is float:
        return int(key) if key.is_integer() else key
    return _simplest(key)


def _simplest(key: Any) -> Any:
    if isinstance(key, np.generic):
        return canonical(key.item())
    for base, simplify in _SIMPLIFY.items():
        if isinstance(key, base):
            return simplify(key)
    if isinstance(key, Enum):
        return ["enum", full_name(type(key)), key.name]
    shape = shape_of(type(key))
    fields = [] if shape is None else shape.compared
    values = (getattr(key, name) if of is None else of(getattr(key, name)) for name, of in fields)
    return ["record", full_name(type(key)), *map(canonical, values)]


def _is(one: Any, other: Any) -> bool:
    return one is other


def _number(value: Decimal | Fraction) -> Any:
    if isinstance(value, Decimal) and not value.is_finite():
        return float(value)
    if value == int(value):
        return int(value)
    try:
        if (as_float := float(value)) == value and not isnan(as_float):
            return as_float
    except OverflowError:  # too large for a float
        pass
    return Fraction(value)


def _moment(value: datetime) -> datetime:
    return value if value.utcoffset() is None else value.astimezone(UTC)


def _time_of_day(value: time) -> Any:
    offset = value.utcoffset()
    if offset is None:
        return value
    since = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return ["time", (since - offset) // timedelta(microseconds=1)]


_SIMPLIFY: Final[dict[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int,
    tuple: lambda value: tuple(map(canonical, value)),
    float: lambda value: canonical(float(value)),
    bytes: bytes,
    datetime: _moment,
    date: lambda value: value,
    time: _time_of_day,
    Decimal: _number,
    Fraction: _number,
    frozenset: lambda value: ["set", *sorted(pack(canonical(item)) for item in value)],
}


class RowKeys:
    """Those of one operator subtask. `key_node`: the type of its keys."""

    def __init__(self, key_groups: range, max_parallelism: int, key_node: TypeNode) -> None:
        self.key_groups = key_groups
        self.max_parallelism = max_parallelism
        self._encode_key = key_node.encode
        self._decode_key = key_node.decoder(key_node.schema)
        self._first, self._end = group_prefix(key_groups[0]), group_prefix(key_groups[-1] + 1)
        self._prefixes: dict[Hashable, bytes] = {NO_NAMESPACE: b"\x92" + pack_plain(NO_NAMESPACE)}

    def row(self, state: int, namespace: Hashable, key: Any) -> bytes:
        """Raises InvalidKey."""
        group = key_group(key, self.max_parallelism)
        return _PREFIX.pack(group, state) + self.namespace_prefix(namespace) + pack(self.stored(key))

    def rows(self, state: int, namespace: Hashable, keys: Sequence[Any]) -> list[bytes]:
        """The same for many keys."""
        groups = key_groups_of_list(keys, self.max_parallelism).tolist()
        tail = self.namespace_prefix(namespace)
        heads = {group: _PREFIX.pack(group, state) + tail for group in set(groups)}
        stored = keys if self.are_stored(keys) else [self.stored(key) for key in keys]
        return [heads[group] + raw for group, raw in zip(groups, packed_each(stored), strict=True)]

    def check_own(self, rows: Sequence[bytes]) -> None:
        """That all belong to this subtask's key groups. Raises StateNotStorable."""
        if not rows or (min(rows) >= self._first and max(rows) < self._end):
            return
        row = next(row for row in rows if not self._first <= row < self._end)
        key, own = unpack_plain(row[PREFIX_BYTES:])[1], self.key_groups
        raise StateNotStorable(
            f"key {key!r:.60} is of key group {place_of(row)[0]}, and this subtask owns {own[0]} to {own[-1]}: it was "
            "used without being this record's key"
        )

    def are_stored(self, keys: Sequence[Any]) -> bool:
        """Whether each of these is what stands for it in its row; of some that are, it says no."""
        return self._encode_key is None and _AS_IT_IS.issuperset(map(type, keys))

    def stored(self, key: Any) -> Any:
        """What stands for the key in its row."""
        return canonical(self.encoded(key))

    def encoded(self, key: Any) -> Any:
        """The key as plain data."""
        return key if self._encode_key is None else self._encode_key(key)

    def decoded(self, stored: Any) -> Any:
        """The opposite."""
        return same_nan(stored if self._decode_key is None else self._decode_key(stored))

    def namespace_prefix(self, namespace: Hashable) -> bytes:
        """What follows the number of the state in all rows of a namespace."""
        return self._prefixes.get(namespace) or b"\x92" + pack(canonical(namespace))

    def timer_row(self, state: int, time_ms: int, key: Any, namespace: Hashable) -> bytes:
        """A key may have many timers, and each is a row. Raises as `row`."""
        return self.row(state, (time_ms, namespace), key)


def group_prefix(group: int, state: int | None = None) -> bytes:
    """What the rows of a key group, and of a state in it, begin with."""
    return group.to_bytes(2, "big") if state is None else _PREFIX.pack(group, state)


def end_of(prefix: bytes) -> bytes:
    """Sorts behind every row with this prefix, and before all others that sort behind it."""
    shorter = prefix.rstrip(b"\xff")
    assert shorter, "no prefix of rows consists of 0xff alone"
    return shorter[:-1] + bytes([shorter[-1] + 1])


def place_of(row: bytes) -> tuple[int, int]:
    """Key group and number of the state of a row."""
    group, state = _PREFIX.unpack_from(row)
    return group, state
