"""SlotView: one state in columns as it was at the barrier, for a SnapshotWriter; and how keys lie in snapshots.

The format is that of state in dicts (keyed_snapshot.py), so a savepoint of one is restored by the other. Key groups of
keys, their order and the bytes of the keys are kept from snapshot to snapshot while no key is new; the remaining
work is narrowing each column, bringing it into that order and cutting it. All of it runs without the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import pack_plain
from ..backends.backend import NO_NAMESPACE
from ..backends.keyed_snapshot import RUN_KEYS
from ..columns.column_values import narrowed
from ..columns.packed_columns import Column, packed
from ..keys.word_table import Slots
from ..kinds.record_serializer import Convert
from ..kinds.schema_fit import Schema
from .slot_groups import Groups, SlotGroups, shares_of
from .slot_keys import AnyKeys
from .slot_states import FrozenColumns, SlotState

_PAYLOAD_HEAD = b"\x93" + pack_plain(NO_NAMESPACE)
"""A payload is a list of three; what follows are keys and values, each packed by itself."""


class _Share(NamedTuple):
    """The keys of one key group, at these places of the order."""

    group: int
    start: int
    end: int
    keys: bytes
    """Packed."""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """In which order keys are stored."""

    slots: Slots
    """Sorted by key group."""
    places: Slots
    """Where they stand in what was frozen."""
    shares: Sequence[_Share]


class KeyOrders:
    """Makes the order for each snapshot; there for those that come after. Two writers at a time make it twice."""

    def __init__(self, max_parallelism: int) -> None:
        self._max_parallelism = max_parallelism
        self._groups = SlotGroups()
        self._last: tuple[AnyKeys | None, KeyOrder | None] = (None, None)

    def groups_of(self, keys: AnyKeys, count: int) -> Groups:
        """Those of the first `count` slots. Raises InvalidKey."""
        return self._groups.first(count, keys, lambda start, end: keys.groups(start, end, self._max_parallelism))

    def of(self, keys: AnyKeys, count: int) -> KeyOrder:
        """That of the first `count` slots. Raises InvalidKey, and UnsupportedValue for a key that cannot be stored."""
        whose, last = self._last
        if last is None or whose is not keys or len(last.slots) != count:
            last = _order_of(keys, self.groups_of(keys, count), None)
            self._last = keys, last
        return last

    def of_some(self, keys: AnyKeys, count: int, slots: Slots) -> KeyOrder:
        """That of these of the first `count` slots, which are frozen in their order."""
        return _order_of(keys, self.groups_of(keys, count)[slots], slots)


def _order_of(keys: AnyKeys, groups: Groups, some: Slots | None) -> KeyOrder:
    """`groups`: those of the slots `some`; None: of all."""
    places, shares = shares_of(groups)
    slots = places if some is None else some[places]
    column = keys.column(slots)
    return KeyOrder(
        slots, places, [_Share(group, start, end, _packed(column, start, end)) for group, start, end in shares]
    )


class SomeKeys:
    """The keys of a run: all that hold something else than before, or nothing. Frozen once, for all states."""

    name: Final = "run-keys"
    kind: Final = RUN_KEYS
    schema: Final[Schema] = None
    is_empty: Final = False

    def __init__(self, keys: AnyKeys, count: int, slots: Slots, orders: KeyOrders) -> None:
        self.slots = slots
        self._keys, self._count, self._orders = keys, count, orders

    @cached_property
    def order(self) -> KeyOrder:
        """Asked for where the snapshot is written."""
        return self._orders.of_some(self._keys, self._count, self.slots)

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        nothing = pack_plain(["plain", []])
        for share in self.order.shares:
            yield share.group, _PAYLOAD_HEAD + share.keys + nothing


class SlotView:
    """A state in columns, of all keys or of some. Used once."""

    def __init__(
        self, state: SlotState, keys: AnyKeys, count: int, orders: KeyOrders, some: SomeKeys | None = None
    ) -> None:
        self.name, self.kind = state.declaration.name, state.declaration.kind
        self.schema: Schema = state.node.schema
        self._kinds = state.kinds
        self._keys, self._orders, self._some = keys, orders, some
        self._frozen: FrozenColumns | None = state.freeze(count) if some is None else state.freeze_some(some.slots)
        self.is_empty = not self._frozen.present[: self._frozen.count].any()

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        assert self._frozen is not None, "used once"
        assert encode_key is None, "keys are plain data"
        frozen, self._frozen = self._frozen, None
        order = self._orders.of(self._keys, frozen.count) if self._some is None else self._some.order
        present = frozen.present[: frozen.count]
        absent = None if present.all() else ~present.take(order.places)
        columns = [_in_order(column[: frozen.count], order.places) for column in frozen.values]
        frozen.release()
        values: Column = tuple(columns) if self._kinds.is_tuple else columns[0]
        for share in order.shares:
            if absent is None or not absent[share.start : share.end].any():
                yield share.group, _PAYLOAD_HEAD + share.keys + _packed(values, share.start, share.end)
            elif not absent[share.start : share.end].all():
                left = np.flatnonzero(~absent[share.start : share.end]) + share.start
                keys = _packed(self._keys.column(order.slots[left]), 0, len(left))
                yield share.group, _PAYLOAD_HEAD + keys + _packed(_taken(values, left), 0, len(left))


def _in_order(column: npt.NDArray[Any], places: Slots) -> npt.NDArray[Any]:
    if column.dtype == np.int64:
        column = narrowed(pa.array(column)).to_numpy()  # before it is gathered: more of it stays in the cache
    return column.take(places, mode="clip")


def _packed(column: Column, start: int, end: int) -> bytes:
    return pack_plain(packed(column, start, end))


def _taken(column: Column, places: Slots) -> Column:
    return tuple(_taken(each, places) for each in column) if isinstance(column, tuple) else column[places]
