"""ArrayConsumer: a consumer of librdkafka that gives messages of one topic as offsets and values, thousands at a time.

It has the methods of `confluent_kafka.Consumer` that the source uses, which do and raise the same, and `take` in place
of `consume`. Keys, times and headers are not read. How the library is reached, and when it can be: `librdkafka.py`.
Calls of one thread alone, which hears `on_error` and `on_commit` meanwhile.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import byref, c_void_p
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np

from ..errors import require
from .librdkafka import CONSUMER, MESSAGE, ON_COMMIT, ON_ERROR, in_ms, library

_WORDS = MESSAGE.itemsize // 8


class ArrayMessage(NamedTuple):
    """One, with the methods of `confluent_kafka.Message` that there are."""

    at: int
    payload: bytes | None

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes | None:
        return self.payload


class ArrayMessages(Sequence[ArrayMessage]):
    """Of one partition, in their order."""

    def __init__(self, offsets: np.ndarray[Any, Any], values: list[bytes | None]) -> None:
        self.offsets, self.values = offsets, values

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, place: int) -> ArrayMessage: ...
    @overload
    def __getitem__(self, place: slice) -> ArrayMessages: ...
    def __getitem__(self, place: int | slice) -> ArrayMessage | ArrayMessages:
        if isinstance(place, slice):
            return ArrayMessages(self.offsets[place], self.values[place])
        return ArrayMessage(int(self.offsets[place]), self.values[place])


class Problem(NamedTuple):
    """What came in place of a message. The partition is 0 where it is of none."""

    partition: int
    offset: int
    error: Any
    """A KafkaError."""


class Taken(NamedTuple):
    """Partitions in the order of their first message, and problems, which came among them."""

    messages: list[tuple[int, ArrayMessages]]
    problems: list[Problem]


class _Memory:
    """Words that are somewhere, for NumPy."""

    def __init__(self, address: int, words: int) -> None:
        self.__array_interface__ = {"shape": (words,), "typestr": "<u8", "data": (address, True), "version": 3}


class ArrayConsumer:
    """`settings`: of librdkafka. Raises KafkaException where one is none."""

    def __init__(
        self, settings: Mapping[str, Any], on_error: Callable[[Any], None], on_commit: Callable[[Any, Any], None]
    ) -> None:
        self._client = 0
        there = library()
        assert there is not None, "can_do was not asked"
        self._library, self._on_error, self._on_commit = there, on_error, on_commit
        self._kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSource")
        self._called = ON_ERROR(self._erred), ON_COMMIT(self._committed)
        self._client = there.client(CONSUMER, settings, self._prepare)
        there.poll_set_consumer(self._client)
        self._queue = there.queue_get_consumer(self._client)
        self._pointers = np.zeros(0, np.uint64)

    def __del__(self) -> None:
        self._destroy()

    # -- messages

    def take(self, most: int, timeout_s: float) -> Taken | None:
        """Waits until there are `most`, but no longer than the time."""
        if len(self._pointers) < most:
            self._pointers = np.zeros(most, np.uint64)
        count = self._library.consume_batch_queue(
            self._queue if self._there else 0, in_ms(timeout_s), self._pointers.ctypes.data, most
        )
        if count <= 0:
            return None
        pointers = self._pointers[:count]
        try:
            return self._taken(pointers)
        finally:
            deque(map(self._library.message_destroy, pointers.tolist()), 0)

    def _taken(self, pointers: np.ndarray[Any, Any]) -> Taken:
        there = _messages_at(pointers)
        problems = [self._problem(int(pointers[row]), there[row]) for row in np.flatnonzero(there["err"])]
        if problems:
            there = there[there["err"] == 0]
        parts: dict[int, list[np.ndarray[Any, Any]]] = {}
        for number, run in _runs(there):
            parts.setdefault(number, []).append(run)
        found = {number: runs[0] if len(runs) == 1 else np.concatenate(runs) for number, runs in parts.items()}
        return Taken([(number, ArrayMessages(run["offset"], _values(run))) for number, run in found.items()], problems)

    def _problem(self, pointer: int, message: Any) -> Problem:
        text = (self._library.message_errstr(pointer) or b"").decode(errors="replace")
        return Problem(
            max(int(message["partition"]), 0), int(message["offset"]), self._kafka.KafkaError(int(message["err"]), text)
        )

    # -- as the package's consumer

    def incremental_assign(self, places: Sequence[Any]) -> None:
        with self._library.places(places) as listed:
            self._library.check(self._library.incremental_assign(self._there, listed))

    def incremental_unassign(self, places: Sequence[Any]) -> None:
        with self._library.places(places) as listed:
            self._library.check(self._library.incremental_unassign(self._there, listed))

    def pause(self, places: Sequence[Any]) -> None:
        with self._library.places(places) as listed:
            self._library.check_code(self._library.pause_partitions(self._there, listed))

    def resume(self, places: Sequence[Any]) -> None:
        with self._library.places(places) as listed:
            self._library.check_code(self._library.resume_partitions(self._there, listed))

    def commit(self, offsets: Sequence[Any], asynchronous: bool) -> None:
        with self._library.places(offsets) as listed:
            self._library.check_code(self._library.commit(self._there, listed, int(asynchronous)))

    def list_topics(self, _topic: str, timeout: float) -> None:
        """Only whether a broker answers. Raises KafkaException."""
        found = c_void_p()
        self._library.check_code(self._library.metadata(self._there, 0, None, byref(found), in_ms(timeout)))
        self._library.metadata_destroy(found)

    def close(self) -> None:
        if self._client:
            self._library.consumer_close(self._client)
        self._destroy()

    # -- details

    def _prepare(self, conf: int) -> None:
        on_error, on_commit = self._called
        self._library.conf_set_error_cb(conf, on_error)
        self._library.conf_set_offset_commit_cb(conf, on_commit)

    def _erred(self, _client: int, code: int, text: bytes, _given: int) -> None:
        self._on_error(self._kafka.KafkaError(code, (text or b"").decode(errors="replace")))

    def _committed(self, _client: int, code: int, _places: int, _given: int) -> None:
        self._on_commit(self._kafka.KafkaError(code) if code else None, [])

    @property
    def _there(self) -> int:
        """Raises RuntimeError when it is closed: librdkafka would end the process."""
        if not self._client:
            raise RuntimeError(f"this {type(self).__name__} is closed: make another one")
        return self._client

    def _destroy(self) -> None:
        client, self._client = self._client, 0
        if client:
            self._library.queue_destroy(self._queue)
            self._library.destroy(client)
            del self._called  # they know this object


def _messages_at(pointers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The messages that these point to. They are in memory of `malloc`, and so at whole words."""
    words = pointers >> np.uint64(3)
    first = int(words.min())
    memory = np.asarray(_Memory(first * 8, int(words.max()) - first + _WORDS))
    places = (words - np.uint64(first)).astype(np.int64)
    return memory[places[:, None] + np.arange(_WORDS)].view(MESSAGE)[:, 0]  # type: ignore[no-any-return]


def _runs(messages: np.ndarray[Any, Any]) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Those of one partition that follow each other."""
    if not len(messages):
        return
    numbers = messages["partition"]
    starts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(messages)]
    for first, end in pairwise(starts):
        yield int(numbers[first]), messages[first:end]


def _values(messages: np.ndarray[Any, Any]) -> list[bytes | None]:
    """None of those that have none."""
    payloads = messages["payload"].tolist()
    values: list[bytes | None] = list(map(_copied, payloads, messages["len"].tolist()))
    if 0 in payloads:
        values = [value if payload else None for value, payload in zip(values, payloads, strict=True)]
    return values


_copied = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)
