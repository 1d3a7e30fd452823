"""Tombstones: messages without a value, which say that their key is gone, as records among the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....actors.flow.elements import Batch
from ..names import one_name
from .fetched_messages import FetchedMessages
from .reading import ReadingSettings


class Tombstones:
    """Made of settings whose `deleted` is a name. Raises ValueError for what cannot say which key is gone."""

    def __init__(self, settings: ReadingSettings) -> None:
        self.column = one_name("deleted", settings.deleted, "the name of a column, or None")
        self._key, self._schema = settings.key, settings.schema
        self._check(settings)

    def _check(self, settings: ReadingSettings) -> None:
        format, schema = settings.format, settings.schema
        is_plain = format in ("bytes", "text") and schema is None
        if schema is None and not is_plain and format != "json":
            raise ValueError(
                "deleted: wanted a schema too: a message without a value does not say which columns it has"
            )
        if self._key is None and "key" not in settings.metadata:
            raise ValueError(
                "deleted: a record has to say which key is gone: name the column that has it, key=..., or ask for "
                "metadata=['key']"
            )
        if is_plain and self._key is not None:
            raise ValueError(
                f"key: records of format {format!r} have no columns: ask for metadata=['key'] in its place"
            )
        if self.column in [*(schema or pa.schema([])).names, *(f"kafka_{name}" for name in settings.metadata)]:
            raise ValueError(f"deleted: there is a column {self.column!r} already: choose another name")
        if self._key is not None and schema is not None:
            _check_key_column(one_name("key", self._key, "a column of the schema"), schema)

    def of_no_message(self) -> Batch:
        return [] if self._schema is None else pa.RecordBatch.from_pylist([], self._schema)

    def among(
        self, records: Batch, found: FetchedMessages[bytes | None], rows_of: Callable[[bytes], int]
    ) -> tuple[Batch, list[Any], pa.Array]:
        """`records` of the messages that have a value, `rows_of(value)` of each, with one of each other message in its
        place; the message of each record; and which are gone. Raises ValueError for a key that its column cannot have.
        """
        counts = [1 if value is None else rows_of(value) for value in found.values]
        owners = found.owners(counts)
        places: list[int | None] = []
        row = 0
        for value, count in zip(found.values, counts, strict=True):
            places += [None] if value is None else range(row, row + count)
            row += 0 if value is None else count
        gone = pa.array([place is None for place in places], pa.bool_())
        if isinstance(records, pa.RecordBatch):
            return self._columns(records.take(pa.array(places, pa.int64())), owners, gone), owners, gone
        put = [
            self._fields(owner) if place is None else records[place]
            for owner, place in zip(owners, places, strict=True)
        ]
        return put, owners, gone

    def marked(self, records: Batch, gone: pa.Array) -> Batch:
        """With the column that says which are gone."""
        if isinstance(records, pa.RecordBatch):
            return pa.RecordBatch.from_arrays([*records.columns, gone], [*records.schema.names, self.column])
        for record, is_gone in zip(records, gone.to_pylist(), strict=True):
            record[self.column] = is_gone
        return records

    def _columns(self, records: pa.RecordBatch, owners: Sequence[Any], gone: pa.Array) -> pa.RecordBatch:
        if self._key is None or not pc.any(gone).as_py():
            return records
        place = records.schema.get_field_index(self._key)
        given = [owner.key() if is_gone else None for owner, is_gone in zip(owners, gone.to_pylist(), strict=True)]
        keys = _typed(pa.array(given, pa.binary()), records.schema.field(place).type)
        return records.set_column(place, records.schema.field(place), pc.if_else(gone, keys, records.column(place)))

    def _fields(self, message: Any) -> dict[str, Any]:
        if self._key is None:
            return {}
        key = message.key()
        return {self._key: None if key is None else key.decode()}


def nullable(schema: pa.Schema) -> pa.Schema:
    """As it is with records of what is gone among the others."""
    return pa.schema([field.with_nullable(True) for field in schema])


def _check_key_column(name: str, schema: pa.Schema) -> None:
    if name not in schema.names:
        raise ValueError(f"key: wanted a column of the schema ({', '.join(schema.names)}), found {name!r}")
    kind = schema.field(name).type
    if not (_is_text(kind) or _is_bytes(kind) or pa.types.is_integer(kind)):
        raise ValueError(
            f"key: wanted a column of text, bytes or whole numbers, found {name!r} of {kind}: ask for "
            "metadata=['key'], and make the column of it"
        )


def _typed(keys: pa.Array, kind: pa.DataType) -> pa.Array:
    """As KafkaSink's `key` has written them. Raises pa.ArrowInvalid, a ValueError."""
    return keys.cast(kind) if _is_bytes(kind) else keys.cast(pa.string()).cast(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
