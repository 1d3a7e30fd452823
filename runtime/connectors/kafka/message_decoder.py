"""MessageDecoder: messages of one partition to records, many at a time, with what Kafka knows of them beside.

Messages without a value give a record where the settings' `deleted` says so (`tombstones.py`), and in formats "bytes"
and "text" with metadata, where the value is null. Elsewhere they give none, and the first is warned of. A message that
cannot be read is named: topic, partition and offset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ....actors.flow.elements import Batch
from .errors import UnreadableMessage
from .fetched_messages import FetchedMessages, fetched
from .formats import decoder, rows_in
from .partitions import Partition
from .reading import ReadingSettings
from .tombstones import Tombstones

log = logging.getLogger(__name__)

HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))

_NO_TIME = 0

METADATA: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "topic": (pa.string(), lambda message: message.topic()),
    "partition": (pa.int32(), lambda message: message.partition()),
    "offset": (pa.int64(), lambda message: message.offset()),
    "timestamp": (pa.int64(), lambda message: _time_of(message)),
    "key": (pa.binary(), lambda message: message.key()),
    "headers": (HEADERS, lambda message: _headers(message)),
}
"""What `metadata=` may name; the column is called `kafka_<name>`."""


class MessageDecoder:
    """Raises ValueError for a format that is none, metadata that there is not, or a key that nothing is deleted by."""

    def __init__(self, settings: ReadingSettings) -> None:
        self._format, self._metadata = settings.format, settings.metadata
        self._decode = decoder(settings.format, settings.schema)
        for name in self._metadata:
            if name not in METADATA:
                raise ValueError(f"metadata: wanted some of {', '.join(METADATA)}, found {name!r}")
        if settings.deleted is None and settings.key is not None:
            raise ValueError(
                "key: it is read of messages without a value: name the column that says so too, deleted=...; of all "
                "messages metadata=['key'] gives it"
            )
        self._tombstones = None if settings.deleted is None else Tombstones(settings)
        self._is_plain = bool(self._metadata) and settings.schema is None and settings.format in ("bytes", "text")
        self._has_skipped = False

    def decode(self, partition: Partition, messages: Sequence[Any]) -> Batch:
        """Raises UnreadableMessage."""
        found = fetched(partition, messages)
        if self._is_plain:
            return self._with_values(found)
        if self._tombstones is not None:
            return self._with_tombstones(self._tombstones, found)
        readable = found.with_values()
        if len(readable) < len(found):
            self._say_skipped(found)
        if not readable:
            return []
        records = self._read(readable)
        return self._with_metadata(self._owners(readable), records) if self._metadata else records

    def _read(self, readable: FetchedMessages[bytes]) -> Batch:
        try:
            records = self._decode(readable.values)
            self._check(records, len(readable))
        except Exception as error:
            raise self._named(readable) or error from error
        return records

    def _with_tombstones(self, tombstones: Tombstones, found: FetchedMessages[bytes | None]) -> Batch:
        readable = found.with_values()
        records = self._read(readable) if readable else tombstones.of_no_message()
        if not isinstance(records, pa.RecordBatch):
            _check_dicts(records, "deleted")
        try:
            records, owners, gone = tombstones.among(records, found, self._rows_in)
        except ValueError as error:
            raise UnreadableMessage(
                f"{found.range()}: the key of a message without a value is none of its column: {error}"
            ) from error
        return tombstones.marked(self._with_metadata(owners, records) if self._metadata else records, gone)

    def _say_skipped(self, found: FetchedMessages[bytes | None]) -> None:
        """Once: in a compacted topic it says that something is gone."""
        if not self._has_skipped:
            self._has_skipped = True
            log.warning(
                "%s: a message without a value, which says that its key is gone, gives no record, and neither will "
                "others: from_kafka(..., deleted='gone', key='id') gives one, whose column 'gone' is true",
                found.place(found.messages[found.values.index(None)]),
            )

    def _rows_in(self, value: bytes) -> int:
        return rows_in(value) if self._format == "arrow" else 1

    def _owners(self, readable: FetchedMessages[bytes]) -> Sequence[Any]:
        """The message of each record."""
        if self._format != "arrow":
            return readable.messages
        return readable.owners(map(rows_in, readable.values))

    def _check(self, records: Any, count: int) -> None:
        if self._format != "arrow" and len(records) != count:
            raise ValueError(f"wanted as many records as messages ({count}), found {len(records)}")

    def _named(self, readable: FetchedMessages[bytes]) -> Exception | None:
        """The error of the first message that cannot be read alone; None: each can."""
        for message, value in zip(readable.messages, readable.values, strict=True):
            try:
                self._check(self._decode([value]), 1)
            except Exception as error:  # noqa: BLE001  (whatever a format raises)
                return UnreadableMessage(
                    f"{readable.place(message)}: not {self._format!r:.60} with the wanted columns: {error!r}; found "
                    f"{value[:60]!r}"
                )
        return None

    def _with_values(self, found: FetchedMessages[bytes | None]) -> pa.RecordBatch:
        """Columns: the value as it is, the metadata, and whether there is none."""
        column = pa.array(found.values, pa.binary())
        if self._format == "text":
            column = column.cast(pa.string())
        columns = pa.RecordBatch.from_arrays([column, *self._columns(found.messages)], ["value", *self._names()])
        return columns if self._tombstones is None else self._tombstones.marked(columns, column.is_null())

    def _with_metadata(self, owners: Sequence[Any], records: Batch) -> Batch:
        """`owners`: the message of each record."""
        if isinstance(records, pa.RecordBatch):
            return pa.RecordBatch.from_arrays(
                [*records.columns, *self._columns(owners)], [*records.schema.names, *self._names()]
            )
        _check_dicts(records, "metadata")
        wanted = [(name, METADATA[given][1]) for name, given in zip(self._names(), self._metadata, strict=True)]
        for record, message in zip(records, owners, strict=True):
            for name, read in wanted:
                record[name] = read(message)
        return records

    def _names(self) -> list[str]:
        return [f"kafka_{name}" for name in self._metadata]

    def _columns(self, messages: Sequence[Any]) -> list[pa.Array]:
        return [pa.array(map(read, messages), kind) for kind, read in map(METADATA.__getitem__, self._metadata)]


def _check_dicts(records: Sequence[Any], setting: str) -> None:
    if (other := next((record for record in records if not isinstance(record, dict)), None)) is not None:
        raise UnreadableMessage(
            f"{setting}: it can be added to columns and dicts, found {other!r:.60}: leave {setting} out, or choose "
            "format='bytes', which gives the value in a column of its own"
        )


def _time_of(message: Any) -> int | None:
    """In ms; None of a message without one."""
    kind, time_ms = message.timestamp()
    return None if kind == _NO_TIME else time_ms


def _headers(message: Any) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in message.headers() or ()]
