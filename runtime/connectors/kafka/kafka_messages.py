"""MessageMaker: from records to messages (value, key, partition, time, headers), and into a producer's queue.

It knows nothing of transactions. Encodings are in `formats.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, TypeAlias

import pyarrow as pa

from ....actors.flow.changelog import AFTER, BEFORE
from ....actors.flow.elements import Batch
from ....actors.flow.records import RecordMismatch, mapping_of, values_of
from ..removals import NO_REMOVALS, Removals
from .array_producer import ArrayProducer
from .errors import KafkaUnavailable
from .formats import encoder, records_of

OfRecord: TypeAlias = "str | Callable[[Any], Any]"
"""The name of a column or field, or a function of the record."""

NO_PARTITION = -1
"""The producer's partitioner chooses."""
_POLL_S = 0.05


class MessageMaker:
    """Raises ValueError for a format that is none. `key`, `partition`, `timestamp`, `headers`: None for none.

    A record that `removals` says is gone is a message of its key without a value. A row before an update gives none
    where the one after it comes next and has the same key.
    """

    def __init__(
        self,
        topic: str,
        format: Any,
        key: OfRecord | None,
        partition: OfRecord | None,
        timestamp: OfRecord | None,
        headers: OfRecord | None,
        removals: Removals = NO_REMOVALS,
    ) -> None:
        self._topic, self._encode, self._removals = topic, encoder(format), removals
        self._hides_column = isinstance(format, str)
        """A format of one's own sees records as they are."""
        self._key, self._partition, self._timestamp, self._headers = key, partition, timestamp, headers
        for name in ("key", "partition", "timestamp", "headers"):
            given = getattr(self, f"_{name}")
            if given is not None and not isinstance(given, str) and not callable(given):
                raise ValueError(f"{name}: wanted a column's name or a function of the record, found {given!r:.80}")
        if key is None and removals.column is not None:
            raise ValueError("kind=... and deleted=... say which key is gone: name the column that has it, key=...")

    @property
    def is_plain(self) -> bool:
        """Whether messages have values and keys, and nothing else."""
        return self._partition is self._timestamp is self._headers is None

    def produce(self, producer: Any, batch: Batch, timeout_s: float) -> None:
        """Queue a message for each record, in order; waits where the queue is full, but no longer than the time.

        `producer`: the client's, or, where messages are plain, an ArrayProducer.
        """
        keys = None if self._key is None else _keys(self._key, batch)
        if self._removals.column is None:
            values = self._encoded(batch)
        else:
            batch, values, keys = self._with_removals(batch, _listed(keys), self._removals.column)
        if isinstance(producer, ArrayProducer):
            try:
                producer.produce_columns(
                    self._topic, _column(values), None if keys is None else _column(keys), timeout_s
                )
            except BufferError:
                raise self._stays_full() from None
        else:
            self._produce_each(producer, batch, _listed(values), keys, time.monotonic() + timeout_s)

    def _produce_each(self, producer: Any, batch: Batch, values: list[Any], keys: Any, deadline: float) -> None:
        keys = repeat(None) if keys is None else _listed(keys)
        if self.is_plain:
            for value, key in zip(values, keys, strict=False):
                try:
                    producer.produce(self._topic, value, key)
                except BufferError:
                    self._wait(producer, deadline, value, key, {})
        else:
            for value, key, more in zip(values, keys, self._more(batch), strict=False):
                try:
                    producer.produce(self._topic, value, key, **more)
                except BufferError:
                    self._wait(producer, deadline, value, key, more)
        producer.poll(0)

    def _encoded(self, batch: Batch) -> Any:
        """A list, or a column."""
        values = self._encode(batch)
        if len(values) != len(batch):
            raise ValueError(f"format: wanted as many values as records ({len(batch)}), found {len(values)}")
        return values

    def _with_removals(
        self, batch: Batch, keys: list[bytes | None], column: str
    ) -> tuple[Batch, Sequence[Any], list[bytes | None]]:
        said = _of_records(column, batch)
        self._removals.check(pa.array(said))
        gone = self._removals.of(pa.array(said)).to_pylist()
        if any(goes and key is None for goes, key in zip(gone, keys, strict=True)):
            raise RecordMismatch("the key of a record that removes one is null: nothing has such a key")
        kept = list(range(len(keys)))
        if self._removals.kind is not None:
            changes = list(zip(said, keys, strict=True))
            following = [*changes[1:], None]
            kept = [
                place
                for place, ((kind, key), next_) in enumerate(zip(changes, following, strict=True))
                if not (kind == BEFORE and next_ == (AFTER, key))
            ]
        batch, keys, gone = _taken(batch, kept), [keys[place] for place in kept], [gone[place] for place in kept]
        staying = _taken(batch, [place for place, goes in enumerate(gone) if not goes])
        values = iter(_listed(self._encoded(_without(staying, column) if self._hides_column else staying)))
        return batch, [None if goes else next(values) for goes in gone], keys

    def _more(self, batch: Batch) -> Iterable[dict[str, Any]]:
        partitions, timestamps, headers = (
            repeat(None) if given is None else _of_records(given, batch)
            for given in (self._partition, self._timestamp, self._headers)
        )
        for partition, timestamp, found in zip(partitions, timestamps, headers, strict=False):
            yield {
                "partition": NO_PARTITION if partition is None else partition,
                "timestamp": 0 if timestamp is None else timestamp,
                "headers": header_list(found),
            }

    def _wait(self, producer: Any, deadline: float, value: Any, key: Any, more: dict[str, Any]) -> None:
        while time.monotonic() < deadline:
            producer.poll(_POLL_S)
            try:
                return producer.produce(self._topic, value, key, **more)  # type: ignore[no-any-return]
            except BufferError:
                continue
        raise self._stays_full()

    def _stays_full(self) -> KafkaUnavailable:
        return KafkaUnavailable(f"topic {self._topic!r}: brokers take no records: the producer's queue stays full")


