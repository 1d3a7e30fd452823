"""MessageDecoder: messages of one partition to records, many at a time, with what Kafka knows of them beside.

Messages without a value (tombstones) give no record, but in format "bytes" with metadata, where the value is null.
A message that cannot be read is named: topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from ....actors.flow.elements import Batch
from .errors import UnreadableMessage
from .formats import decoder, rows_in
from .partitions import Partition
from .reading import ReadingSettings

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
    """Raises ValueError for a format that is none, or metadata that there is not."""

    def __init__(self, settings: ReadingSettings) -> None:
        self._format, self._metadata = settings.format, settings.metadata
        self._decode = decoder(settings.format, settings.schema)
        for name in self._metadata:
            if name not in METADATA:
                raise ValueError(f"metadata: wanted some of {', '.join(METADATA)}, found {name!r}")

    def decode(self, partition: Partition, messages: Sequence[Any]) -> Batch:
        """Raises UnreadableMessage."""
        values = list(map(type(messages[0]).value, messages))
        if self._metadata and self._format in ("bytes", "text"):
            return self._with_values(messages, values)
        if None in values:
            kept = [(message, value) for message, value in zip(messages, values, strict=True) if value is not None]
            if not kept:
                return []
            messages, values = [message for message, _ in kept], [value for _, value in kept]
        try:
            records = self._decode(values)
            self._check(records, len(values))
        except Exception as error:
            raise self._named(partition, messages, values) or error from error
        return self._with_metadata(messages, values, records) if self._metadata else records

    def _check(self, records: Any, count: int) -> None:
        if self._format != "arrow" and len(records) != count:
            raise ValueError(f"wanted as many records as messages ({count}), found {len(records)}")

    def _named(self, partition: Partition, messages: Sequence[Any], values: Sequence[bytes]) -> Exception | None:
        """The error of the first message that cannot be read alone; None: each can."""
        for message, value in zip(messages, values, strict=True):
            try:
                self._check(self._decode([value]), 1)
            except Exception as error:  # noqa: BLE001  (whatever a format raises)
                return UnreadableMessage(
                    f"topic {partition.topic!r}, partition {partition.number}, offset {message.offset()}: not "
                    f"{self._format!r:.60} with the wanted columns: {error!r}; found {value[:60]!r}"
                )
        return None

    def _with_values(self, messages: Sequence[Any], values: Sequence[bytes | None]) -> pa.RecordBatch:
        """Columns: the value as it is, and the metadata."""
        column = pa.array(values, pa.binary())
        if self._format == "text":
            column = column.cast(pa.string())
        return pa.RecordBatch.from_arrays([column, *self._columns(messages)], ["value", *self._names()])

    def _with_metadata(self, messages: Sequence[Any], values: Sequence[bytes], records: Batch) -> Batch:
        if isinstance(records, pa.RecordBatch):
            if self._format == "arrow":
                each = zip(messages, map(rows_in, values), strict=True)
                messages = list(chain.from_iterable(repeat(message, rows) for message, rows in each))
            return pa.RecordBatch.from_arrays(
                [*records.columns, *self._columns(messages)], [*records.schema.names, *self._names()]
            )
        wanted = [(name, METADATA[given][1]) for name, given in zip(self._names(), self._metadata, strict=True)]
        for record, message in zip(records, messages, strict=True):
            if not isinstance(record, dict):
                raise UnreadableMessage(
                    f"metadata can be added to columns and dicts, found {record!r:.60}: leave metadata out, or choose "
                    "format='bytes', which gives the value in a column of its own"
                )
            for name, read in wanted:
                record[name] = read(message)
        return records

    def _names(self) -> list[str]:
        return [f"kafka_{name}" for name in self._metadata]

    def _columns(self, messages: Sequence[Any]) -> list[pa.Array]:
        return [pa.array(map(read, messages), kind) for kind, read in map(METADATA.__getitem__, self._metadata)]


def _time_of(message: Any) -> int | None:
    """In ms; None of a message without one."""
    kind, time_ms = message.timestamp()
    return None if kind == _NO_TIME else time_ms


def _headers(message: Any) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in message.headers() or ()]
