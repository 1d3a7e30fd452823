"""ArrayProducer: a transactional producer of librdkafka that takes columns of values and keys, a call for thousands.

`confluent_kafka.Producer` wants a call for each message, and calls back for each; that is half of what a sink costs. So
this one speaks to the same librdkafka, which that package has loaded, by its public C interface (`rdkafka.h`), through
ctypes. It has the methods of `confluent_kafka.Producer` that the sink uses, which do and raise the same, and
`produce_columns` in place of `produce`. It knows no callbacks: where settings have some, or the library does not show
its functions, `can_do` says so, and the other one is used. Calls of one thread alone.
"""

from __future__ import annotations

import ctypes
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import require
from .client_settings import LIBRDKAFKA

MESSAGE = np.dtype(
    [
        ("err", np.int32),
        ("rkt", np.uintp),
        ("partition", np.int32),
        ("payload", np.uintp),
        ("len", np.uintp),
        ("key", np.uintp),
        ("key_len", np.uintp),
        ("offset", np.int64),
        ("_private", np.uintp),
    ],
    align=True,
)
"""`rd_kafka_message_t`."""

_PRODUCER, _COPY, _ANY_PARTITION, _PURGE_ALL = 0, 2, -1, 3
_LOG_EVENT, _STATISTICS_EVENT = 0x4, 0x40
_INVALID_ARGUMENT, _QUEUE_FULL = -186, -184
_POLL_S, _ABORT_S = 0.01, 5.0
_SYSLOG = (logging.CRITICAL,) * 3 + (logging.ERROR, logging.WARNING, logging.INFO, logging.INFO, logging.DEBUG)
"""By librdkafka's level."""


class _Place(ctypes.Structure):
    """`rd_kafka_topic_partition_t`."""

    _fields_ = (
        ("topic", c_char_p),
        ("partition", c_int32),
        ("offset", c_int64),
        ("metadata", c_char_p),
        ("metadata_size", c_size_t),
        ("opaque", c_void_p),
        ("err", c_int),
        ("_private", c_void_p),
    )


_TEXT = (c_char_p, c_size_t)
"""Where a text is to be written, and its longest length."""
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "conf_new": (c_void_p, ()),
    "conf_set": (c_int, (c_void_p, c_char_p, c_char_p, *_TEXT)),
    "conf_set_events": (None, (c_void_p, c_int)),
    "conf_set_log_cb": (None, (c_void_p, c_void_p)),
    "conf_destroy": (None, (c_void_p,)),
    "new": (c_void_p, (c_int, c_void_p, *_TEXT)),
    "destroy": (None, (c_void_p,)),
    "set_log_queue": (c_int, (c_void_p, c_void_p)),
    "queue_get_main": (c_void_p, (c_void_p,)),
    "queue_poll": (c_void_p, (c_void_p, c_int)),
    "queue_destroy": (None, (c_void_p,)),
    "event_type": (c_int, (c_void_p,)),
    "event_stats": (c_char_p, (c_void_p,)),
    "event_log": (c_int, (c_void_p, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_int))),
    "event_destroy": (None, (c_void_p,)),
    "topic_new": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "topic_destroy": (None, (c_void_p,)),
    "produce_batch": (c_int, (c_void_p, c_int32, c_int, c_void_p, c_int)),
    "outq_len": (c_int, (c_void_p,)),
    "flush": (c_int, (c_void_p, c_int)),
    "purge": (c_int, (c_void_p, c_int)),
    "init_transactions": (c_void_p, (c_void_p, c_int)),
    "begin_transaction": (c_void_p, (c_void_p,)),
    "commit_transaction": (c_void_p, (c_void_p, c_int)),
    "abort_transaction": (c_void_p, (c_void_p, c_int)),
    "send_offsets_to_transaction": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int)),
    "consumer_group_metadata_new": (c_void_p, (c_char_p,)),
    "consumer_group_metadata_destroy": (None, (c_void_p,)),
    "topic_partition_list_new": (c_void_p, (c_int,)),
    "topic_partition_list_add": (POINTER(_Place), (c_void_p, c_char_p, c_int32)),
    "topic_partition_list_destroy": (None, (c_void_p,)),
    "error_code": (c_int, (c_void_p,)),
    "error_string": (c_char_p, (c_void_p,)),
    "error_is_fatal": (c_int, (c_void_p,)),
    "error_is_retriable": (c_int, (c_void_p,)),
    "error_txn_requires_abort": (c_int, (c_void_p,)),
    "error_destroy": (None, (c_void_p,)),
}
"""Of librdkafka, all with `rd_kafka_` before: what they return and take."""


class _Library:
    """The functions, by their names. Raises OSError or AttributeError where they cannot be found."""

    def __init__(self) -> None:
        client = require("confluent_kafka", extra="kafka", wanted_by="KafkaSink")
        loaded = ctypes.CDLL(client.cimpl.__file__)  # finds the functions of the librdkafka that it was linked with
        for name, (returns, takes) in _FUNCTIONS.items():
            function = getattr(loaded, f"rd_kafka_{name}")
            function.restype, function.argtypes = returns, takes
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@cache
def _library() -> _Library | None:
    try:
        return _Library()
    except (OSError, AttributeError):
        return None


def can_do(settings: Mapping[str, Any]) -> bool:
    """Whether a producer with these settings can be one of this kind."""
    plain = all(isinstance(value, str | int | float) for name, value in settings.items() if name != "logger")
    return plain and _library() is not None


