"""What a snapshot of keyed state holds, as columns: numbers are taken over as they are stored, all else one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import MalformedMessage
from ..backends.backend import NO_NAMESPACE
from ..backends.keyed_snapshot import StoredState
from ..columns.packed_columns import unpacked
from ..keys.word_table import Slots
from ..kinds.record_serializer import Convert
from ..kinds.schema_fit import SchemaMismatch, are_same
from .slot_keys import KeyColumns, SlotKeys
from .slot_states import SlotState
from .value_kinds import DTYPES, Columns, Kind, ValueKinds

_INTEGERS, _FLOATS, _BOOLS = ("|i1", "<i2", "<i4", "<i8"), "<f8", "|b1"
_LISTED: dict[type, pa.DataType] = {str: pa.large_string(), bytes: pa.large_binary(), bool: pa.bool_()}


class Entries(NamedTuple):
    """What one payload holds, still packed."""

    keys: Any
    values: Any


class _Misfit(Exception):
    """The value at `position` is none that the columns hold."""

    def __init__(self, position: int, value: Any) -> None:
        super().__init__(position, value)
        self.position, self.value = position, value


def load_into(state: SlotState, stored: StoredState, keys: SlotKeys) -> None:
    """Put what was restored for this state into it. Raises StateIncompatible."""
    with stored.loaded_for(state.declaration, state._scope.operator_name):
        decode = state.node.decoder(stored.value_schema)
        is_direct = are_same(stored.value_schema, state.node.schema)
        entries = list(stored_entries(stored))
        replaced = [Entries(each, ()) for each in stored.replaced_keys()]
        if replaced:
            gone = slots_of_entries(replaced, stored.decode_key, keys)
            state.reserve(len(keys))
            state.erase(gone)
        columns = [_columns(each, state.kinds, decode, is_direct, stored.decode_key) for each in entries]
        slots = slots_of_entries(entries, stored.decode_key, keys)
        if entries:
            whole = tuple(map(np.concatenate, zip(*columns, strict=True)))
            if len(whole[0]) != len(slots):
                raise MalformedMessage(f"{len(slots)} keys, and {len(whole[0])} values")
            state.reserve(len(keys))
            state.put(slots, whole)


def stored_entries(stored: StoredState) -> Iterator[Entries]:
    """Raises MalformedMessage, and SchemaMismatch for namespaces."""
    for namespace, keys, values in stored.packed_entries():
        if namespace != NO_NAMESPACE:
            raise SchemaMismatch(f"it has a namespace, {namespace!r:.60}, and a compiled operator's has none")
        yield Entries(keys, values)


# -- keys


def slots_of_entries(entries: Sequence[Entries], decode: Convert, keys: SlotKeys) -> Slots:
    """The slots of all keys, in order."""
    columns = None if decode is not None else _joined([_key_columns(each.keys) for each in entries])
    if columns is not None:
        return keys.add_columns(columns)
    return keys.add(list(chain.from_iterable(_listed_keys(each, decode) for each in entries)))


def _listed_keys(entries: Entries, decode: Convert) -> list[Any]:
    listed = unpacked(entries.keys)
    return listed if decode is None else [decode(key) for key in listed]


def _joined(parts: Sequence[KeyColumns | None]) -> KeyColumns | None:
    """One column per part of the key; None if they are not the same columns everywhere."""
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts) or len({tuple(array.type for array in part) for part in known}) > 1:
        return None
    return [pa.concat_arrays(arrays) for arrays in zip(*known, strict=True)]


def _key_columns(content: Any) -> KeyColumns | None:
    match content:
        case ["tuples", _, _, *_]:
            columns = list(map(_key_column, content[1:]))
        case _:
            columns = [_key_column(content)]
    return None if any(column is None for column in columns) else columns


def _key_column(content: Any) -> pa.Array | None:
    """Packed keys as a column of a canonical type, if they are all of one plain type."""
    try:
        match content:
            case ["plain", [_, *_]] | ["same", _, int()]:
                items = unpacked(content)
                first = items[0]
                kind = _LISTED.get(type(first))
                return pa.array(items, kind) if kind is not None and set(map(type, items)) == {type(first)} else None
            case [kind, bytes(data)] if kind in _INTEGERS or kind == _FLOATS:
                return pa.array(np.frombuffer(data, kind).astype(_FLOATS if kind == _FLOATS else np.int64))
    except ValueError:  # half a surrogate pair; a wrong number of bytes
        pass
    return None


# -- values


def _columns(entries: Entries, kinds: ValueKinds, decode: Convert, is_direct: bool, decode_key: Convert) -> Columns:
    """The values as columns. Raises SchemaMismatch for one that they do not hold, telling it and its key."""
    content = entries.values
    if is_direct and not kinds.is_tuple:
        column = number_column(content, kinds.fields[0])
        if column is not None:
            return (column,)
    elif is_direct and len(content) == 1 + len(kinds.fields) and content[0] == "tuples":
        found = tuple(map(number_column, content[1:], kinds.fields))
        if not any(column is None for column in found):
            return found  # type: ignore[return-value]
    try:
        return _one_by_one(unpacked(content), kinds, decode)
    except _Misfit as misfit:
        key = _listed_keys(entries, decode_key)[misfit.position]
        raise SchemaMismatch(
            f"key {key!r:.60} holds {misfit.value!r:.80}, and a compiled operator's columns hold {kinds}, "
            "integers of 64 bits"
        ) from misfit


def number_column(content: Any, kind: Kind) -> npt.NDArray[Any] | None:
    """One field as a column, if all that is packed is of its kind."""
    try:
        match content:
            case ["plain", list()] | ["same", _, int()]:
                items = unpacked(content)
                allowed: set[type] = {int, bool} if kind is int else {kind}
                if allowed.issuperset(map(type, items)):
                    return np.fromiter(items, DTYPES[kind], len(items))
            case [stored, bytes(data)] if stored in _INTEGERS and kind is int:
                return np.frombuffer(data, stored).astype(np.int64)
            case [stored, bytes(data)] if stored == _FLOATS and kind is float:
                return np.frombuffer(data, stored).astype(np.float64)
            case [stored, bytes(data)] if stored == _BOOLS and kind is bool:
                return np.frombuffer(data, stored).astype(np.bool_)
    except (ValueError, OverflowError):  # a wrong number of bytes; a longer integer
        pass
    return None


def _one_by_one(values: Sequence[Any], kinds: ValueKinds, decode: Convert) -> Columns:
    rows = []
    for position, value in enumerate(values):
        row = kinds.row(value if decode is None else decode(value))
        if row is None:
            raise _Misfit(position, value)
        rows.append(row)
    fields = zip(*rows, strict=True) if rows else [()] * len(kinds.fields)
    return tuple(np.array(column, DTYPES[kind]) for column, kind in zip(fields, kinds.fields, strict=True))
