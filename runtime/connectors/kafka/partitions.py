"""Partitions: which there are, whose they are, and where one begins to read them.

A partition is a split, called `<topic>-<number>`. Which subtask reads it depends on its name and the parallelism alone,
so that after a change of parallelism each partition has one reader without any talk. Flink: KafkaPartitionSplit,
KafkaSourceEnumerator, OffsetsInitializer. Records are read in `partition_reader.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from ..errors import require
from .client_errors import tried
from .client_settings import ClientSettings
from .cluster_checks import ClusterChecks
from .errors import KafkaUnavailable

Start: TypeAlias = "str | int | datetime"
"""A name of STARTS, or the time, in ms of Unix or with a time zone, from which on records are read."""

STARTS = ("earliest", "latest", "group", "group-or-latest")

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""A UUID of zeros."""


class Partition(NamedTuple):
    topic: str
    number: int

    @property
    def split(self) -> str:
        return f"{self.topic}-{self.number}"

    def owner(self, parallelism: int) -> int:
        """The subtask that reads it. Those of one topic are dealt out evenly, from a subtask of the topic's own on."""
        return (zlib.crc32(self.topic.encode()) + self.number) % parallelism


@dataclass(slots=True)
class Position:
    """`next`: the offset that is read next. `end`: of a bounded source, where it ends."""

    next: int
    end: int | None = None

    @property
    def is_done(self) -> bool:
        return self.end is not None and self.next >= self.end


def check_start(start: Start, group: str | None) -> str | int:
    """As a name, or in ms. Raises ValueError."""
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise ValueError(f"start: wanted a datetime with a time zone, found {start!r}")
        return int(start.timestamp() * 1000)
    if isinstance(start, bool) or (not isinstance(start, int) and start not in STARTS):
        raise ValueError(f"start: wanted one of {', '.join(STARTS)}, a time in ms or a datetime, found {start!r}")
    if isinstance(start, str) and start.startswith("group") and group is None:
        raise ValueError(f"start={start!r} needs group=...: whose committed offsets?")
    return start


class Brokers:
    """What a source asks of the brokers beside records. Blocks; raises our errors."""

    def __init__(self, settings: ClientSettings, isolation: str, timeout_ms: int) -> None:
        self._settings, self._isolation, self._timeout_ms = settings, isolation, timeout_ms
        self._kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSource")
        self._admin_of = require("confluent_kafka.admin", extra="kafka", wanted_by="KafkaSource")
        self._admin: Any = None
        """The one client of what is asked again and again."""

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """All of these topics. Raises NoSuchTopic."""
        checks = ClusterChecks(self._settings, "KafkaSource", self._timeout_ms)
        return [Partition(topic, number) for topic in topics for number in range(checks.partitions(topic))]

    def topic_ids(self, topics: Collection[str], timeout_ms: int | None = None) -> dict[str, str]:
        """By name: what tells a topic from one of the same name that is made after it. Empty with brokers that know no
        such ids (before 2.8). Raises NoSuchTopic.
        """
        if self._admin is None:
            self._admin = self._admin_of.AdminClient(self._settings.for_reaching())
        admin = self._admin
        wanted = self._kafka.TopicCollection(list(topics))

        def ask(timeout_s: float) -> dict[str, str]:
            answers = admin.describe_topics(wanted, request_timeout=timeout_s)
            return {topic: str(answer.result().topic_id) for topic, answer in answers.items()}

        found = tried(ask, f"topic {', '.join(map(repr, topics))}", (timeout_ms or self._timeout_ms) / 1000)
        return {topic: topic_id for topic, topic_id in found.items() if topic_id != _NO_ID}

    def positions(
        self, partitions: Sequence[Partition], start: str | int, group: str | None, bounded: bool
    ) -> dict[Partition, Position]:
        """Where each begins, and ends if it is bounded: as the topics are now."""
        if not partitions:
            return {}
        if isinstance(start, str) and start.startswith("group"):
            default = "latest" if start == "group-or-latest" else "earliest"
            begins = self._offsets(partitions, default) | self._committed(partitions, str(group))
        else:
            begins = self._offsets(partitions, start)
        ends: dict[Partition, int] = self._offsets(partitions, "latest") if bounded else {}
        return {each: Position(begins[each], ends.get(each)) for each in partitions}

    def _offsets(self, partitions: Sequence[Partition], at: str | int) -> dict[Partition, int]:
        spec = self._admin_of.OffsetSpec
        wanted = (
            {"earliest": spec.earliest, "latest": spec.latest}[at]() if isinstance(at, str) else spec.for_timestamp(at)
        )
        level = self._kafka.IsolationLevel[self._isolation.upper()]
        admin = self._admin_of.AdminClient(self._settings.for_reaching())
        asked = {self._kafka.TopicPartition(*each): wanted for each in partitions}

        def ask(timeout_s: float) -> dict[Partition, int]:
            answers = admin.list_offsets(asked, isolation_level=level, request_timeout=timeout_s)
            return {Partition(tp.topic, tp.partition): int(answer.result().offset) for tp, answer in answers.items()}

        found = tried(ask, "offsets of partitions", self._timeout_ms / 1000)
        late = [each for each in partitions if found[each] < 0]  # no record is that new
        return found | (self._offsets(late, "latest") if late else {})

    def _committed(self, partitions: Sequence[Partition], group: str) -> dict[Partition, int]:
        consumer = self._kafka.Consumer(self._settings.for_reaching(group_id=group, enable_auto_commit=False))
        asked = [self._kafka.TopicPartition(*each) for each in partitions]
        try:
            doing = f"committed offsets of group {group!r}"
            found = tried(partial(consumer.committed, asked), doing, self._timeout_ms / 1000)
        finally:
            consumer.close()
        for each in found:
            if each.error is not None:
                raise KafkaUnavailable(f"committed offsets of group {group!r}: {each.error.str()}")
        return {Partition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}


def split_of(name: str) -> Partition:
    """The partition that `split` names."""
    topic, _, number = name.rpartition("-")
    return Partition(topic, int(number))


def message_of(problem: Any) -> str:
    """The text of librdkafka's error."""
    return f"{problem.str()} ({problem.name()})"
