"""Marks: which transactions of a sink have been committed, as Kafka itself knows it.

A producer's number and epoch name a session, not one of its transactions; so a commit that is tried again after a
restore could end a later transaction of the same session. Therefore each transaction has a mark in it: a committed
offset of a consumer group that the subtask has for itself, its *book*. It becomes visible with the records, or never.

The offset is the sequence in its branch; its metadata are the last sequences of all branches, newest last:
"3f2a9c01:17 77be01aa:4". Each attempt writes a branch of its own, so that a sequence is never used twice, whatever
checkpoint an attempt goes on from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..errors import require
from .array_producer import ArrayProducer
from .client_errors import tried
from .client_settings import ClientSettings
from .errors import KafkaUnavailable
from .transactional_producer import PreparedTransaction

Branches = Mapping[str, int]
"""The last sequence of each, in the order in which they were begun."""

MOST_BRANCHES = 150
"""More do not fit into the metadata (4,096 bytes); older ones are forgotten."""


def text_of(branches: Branches) -> str:
    return " ".join(f"{branch}:{sequence}" for branch, sequence in list(branches.items())[-MOST_BRANCHES:])


def branches_of(text: str | None) -> dict[str, int]:
    """Metadata that somebody else has written count as none."""
    parts = [part.partition(":") for part in (text or "").split()]
    return {branch: int(sequence) for branch, _, sequence in parts if sequence.isdigit()}


def is_marked(transaction: PreparedTransaction, branches: Branches) -> bool:
    """Whether it has been committed, as these marks say."""
    return branches.get(transaction["branch"], 0) >= transaction["sequence"]


class Book:
    """One group's. `topic`: any that exists; its partition 0 is where the mark is kept."""

    def __init__(self, settings: ClientSettings, name: str, topic: str, timeout_ms: int) -> None:
        self._kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSink")
        self._settings, self._name, self._topic, self._timeout_s = settings, name, topic, timeout_ms / 1000
        self._group: Any = None

    def read(self, *, settled: bool) -> dict[str, int]:
        """The marks that are visible. `settled`: wait until no transaction that has one is being ended."""
        consumer = self._consumer("read_committed" if settled else "read_uncommitted")
        where = [self._kafka.TopicPartition(self._topic, 0)]
        try:
            (found,) = tried(partial(consumer.committed, where), f"marks of {self._name!r}", self._timeout_s)
        finally:
            consumer.close()
        if found.error is not None:
            raise KafkaUnavailable(f"marks of {self._name!r}: {found.error.str()}")
        return branches_of(found.metadata)

    def write(self, producer: Any, branches: Branches, timeout_s: float) -> None:
        """Make this the mark of the producer's transaction."""
        sequence = list(branches.values())[-1]
        mark = self._kafka.TopicPartition(self._topic, 0, sequence, metadata=text_of(branches))
        group = self._name if isinstance(producer, ArrayProducer) else self._metadata()
        producer.send_offsets_to_transaction([mark], group, timeout_s)

    def _metadata(self) -> Any:
        """Of the group, as the client wants it."""
        if self._group is None:
            consumer = self._consumer("read_uncommitted")
            self._group = consumer.consumer_group_metadata()
            consumer.close()
        return self._group

    def _consumer(self, isolation: str) -> Any:
        return self._kafka.Consumer(
            self._settings.for_reaching(group_id=self._name, isolation_level=isolation, enable_auto_commit=False)
        )
