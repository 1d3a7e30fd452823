"""RowChanges: what the records of a stream do to the rows of a table: append them, or set and remove rows by key.

Which columns of a record are written, and which one says that a row goes. How rows get in is not at home here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....actors.flow.changelog import DELETE
from ....actors.flow.elements import Batch
from ....actors.flow.records import RecordMismatch, batch_of, merged
from ..removals import NO_REMOVALS, Removals
from .errors import TableMismatch
from .target_table import TargetTable, last_of_each_key

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ESCAPED_NUL = r"(^|[^\\])(\\\\)*\\u0000"
"""In JSON, where a backslash that follows another one begins no escape."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """`key`: of an upsert; (): append. `columns`: those that are written; None: all but the one that says removals."""

    key: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    removals: Removals = NO_REMOVALS

    def __post_init__(self) -> None:
        if not self.key and self.removes_rows:
            raise ValueError("kind=... and deleted=... remove rows by their key: name its columns, key=...")

    @classmethod
    def of(cls, key: str | Sequence[str] | None, columns: Sequence[str] | None, **which: str | None) -> RowChanges:
        named = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        return cls(named, None if columns is None else tuple(columns), Removals(**which))

    @property
    def _says(self) -> str | None:
        return self.removals.column

    @property
    def removes_rows(self) -> bool:
        return self._says is not None

    def written(self, schema: pa.Schema) -> pa.Schema:
        """The columns that are written of records with these. Raises TableMismatch."""
        wanted = [name for name in schema.names if name != self._says] if self.columns is None else list(self.columns)
        needed = [*wanted, *self.key, *([self._says] if self._says is not None else [])]
        missing = [name for name in needed if name not in schema.names]
        if missing:
            raise TableMismatch(
                f"the records have no column {missing[0]!r}; they have {', '.join(schema.names) or 'none'}"
            )
        if not set(self.key) <= set(wanted):
            raise TableMismatch(f"the key {', '.join(self.key)} is not among the columns {', '.join(wanted)}")
        return pa.schema([schema.field(name) for name in wanted])

    def fitted(self, batch: Batch, table: TargetTable) -> pa.RecordBatch:
        """As columns: those to write, and the one that says what to do. Raises TableMismatch and RecordMismatch."""
        rows = _without_views(batch if isinstance(batch, pa.RecordBatch) else batch_of(batch))
        written = self.written(rows.schema)
        if (problem := table.problem(written)) is not None:
            raise TableMismatch(problem)
        for name in self.key:
            if rows.column(name).null_count:
                raise RecordMismatch(
                    f"{table.name}: the key column {name!r} is null in a record: no row has such a key"
                )
        if self._says is not None:
            self.removals.check(rows.column(self._says))
        if table.database.is_postgresql:
            _check_texts(rows.select(written.names), table)
        names = [*written.names, *([self._says] if self._says is not None else [])]
        return _typed(rows.select(names), table)

    def apply(self, connection: Connection, batches: Sequence[pa.RecordBatch], table: TargetTable) -> None:
        """All of them, as if one after the other, within the transaction of the connection."""
        for rows in merged(batches):
            if not self.key:
                table.append(connection, rows)
                continue
            last = last_of_each_key(rows, self.key)
            if self._says is not None:
                # A row that was deleted and comes again is a new one: it has nothing of the old one's other columns.
                deleted = rows.filter(self._is_deleted(rows)).select(list(self.key))
                gone = last.filter(self._goes(last)).select(list(self.key))
                all_gone = pa.Table.from_batches([deleted, gone]).combine_chunks().to_batches()
                for keys in all_gone:
                    table.delete(connection, last_of_each_key(keys, self.key))
                last = last.filter(pc.invert(self._goes(last)))
            table.upsert(connection, last.select([name for name in rows.schema.names if name != self._says]))

    def _goes(self, rows: pa.RecordBatch) -> pa.Array:
        """Which rows say that there is none with this key now."""
        return self.removals.of(rows.column(self._says))

    def _is_deleted(self, rows: pa.RecordBatch) -> pa.Array:
        """The same without those that only say what a row was before it changed."""
        kind = self.removals.kind
        return self._goes(rows) if kind is None else pc.equal(rows.column(kind), DELETE)


def _without_views(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Drivers take texts, and no views of texts."""
    if not any(map(pa.types.is_string_view, rows.schema.types)):
        return rows
    return pa.RecordBatch.from_arrays([_searchable(each) for each in rows.columns], names=rows.schema.names)


def _check_texts(rows: pa.RecordBatch, table: TargetTable) -> None:
    """PostgreSQL refuses such a text when it is written: after the checkpoint that the record is in, and again after
    each restart.
    """
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        texts = column.dictionary if pa.types.is_dictionary(column.type) else column
        if _is_text(texts.type) and _has_nul(texts):
            raise RecordMismatch(
                f"{table.name}: column {name!r} has a text with the character U+0000 (NUL), which no text of "
                "PostgreSQL may have: take it out, as text.replace('\\0', '') does"
            )
        column_there = table.columns.get(name)
        if column_there is not None and column_there.declared.upper() == "JSONB" and _has_nul_as_json(texts):
            raise RecordMismatch(
                f"{table.name}: column {name!r} has a value with the character U+0000 (NUL) in a text of it, or in a "
                "name, which no jsonb of PostgreSQL may have: take it out, as text.replace('\\0', '') does, or make it "
                "a column of type json"
            )


def _has_nul_as_json(values: pa.Array) -> bool:
    """Of lists and dicts in a column, and of texts that are JSON, where it is an escape of six characters. `json`, the
    other type, keeps it.
    """
    kind = values.type
    if _is_text(kind):
        return bool(pc.any(pc.match_substring_regex(_searchable(values), _ESCAPED_NUL)).as_py())
    return pa.types.is_nested(kind) and any(map(_has_nul, _texts_in(values)))


def _texts_in(values: pa.Array) -> Iterator[pa.Array]:
    """Those at any depth, and the names of fields. What is beside a slice, or below a null, is none of its values."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        yield from _texts_in(values.dictionary)
    elif pa.types.is_struct(kind):
        yield pa.array([field.name for field in kind], pa.string())
        for each in values.flatten():
            yield from _texts_in(each)
    elif pa.types.is_map(kind):
        there = values.drop_null() if values.null_count else values
        first, last = there.offsets[0].as_py(), there.offsets[-1].as_py()
        for each in (there.keys, there.items):
            yield from _texts_in(each.slice(first, last - first))
    elif pa.types.is_nested(kind) and hasattr(values, "flatten"):  # a union has none
        yield from _texts_in(values.flatten())
    elif _is_text(kind):
        yield values


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _searchable(texts: pa.Array) -> pa.Array:
    """Arrow's functions look for nothing in views."""
    return texts.cast(pa.large_string()) if pa.types.is_string_view(texts.type) else texts


def _has_nul(texts: pa.Array) -> bool:
    """The bytes are looked through first, of a slice those around it too: that is much faster."""
    texts = _searchable(texts)
    data = texts.buffers()[2]
    if data is None or np.frombuffer(data, np.uint8).all():
        return False
    return bool(pc.any(pc.match_substring(texts, "\0")).as_py())


def _typed(rows: pa.RecordBatch, table: TargetTable) -> pa.RecordBatch:
    """A column of which no value is known yet has no type: it gets the table's."""
    arrays: list[Any] = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        known = table.columns.get(name)
        arrays.append(column.cast(known.type) if known is not None and pa.types.is_null(column.type) else column)
    return pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)