def _listed(values: Any) -> list[Any]:
    return values.to_pylist() if isinstance(values, pa.Array) else list(values)


def _column(values: Any) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, pa.large_binary())


def _taken(batch: Batch, places: list[int]) -> Batch:
    if isinstance(batch, pa.RecordBatch):
        return batch.take(pa.array(places, pa.int64()))
    return [batch[place] for place in places]


def _without(batch: Batch, column: str) -> Batch:
    if isinstance(batch, pa.RecordBatch):
        return batch.drop_columns([column])
    return [{name: value for name, value in mapping_of(record).items() if name != column} for record in batch]


def _of_records(given: OfRecord, batch: Batch) -> Sequence[Any]:
    if not isinstance(given, str):
        return [given(record) for record in records_of(batch)]
    if isinstance(batch, pa.RecordBatch):
        return values_of(batch.column(given))
    return [record[given] if isinstance(record, Mapping) else getattr(record, given) for record in batch]


def _keys(given: OfRecord, batch: Batch) -> pa.Array | Iterable[bytes | None]:
    """As `key_bytes` gives them; of a column of integers or texts all at once, as a column."""
    if isinstance(batch, pa.RecordBatch) and isinstance(given, str):
        column = batch.column(given)
        if pa.types.is_integer(column.type) or pa.types.is_string(column.type):
            return column.cast(pa.string()).cast(pa.binary())
    return map(key_bytes, _of_records(given, batch))


def key_bytes(key: Any) -> bytes | None:
    """Text as UTF-8, a whole number as its digits, bytes and None as they are. Raises ValueError."""
    match key:
        case None | bytes():
            return key
        case str():
            return key.encode()
        case bool():
            pass
        case int():
            return b"%d" % key
    raise ValueError(
        f"key: wanted text, bytes, a whole number or None, found {key!r:.80}: give a function that makes one"
    )


def header_list(found: Any) -> list[tuple[str, Any]] | None:
    """From a mapping, pairs, or None."""
    if found is None:
        return None
    return list(found.items()) if isinstance(found, Mapping) else [(name, value) for name, value in found]
