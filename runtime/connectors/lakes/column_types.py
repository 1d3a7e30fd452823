"""Column types that both formats have, and what becomes of those that they do not."""

from __future__ import annotations

import pyarrow as pa


def storable(schema: pa.Schema) -> pa.Schema:
    """Unsigned integers in the next wider type, times in µs and UTC, values of dictionaries, short offsets."""
    return pa.schema([field.with_type(_storable(field.type)) for field in schema])


def _storable(kind: pa.DataType) -> pa.DataType:
    same = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20),
        pa.float16(): pa.float32(),
        pa.large_string(): pa.string(),
        pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(),
        pa.binary_view(): pa.binary(),
    }
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_dictionary(kind):
        return _storable(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_storable(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_storable(field.type)) for field in kind])
    return same.get(kind, kind)
