"""RecordPacker: one record as the bytes in which it travels into a job, once it is known to fit the inlet's schema.

With a schema that is a list of values in the order of its columns. Values of the usual types are judged by their type
alone; all others by what Arrow makes of them, which takes longer and says what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...actors.flow.records import batch_of
from ...messages import UnsupportedValue, pack_plain

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


class RecordPacker:
    """For one inlet."""

    def __init__(self, schema: pa.Schema | None) -> None:
        self._schema = schema
        self._names = () if schema is None else tuple(schema.names)
        self._types = () if schema is None else tuple(_USUAL.get(field.type) for field in schema)

    def pack(self, record: Any) -> bytes:
        """Raises RecordMismatch, which names the column, and UnsupportedValue."""
        if self._schema is None:
            packed = pack_plain(record)
        else:
            values = self._usual(record)
            packed = pack_plain(self._values(record) if values is None else values)
        if len(packed) > MAX_RECORD_BYTES:
            raise UnsupportedValue(f"a record of {len(packed)} bytes cannot be sent into a job: {MAX_RECORD_BYTES} is most")
        return packed

    def _usual(self, record: Any) -> list[Any] | None:
        """Its values, if it is a dict of just the columns and of just the usual types."""
        if not isinstance(record, dict) or len(record) != len(self._names):
            return None
        try:
            values = [record[name] for name in self._names]
        except KeyError:
            return None
        return values if all(map(_fits, values, self._types)) else None

    def _values(self, record: Any) -> Sequence[Any]:
        assert self._schema is not None
        row = batch_of([record], self._schema)
        return [column[0].as_py() for column in row.columns]


def _fits(value: Any, kind: type | None) -> bool:
    return type(value) is kind and (kind is not int or -_LARGEST <= value < _LARGEST)
