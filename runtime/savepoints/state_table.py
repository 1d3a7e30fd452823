"""StateTable: one state of a savepoint as a table, read when it is asked for, key group by key group.

A table of keyed state has the columns `key`, `value`, where windows hold state under a namespace, `namespace`, and with
a TTL `updated_ms`. Timers have `key`, `domain`, `time_ms` and `namespace`; a list has `subtask`, `position` and
`value`. Columnar state has the columns in which it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...state.kinds.schema_fit import schema_text
from ..connectors.errors import require
from .arrow_columns import as_type, unified
from .errors import NoSuchState
from .sources_of_rows import Row, RowSource
from .spark_frames import frame_of
from .stored_table import StoredTable

if TYPE_CHECKING:
    import pandas as pd

_FIRST = ("key", "domain", "subtask", "position", "time_ms", "namespace", "value", "updated_ms")
BATCH_ROWS = 65_536
_NO_KEY = object()


class StateTable:
    """Each call reads its rows again. Use it from one thread."""

    def __init__(
        self,
        where: tuple[str, str],
        table: StoredTable,
        sources: Sequence[RowSource],
        again: Callable[[], StateTable],
        shares: range | None = None,
        key: Any = _NO_KEY,
    ) -> None:
        self.path, self.operator = where
        """Of the savepoint; and the uid of the operator."""
        self.stored = table
        self.again = again
        """Opens the whole table, in any process."""
        self._sources, self._shares, self._key = sources, shares, key

    @property
    def name(self) -> str:
        return self.stored.name

    @property
    def kind(self) -> str:
        """ "ValueState", "ListState", ..., "Timers", "OperatorListState", "SourceOffset", "ColumnarAggregate"..."""
        return self.stored.kind

    @property
    def type(self) -> str:
        """What is held under a key, as the snapshot says it: `int`, `list[str]`, `Order(amount: float)`."""
        texts = dict.fromkeys(_schema_text(self.stored, schema) for schema in self.stored.schemas)
        return " or ".join(texts)

    def __repr__(self) -> str:
        return f"<StateTable {self.operator}.{self.name}: {self.kind} of {self.type}>"

    # -- a part of it

    def key(self, key: Any) -> StateTable:
        """The rows of this key alone: its key group is read, and nothing else. Raises InvalidKey, and NoSuchState for a
        list, which has no keys.
        """
        try:
            for source in self._sources:
                source.share_of(key)
        except LookupError as error:
            raise NoSuchState(f"{self.path}: {self.operator}.{self.name}", f"key {key!r:.60}", ()) from error
        return self._part(self._shares, key)

    def groups(self, first: int, last: int) -> StateTable:
        """The rows of these key groups alone, both inclusive; of a list, of these subtasks."""
        return self._part(range(first, last + 1), self._key)

    @property
    def only_key(self) -> tuple[Any, ...]:
        """The one key whose rows these are; empty for those of all."""
        return () if self._key is _NO_KEY else (self._key,)

    @property
    def shares(self) -> list[int]:
        """The key groups, or the subtasks of a list, that may hold rows of it."""
        return sorted({share for source in self._sources for share in self._shares_of(source)})

    # -- its rows

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """All rows in batches of about this many, all of one schema; no more than a key group is held at a time."""
        yield from self.conformed(self.arrow_schema(), rows)

    def conformed(self, schema: pa.Schema, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The same, of a schema that is known: `arrow_schema` of these rows, or of more."""
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in self._batches():
            held.append(_conformed(batch, schema))
            count += batch.num_rows
            if count >= rows:
                yield from _joined(held, schema).to_batches(max_chunksize=rows)
                held, count = [], 0
        if count:
            yield from _joined(held, schema).to_batches(max_chunksize=rows)

    def to_arrow(self) -> pa.Table:
        """All rows, in the columns of `arrow_schema()`."""
        batches = list(self._batches())
        schema = _schema_of([batch.schema for batch in batches], self.stored)
        return pa.Table.from_batches([_conformed(batch, schema) for batch in batches], schema)

    def to_pandas(self) -> pd.DataFrame:
        """Raises MissingExtra without pandas."""
        require("pandas", extra="frames", wanted_by="StateTable.to_pandas")
        return self.to_arrow().to_pandas()

    def to_dicts(self) -> list[Row]:
        """All rows, with Python's values: a tuple is a tuple; a record is a dict of its fields."""
        return list(self.rows())

    def rows(self) -> Iterator[Row]:
        """The same, one after the other."""
        for source in self._sources:
            for share in self._shares_of(source):
                yield from source.rows(share, self.only_key)

    def to_spark(self, spark: Any) -> Any:
        """A Spark DataFrame, which the executors read in parallel, key groups each. They need `understudy` and the
        savepoint's files.
        """

        return frame_of(self, spark)

    def arrow_schema(self) -> pa.Schema:
        """The columns. Where the values say their types, all are read for that, key group by key group."""
        schemas: list[pa.Schema] = []
        for batch in self._batches():
            if batch.schema not in schemas:  # no set: a user's own extension type has no hash
                schemas.append(batch.schema)
            if self.stored.is_arrow:
                break
        return _schema_of(schemas, self.stored)

    def identified(self, share: int) -> dict[Hashable, Any]:
        """The rows of a key group, or of a list's subtask: what tells each from the others, and what it holds."""
        return {key: value for source in self._sources for key, value in source.identified(share).items()}

    def described(self, value: Any) -> Any:
        """A value of `identified` as people want to see it."""
        return self._sources[0].described(value) if self._sources else value

    def count(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self._batches())

    # -- how

    def _part(self, shares: range | None, key: Any) -> StateTable:
        return StateTable((self.path, self.operator), self.stored, self._sources, self.again, shares, key)

    def _shares_of(self, source: RowSource) -> Iterable[int]:
        shares = source.shares()
        if self._key is not _NO_KEY:
            own = source.share_of(self._key)
            shares = [own] if own in shares else []
        return shares if self._shares is None else [share for share in shares if share in self._shares]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for source in self._sources:
            for share in self._shares_of(source):
                yield from source.batches(share, self.only_key)


def _schema_text(table: StoredTable, schema: Any) -> str:
    if table.is_arrow or schema is None:
        return ", ".join(table.keys)
    return (
        str(schema.get("source", ""))
        if table.kind == "SourceOffset" and isinstance(schema, dict)
        else schema_text(schema)
    )


def _schema_of(schemas: Sequence[pa.Schema], table: StoredTable) -> pa.Schema:
    """One for all of them."""
    names = dict.fromkeys(name for schema in schemas for name in schema.names)
    if not names:
        if table.is_timers:
            return pa.schema(
                [("key", pa.null()), ("domain", pa.string()), ("time_ms", pa.int64()), ("namespace", pa.null())]
            )
        return pa.schema([("key", pa.null()), ("value", pa.null())])
    if not table.is_arrow:
        names = dict.fromkeys(sorted(names, key=_FIRST.index))
    types = {name: [schema.field(name).type for schema in schemas if name in schema.names] for name in names}
    return pa.schema([(name, unified(found)) for name, found in types.items()])


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    columns = [
        as_type(batch.column(field.name), field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _joined(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(batches, schema).combine_chunks()
