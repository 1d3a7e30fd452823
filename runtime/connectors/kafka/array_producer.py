"""ArrayProducer: a transactional producer of librdkafka that takes columns of values and keys, a call for thousands.

It has the methods of `confluent_kafka.Producer` that the sink uses, which do and raise the same, and `produce_columns`
in place of `produce`. How the library is reached, and when it can be: `librdkafka.py`. Calls of one thread alone.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from .librdkafka import MESSAGE, in_ms, library

_COPY, _ANY_PARTITION, _PURGE_ALL = 2, -1, 3
_STATISTICS_EVENT, _QUEUE_FULL = 0x40, -184
_POLL_S, _ABORT_S = 0.01, 5.0


class ArrayProducer:
    """`settings`: of librdkafka, with a transactional id. `stats_cb` is called in `poll`, with their text.

    Raises KafkaException where a setting is none.
    """

    def __init__(self, settings: Mapping[str, Any], stats_cb: Callable[[str], None]) -> None:
        self._client = 0
        there = library()
        assert there is not None, "can_do was not asked"
        self._library, self._on_statistics = there, stats_cb
        self._topics: dict[str, int] = {}
        self._is_open = False
        self._client = there.producer(settings, _STATISTICS_EVENT)
        self._events = there.queue_get_main(self._client)

    def __del__(self) -> None:
        self._destroy()

    # -- messages

    def produce_columns(self, topic: str, values: pa.Array, keys: pa.Array | None, timeout_s: float) -> None:
        """Queue a message for each value, in order, where its key says; null: without a value, or key.

        Columns are of binary or text, of either size. Waits for room in the queue; raises BufferError when there is
        none in that time. Raises KafkaException for the first message that is refused, or overtaken: librdkafka takes
        none behind one that its queue has no room for, and should it, the transaction must not be committed.
        """
        deadline = time.monotonic() + timeout_s
        messages = np.zeros(len(values), MESSAGE)
        _put(messages, "payload", "len", values)
        if keys is not None:
            _put(messages, "key", "key_len", keys)
        while len(messages):
            taken = self._library.produce_batch(
                self._topic(topic), _ANY_PARTITION, _COPY, messages.ctypes.data, len(messages)
            )
            first = int(np.argmax(messages["err"] != 0)) if taken < len(messages) else taken
            problem = int(messages["err"][first]) if taken < len(messages) else 0
            if problem and (problem != _QUEUE_FULL or first < taken):
                raise self._library.problem(problem)
            if problem and time.monotonic() > deadline:
                raise BufferError("the producer's queue stays full")
            messages = messages[taken:]
            self.poll(_POLL_S if problem else 0)

    def flush(self, timeout_s: float) -> int:
        """How many are not with the brokers by then."""
        is_late = self._library.flush(self._there, in_ms(timeout_s))
        self.poll(0)
        return int(max(self._library.outq_len(self._there), 1)) if is_late else 0  # statistics are counted, too

    def poll(self, timeout_s: float) -> None:
        """Hear what librdkafka says: statistics. Waits for the first."""
        wait_ms, events = in_ms(timeout_s), self._events if self._there else 0
        while event := self._library.queue_poll(events, wait_ms):
            wait_ms = 0
            if self._library.event_type(event) == _STATISTICS_EVENT:
                self._on_statistics(self._library.event_stats(event).decode())
            self._library.event_destroy(event)

    def purge(self) -> None:
        """Forget what is queued, or under way."""
        if self._client:
            self._library.purge(self._client, _PURGE_ALL)

    def close(self, timeout_s: float) -> None:
        """Abort what is open, prepared or not, and end. Without `close`, an open transaction stays as it is."""
        try:
            if self._client and self._is_open:
                self.abort_transaction(max(timeout_s, _ABORT_S))
        finally:
            self._destroy()

    # -- transactions

    def init_transactions(self, timeout_s: float) -> None:
        self._library.check(self._library.init_transactions(self._there, in_ms(timeout_s)))

    def begin_transaction(self) -> None:
        self._library.check(self._library.begin_transaction(self._there))
        self._is_open = True

    def send_offsets_to_transaction(self, places: Sequence[Any], group: str, timeout_s: float) -> None:
        """`places`: TopicPartitions of the client. `group`: its name, where the client wants its metadata."""
        group_there = self._library.consumer_group_metadata_new(group.encode())
        try:
            with self._library.places(places) as listed:
                self._library.check(
                    self._library.send_offsets_to_transaction(self._there, listed, group_there, in_ms(timeout_s))
                )
        finally:
            self._library.consumer_group_metadata_destroy(group_there)

    def commit_transaction(self, timeout_s: float) -> None:
        self._library.check(self._library.commit_transaction(self._there, in_ms(timeout_s)))
        self._is_open = False

    def abort_transaction(self, timeout_s: float) -> None:
        self._is_open = False  # `close` does not try again
        self._library.check(self._library.abort_transaction(self._there, in_ms(timeout_s)))

    @property
    def _there(self) -> int:
        """Raises RuntimeError when it is closed: librdkafka would end the process."""
        if not self._client:
            raise RuntimeError(f"this {type(self).__name__} is closed: make another one")
        return self._client

    def _destroy(self) -> None:
        client, self._client = self._client, 0
        if client:
            for topic in self._topics.values():
                self._library.topic_destroy(topic)
            self._topics = {}
            self._library.queue_destroy(self._events)
            self._library.destroy(client)

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            made = self._library.topic_new(self._there, name.encode(), None)
            if not made:
                raise self._library.problem(self._library.last_error())
            self._topics[name] = made
        return self._topics[name]


def _put(messages: np.ndarray[Any, Any], place: str, length: str, column: pa.Array) -> None:
    """Where the bytes of each are, and how many."""
    wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    _validity, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[column.offset : column.offset + len(column) + 1]
    messages[place] = ends[:-1].astype(np.uintp) + np.uintp(data.address if data is not None else _EMPTY)
    messages[length] = np.diff(ends)
    if column.null_count:
        gone = column.is_null().to_numpy(zero_copy_only=False)
        messages[place][gone] = messages[length][gone] = 0


_NOTHING = ctypes.create_string_buffer(1)
_EMPTY = ctypes.addressof(_NOTHING)
"""Where a value of no bytes is: nowhere would be none."""