class ArrayProducer:
    """`settings`: of librdkafka, with a transactional id. `stats_cb` is called in `poll`, with their text.

    Raises KafkaException where a setting is none.
    """

    def __init__(self, settings: Mapping[str, Any], stats_cb: Callable[[str], None]) -> None:
        self._client = 0
        library = _library()
        assert library is not None, "can_do was not asked"
        self._library, self._on_statistics = library, stats_cb
        self._kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSink")
        self._topics: dict[str, int] = {}
        self._is_open = False
        self._create({name: value for name, value in settings.items() if name != "logger"} | {"log.queue": True})
        library.set_log_queue(self._client, None)
        self._events = library.queue_get_main(self._client)

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
                raise self._kafka.KafkaException(self._kafka.KafkaError(problem))
            if problem and time.monotonic() > deadline:
                raise BufferError("the producer's queue stays full")
            messages = messages[taken:]
            self.poll(_POLL_S if problem else 0)

    def flush(self, timeout_s: float) -> int:
        """How many are not with the brokers by then."""
        self._library.flush(self._client, _ms(timeout_s))
        self.poll(0)
        return int(self._library.outq_len(self._client))

    def poll(self, timeout_s: float) -> None:
        """Hear what librdkafka says: statistics, and lines for the log. Waits for the first."""
        library, wait_ms = self._library, _ms(timeout_s)
        while event := library.queue_poll(self._events, wait_ms):
            wait_ms = 0
            kind = library.event_type(event)
            if kind == _STATISTICS_EVENT:
                self._on_statistics(library.event_stats(event).decode())
            elif kind == _LOG_EVENT:
                self._log(event)
            library.event_destroy(event)

    def purge(self) -> None:
        """Forget what is queued, or under way."""
        self._library.purge(self._client, _PURGE_ALL)

    def close(self, timeout_s: float) -> None:
        """Abort what is open, prepared or not, and end. Without `close`, an open transaction stays as it is."""
        try:
            if self._is_open:
                self.abort_transaction(max(timeout_s, _ABORT_S))
        finally:
            self._destroy()

    # -- transactions

    def init_transactions(self, timeout_s: float) -> None:
        self._check(self._library.init_transactions(self._client, _ms(timeout_s)))

    def begin_transaction(self) -> None:
        self._check(self._library.begin_transaction(self._client))
        self._is_open = True

    def send_offsets_to_transaction(self, places: Sequence[Any], group: str, timeout_s: float) -> None:
        """`places`: TopicPartitions of the client. `group`: its name, where the client wants its metadata."""
        library = self._library
        wanted, metadata = library.topic_partition_list_new(len(places)), []
        group_there = library.consumer_group_metadata_new(group.encode())
        try:
            for each in places:
                added = library.topic_partition_list_add(wanted, each.topic.encode(), each.partition).contents
                added.offset, text = each.offset, each.metadata.encode()
                added.metadata, added.metadata_size = text, len(text)
                metadata.append((added, text))
            self._check(library.send_offsets_to_transaction(self._client, wanted, group_there, _ms(timeout_s)))
        finally:
            for added, _text in metadata:  # the texts are Python's, and not to be freed with the list
                added.metadata, added.metadata_size = None, 0
            library.topic_partition_list_destroy(wanted)
            library.consumer_group_metadata_destroy(group_there)

    def commit_transaction(self, timeout_s: float) -> None:
        self._check(self._library.commit_transaction(self._client, _ms(timeout_s)))
        self._is_open = False

    def abort_transaction(self, timeout_s: float) -> None:
        self._check(self._library.abort_transaction(self._client, _ms(timeout_s)))
        self._is_open = False

    # -- details

    def _create(self, settings: Mapping[str, Any]) -> None:
        library, said = self._library, ctypes.create_string_buffer(512)
        conf = library.conf_new()
        for name, value in settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if library.conf_set(conf, name.encode(), text.encode(), said, len(said)):
                library.conf_destroy(conf)
                raise self._refused(said.value)
        library.conf_set_events(conf, _LOG_EVENT | _STATISTICS_EVENT)
        library.conf_set_log_cb(conf, None)
        self._client = library.new(_PRODUCER, conf, said, len(said)) or 0
        if not self._client:
            library.conf_destroy(conf)
            raise self._refused(said.value)

    def _refused(self, said: bytes) -> Exception:
        problem = self._kafka.KafkaError(_INVALID_ARGUMENT, said.decode())
        return self._kafka.KafkaException(problem)  # type: ignore[no-any-return]

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            self._topics[name] = self._library.topic_new(self._client, name.encode(), None)
        return self._topics[name]

    def _log(self, event: int) -> None:
        facility, text, level = c_char_p(), c_char_p(), c_int()
        self._library.event_log(event, byref(facility), byref(text), byref(level))
        said = (text.value or b"").decode(errors="replace")
        LIBRDKAFKA.log(_SYSLOG[min(max(level.value, 0), 7)], "%s: %s", (facility.value or b"").decode(), said)

    def _check(self, error: int | None) -> None:
        """Raises KafkaException."""
        if not error:
            return
        library = self._library
        problem = self._kafka.KafkaError(
            library.error_code(error),
            library.error_string(error).decode(errors="replace"),
            fatal=bool(library.error_is_fatal(error)),
            retriable=bool(library.error_is_retriable(error)),
            txn_requires_abort=bool(library.error_txn_requires_abort(error)),
        )
        library.error_destroy(error)
        raise self._kafka.KafkaException(problem)

    def _destroy(self) -> None:
        client, self._client = self._client, 0
        if client:
            for topic in self._topics.values():
                self._library.topic_destroy(topic)
            self._library.queue_destroy(self._events)
            self._library.destroy(client)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


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
