"""RecordPacker: one record as the bytes in which it travels into a job, once it is known to fit the inlet's schema.

With a schema that is a list of values in the order of its columns. Values of the usual types are judged by their type
alone; all others by what Arrow makes of them, which takes longer and says what does not fit. A dict has every column:
one that it leaves out would be null without a word.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import msgpack
import pyarrow as pa

from ...actors.flow.records import RecordMismatch, batch_of
from ...messages import RecordTypes, UnsupportedValue, pack_plain, shown, with_record_types

MAX_RECORD_BYTES = 8 * 1024 * 1024

_USUAL: dict[pa.DataType, type] = {
    pa.int64(): int,
    pa.float64(): float,
    pa.string(): str,
    pa.large_string(): str,
    pa.bool_(): bool,
    pa.binary(): bytes,
}
_LARGEST = 2**63


class _Packing(threading.local):
    """A Packer for each thread: to make one takes longer than to pack a record, and it is no one's but one thread's."""

    def __init__(self) -> None:
        self.pack: Callable[[Any], bytes] = msgpack.Packer().pack


_packing = _Packing()


def complete_batch(records: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """As columns. Raises RecordMismatch, also for a dict that lacks one."""
    wanted = set(schema.names)
    for record in records:
        if isinstance(record, dict) and not record.keys() >= wanted:
            raise RecordMismatch(f"record {shown(record, 120)} {_lacking(record, schema)}")
    return batch_of(records, schema)


def _lacking(record: dict[Any, Any], schema: pa.Schema) -> str:
    """Which columns a dict does not have, and what to do about it."""
    lacking = [field for field in schema if field.name not in record]
    names = [field.name for field in lacking]
    others = [name for name in record if isinstance(name, str) and name not in schema.names]
    todo = f"add {', '.join(names)}"
    if all(field.nullable for field in lacking):
        todo += ", or send None where it may be null: a key may not"
    for other in others:
        if close := get_close_matches(other, names, 1):
            todo = f"is {other!r} meant as {close[0]!r}?"
            break
    return (
        f"lacks {', '.join(map(repr, names))}; found {', '.join(map(str, record)) or 'nothing'}, wanted "
        f"{', '.join(schema.names)}: {todo}"
    )


def too_large(size_bytes: int) -> UnsupportedValue:
    return UnsupportedValue(
        f"wanted a record of at most {MAX_RECORD_BYTES} bytes, found {size_bytes}: send smaller records, or store the "
        "bulk elsewhere and send where it is"
    )


class RecordPacker:
    """For one inlet."""

    def __init__(self, schema: pa.Schema | None, types: RecordTypes | None = None) -> None:
        """`types`: the script's classes that the job has, if not any."""
        self._schema = schema
        self._record_types = types
        self._names = () if schema is None else tuple(schema.names)
        self._types = [] if schema is None else [_USUAL.get(field.type) for field in schema]
        self._integers = [index for index, kind in enumerate(self._types) if kind is int]

    def pack(self, record: Any) -> bytes:
        """Raises RecordMismatch, which names the column, and UnsupportedValue."""
        packed = self._usual(record) or with_record_types(
            self._record_types, pack_plain, record if self._schema is None else self._values(record)
        )
        if len(packed) > MAX_RECORD_BYTES:
            raise too_large(len(packed))
        return packed

    def _usual(self, record: Any) -> bytes | None:
        """If it is a dict of just the columns and of just the usual types; None leaves it to the slower way."""
        if self._schema is None or type(record) is not dict or len(record) != len(self._names):
            return None
        try:
            values = [record[name] for name in self._names]
            if list(map(type, values)) != self._types:
                return None
            for index in self._integers:
                if not -_LARGEST <= values[index] < _LARGEST:
                    return None
            return _packing.pack(values)
        except (KeyError, ValueError):
            pass
        return None

    def _values(self, record: Any) -> Sequence[Any]:
        assert self._schema is not None
        if isinstance(record, list) and record and isinstance(record[0], dict):
            raise RecordMismatch(f"wanted one record, found a list of {len(record)}: send_many takes several")
        row = complete_batch([record], self._schema)
        return [column[0].as_py() for column in row.columns]
