"""The librdkafka that confluent_kafka has loaded, by its public C interface (`rdkafka.h`), through ctypes.

That package's producer wants a call for each message, and reports each: more than half of what a sink costs. One for
thousands at a time is in `array_producer.py`; here are the functions that it uses, the settings it is made with, and
errors, as the package has them. The library is found by the package's own extension module, so that it is the same
one, wherever it lies; where it cannot be, as on Windows, `can_do` says no, and the package's producer is used. Why:
docs/decisions/0064.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import (
    POINTER,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_void_p,
)
from functools import cache
from typing import Any

import numpy as np

from ..errors import require
from .client_settings import LIBRDKAFKA

_PRODUCER = 0

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

_INVALID_ARGUMENT = -186


class Place(ctypes.Structure):
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
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "conf_new": (c_void_p, ()),
    "conf_set": (c_int, (c_void_p, c_char_p, c_char_p, *_TEXT)),
    "conf_set_events": (None, (c_void_p, c_int)),
    "conf_set_log_cb": (None, (c_void_p, c_void_p)),
    "conf_destroy": (None, (c_void_p,)),
    "new": (c_void_p, (c_int, c_void_p, *_TEXT)),
    "destroy": (None, (c_void_p,)),
    "queue_get_main": (c_void_p, (c_void_p,)),
    "queue_poll": (c_void_p, (c_void_p, c_int)),
    "queue_destroy": (None, (c_void_p,)),
    "event_type": (c_int, (c_void_p,)),
    "event_stats": (c_char_p, (c_void_p,)),
    "event_destroy": (None, (c_void_p,)),
    "topic_new": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "last_error": (c_int, ()),
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
    "topic_partition_list_add": (POINTER(Place), (c_void_p, c_char_p, c_int32)),
    "topic_partition_list_destroy": (None, (c_void_p,)),
    "error_code": (c_int, (c_void_p,)),
    "error_string": (c_char_p, (c_void_p,)),
    "error_is_fatal": (c_int, (c_void_p,)),
    "error_is_retriable": (c_int, (c_void_p,)),
    "error_txn_requires_abort": (c_int, (c_void_p,)),
    "error_destroy": (None, (c_void_p,)),
}
"""Of librdkafka, all with `rd_kafka_` before: what they return and take."""


class Library:
    """The functions, by their names. Raises OSError or AttributeError where they cannot be found."""

    def __init__(self) -> None:
        if ctypes.sizeof(c_void_p) != 8:
            raise OSError("MESSAGE is as machines of 64 bits have it")
        self._kafka = require("confluent_kafka", extra="kafka", wanted_by="Kafka")
        loaded = ctypes.CDLL(self._kafka.cimpl.__file__)  # with it what it was linked with
        for name, (returns, takes) in FUNCTIONS.items():
            function = getattr(loaded, f"rd_kafka_{name}")
            function.restype, function.argtypes = returns, takes
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def producer(self, settings: Mapping[str, Any], events: int) -> int:
        """A new one, with these kinds of events. Raises KafkaException where a setting is none."""
        said = ctypes.create_string_buffer(512)
        conf = self.conf_new()
        for name, value in settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if name != "logger" and self.conf_set(conf, name.encode(), text.encode(), said, len(said)):
                self.conf_destroy(conf)
                raise self.problem(_INVALID_ARGUMENT, said.value)
        self.conf_set_log_cb(conf, None)
        self.conf_set_events(conf, events)
        made = self.new(_PRODUCER, conf, said, len(said))
        if not made:
            self.conf_destroy(conf)
            raise self.problem(_INVALID_ARGUMENT, said.value)
        return int(made)

    def problem(self, code: int, text: bytes | None = None) -> Exception:
        """As the package raises it."""
        given = () if text is None else (text.decode(errors="replace"),)
        return self._kafka.KafkaException(self._kafka.KafkaError(code, *given))  # type: ignore[no-any-return]

    def check(self, error: int | None) -> None:
        """Raises KafkaException for an error object, which goes."""
        if not error:
            return
        problem = self._kafka.KafkaError(
            self.error_code(error),
            self.error_string(error).decode(errors="replace"),
            fatal=bool(self.error_is_fatal(error)),
            retriable=bool(self.error_is_retriable(error)),
            txn_requires_abort=bool(self.error_txn_requires_abort(error)),
        )
        self.error_destroy(error)
        raise self._kafka.KafkaException(problem)

    @contextmanager
    def places(self, wanted: Sequence[Any]) -> Iterator[int]:
        """A list of the library's with these of the package's TopicPartitions."""
        listed = self.topic_partition_list_new(len(wanted))
        texts = []
        try:
            for each in wanted:
                added = self.topic_partition_list_add(listed, each.topic.encode(), each.partition).contents
                added.offset = each.offset
                if each.metadata is not None:
                    added.metadata = text = each.metadata.encode()
                    added.metadata_size = len(text) + 1  # with its zero: a reader's library looks for one
                    texts.append((added, text))
            yield listed
        finally:
            for added, _text in texts:  # they are Python's, and not to be freed with the list
                added.metadata, added.metadata_size = None, 0
            self.topic_partition_list_destroy(listed)


@cache
def library() -> Library | None:
    """None: it cannot be reached."""
    try:
        return Library()
    except (OSError, AttributeError):
        return None


def can_do(settings: Mapping[str, Any]) -> bool:
    """Whether a producer with these settings can be made here: without functions, and without librdkafka's own lines,
    which the package hands to `logging`.
    """
    plain = all(isinstance(value, str | int | float) for name, value in settings.items() if name != "logger")
    return plain and not LIBRDKAFKA.isEnabledFor(logging.ERROR) and library() is not None


def in_ms(seconds: float) -> int:
    return int(seconds * 1000)
