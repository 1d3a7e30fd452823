"""PartitionReader: the thread that reads a subtask's partitions, decodes what has come, and has it ready for `poll`.

    finding its partitions -> reading -> closed or failed

It runs ahead of `poll` by a bounded number of messages. A partition that the runtime has paused is paused at the
broker's too; what of it is there already waits, and holds the others up in nothing. `take` never blocks. Offsets of
checkpoints are handed to it, to be committed to the group. Which records belong to a checkpoint is decided in
`kafka_source.py`: this thread knows no checkpoint.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Condition, Thread
from typing import Any

from ....actors.flow.elements import Batch
from ..errors import require
from .client_errors import error_of
from .errors import DataGone, KafkaRefused, KafkaUnavailable
from .message_decoder import MessageDecoder
from .partitions import Brokers, Partition, Position, message_of
from .reading import ReadingSettings

log = logging.getLogger(__name__)

_LINGER_S, _IDLE_S, _RETRY_S = 0.01, 0.2, 1.0
_SAME_TOPICS_S, _ASK_MS = 10.0, 5_000
"""How often to ask whether the topics are still the same (not less often than for new partitions), and how long the
answer may take.
"""
_COUNT_S = 1.0
"""How often to count what there is still to read."""
_AHEAD = 4
"""How many full batches of messages are read ahead."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one partition, and the position behind them. There are none where only the position has moved."""

    partition: Partition
    records: Batch
    position: Position
    messages: int = 0


class PartitionReader:
    """`known`: positions that are restored, in topics with these `topic_ids`, of which a topic has several if subtasks
    have seen it made again; none: this is a fresh start. `is_initial` says of a partition that is not
    known whether it begins at `settings.start`; others are new ones, and read from their beginning.
    """

    def __init__(
        self,
        settings: ReadingSettings,
        known: Mapping[Partition, Position],
        topic_ids: Collection[tuple[str, str]],
        is_mine: Callable[[Partition], bool],
        is_initial: Callable[[Partition], bool],
        wake: Callable[[], None],
    ) -> None:
        self._settings, self._is_mine, self._is_initial, self._wake = settings, is_mine, is_initial, wake
        self._decoder = MessageDecoder(settings)
        self._brokers = Brokers(settings.client, settings.isolation, settings.retry_ms)
        self._kafka = require("confluent_kafka", extra="kafka", wanted_by="KafkaSource")
        self._changed = Condition()
        self._ready: dict[Partition, deque[Chunk]] = {}
        self._ahead: dict[Partition, int] = {}
        """Messages in `_ready`."""
        self._positions = {each: Position(at.next, at.end) for each, at in known.items()}
        """Behind what was read; of the thread alone."""
        self._reached: dict[Partition, int] = {}
        """The offset behind all that there was when a partition was last read to its end: marks of transactions have
        offsets, too, and are no messages.
        """
        self._unread: int | None = None
        """Offsets behind what was read, by the last answers of the brokers; None: there is none yet."""
        self._restored_ids = topic_ids
        self.topic_ids: dict[str, str] = {}
        """Of the topics that are read; there before their partitions are found."""
        self.are_same = False
        """Of a bounded source: all is read, and was in these topics."""
        self._found: dict[Partition, Position] | None = None
        self._closed = False
        self._failure: BaseException | None = None
        self._paused: frozenset[Partition] = frozenset()
        self._paused_there: frozenset[Partition] = frozenset()
        self._to_commit: dict[Partition, int] = {}
        self._down_since: float | None = None
        self._refusal = ""
        self._thread = Thread(target=self._run, name="kafka-source", daemon=True)
        self._thread.start()

    # -- calls of the task's thread

    def take(self, paused: frozenset[Partition]) -> Chunk | dict[Partition, Position] | None:
        """Partitions that were found, each before its first records; or else the next records of a partition that is
        not paused. Raises what the thread met.
        """
        with self._changed:
            if self._found is not None:
                found, self._found = self._found, None
                return found
            if paused != self._paused:
                self._paused = paused
                self._changed.notify()
            for partition, chunks in self._ready.items():
                if chunks and partition not in paused:
                    chunk = chunks.popleft()
                    self._ahead[partition] -= chunk.messages
                    self._ready[partition] = self._ready.pop(partition)  # the others come first the next time
                    self._changed.notify()
                    return chunk
            if self._failure is not None:
                raise self._failure
            return None

    def pending(self) -> int | None:
        """How many messages `take` has yet to give, as far as the brokers have said; None: they have not yet."""
        with self._changed:
            return None if self._unread is None else self._unread + sum(self._ahead.values())

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Let the group say that it has read until there."""
        with self._changed:
            self._to_commit |= offsets
            self._changed.notify()

    def close(self, timeout_s: float) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout_s)

    # -- the thread

    def _run(self) -> None:
        try:
            mine = self._mine()
            self.topic_ids = self._brokers.topic_ids(self._settings.topics)
            self._check_restored()
            found = self._find(mine, first=True)
            settings = self._settings.consumer(self._on_error, self._on_commit)
            consumer = self._kafka.Consumer(settings)
            try:
                self._begin(consumer, found)
                self._read(consumer)
            finally:
                consumer.close()
        except BaseException as error:  # noqa: BLE001  (the task raises it)
            self._failure = error
            self._wake()

    def _mine(self) -> list[Partition]:
        return [each for each in self._brokers.partitions(self._settings.topics) if self._is_mine(each)]

    def _find(self, mine: Sequence[Partition], first: bool) -> dict[Partition, Position]:
        """Those of this subtask's partitions that are not read yet, and where they begin; the first time all."""
        new = [each for each in mine if each not in self._positions]
        initial = [each for each in new if self._is_initial(each)] if first else []
        later = [] if self._settings.bounded else [each for each in new if each not in initial]
        settings = self._settings
        found = self._brokers.positions(initial, settings.start, settings.group, settings.bounded)
        found |= self._brokers.positions(later, "earliest", None, bounded=False)
        return (self._positions if first else {}) | found

    def _check_restored(self) -> None:
        """Positions of a topic that was made again are none. Raises DataGone."""
        for topic, restored in self._restored_ids:
            if self.topic_ids.get(topic, restored) != restored:
                text = _made_again(topic, restored, self.topic_ids[topic])
                if not self._settings.allow_data_loss:
                    raise DataGone(text)
                lost = [each for each in self._positions if each.topic == topic]
                bounded = self._settings.bounded
                self._positions |= self._brokers.positions(lost, "earliest", None, bounded)
                log.warning("%s. It is read from its beginning, as allow_data_loss is set", text)

    def _check_same(self, must: bool) -> None:
        """All that was read until now lay in the topics that it began with. Raises DataGone; and KafkaUnavailable if it
        `must` know that now.
        """
        try:
            now = self._brokers.topic_ids(self._settings.topics, None if must else _ASK_MS)
        except KafkaUnavailable:  # who answers that may be away while records come
            if must:
                raise
            return
        for topic, before in self.topic_ids.items():
            if now.get(topic, before) != before:
                raise DataGone(_made_again(topic, before, now[topic]))

    def _begin(self, consumer: Any, found: Mapping[Partition, Position]) -> None:
        self._positions |= {each: Position(at.next, at.end) for each, at in found.items()}
        reading = [self._place(each, at.next) for each, at in found.items() if not at.is_done]
        if reading:
            consumer.incremental_assign(reading)
        with self._changed:
            self._found = (self._found or {}) | {each: Position(at.next, at.end) for each, at in found.items()}
        self._wake()

    def _read(self, consumer: Any) -> None:
        discover_s = self._settings.discover_ms / 1000
        same_s = min(discover_s, _SAME_TOPICS_S)
        discover_at, same_at, count_at = time.monotonic() + discover_s, time.monotonic() + same_s, 0.0
        while self._wait_for_room():
            self._pause(consumer)
            self._commit(consumer)
            if not self._settings.bounded and time.monotonic() >= discover_at:
                if found := self._find(self._mine(), first=False):
                    self._begin(consumer, found)
                discover_at = time.monotonic() + discover_s
            is_last = self._settings.bounded and not self.are_same and self._is_all_read()
            if is_last or time.monotonic() >= same_at:
                self._check_same(must=is_last)
                same_at = time.monotonic() + same_s
            if is_last:
                self.are_same = True
                self._wake()
            messages = consumer.consume(self._settings.batch_rows, _LINGER_S) or consumer.consume(1, _IDLE_S)
            if messages:
                self._on_messages(consumer, messages)
            if time.monotonic() >= count_at:
                self._count_unread(consumer)
                count_at = time.monotonic() + _COUNT_S
            self._check_brokers(consumer)
        self._commit(consumer, wait=True)

    def _count_unread(self, consumer: Any) -> None:
        unread = 0
        for partition, at in self._positions.items():
            if not at.is_done:
                _, end = consumer.get_watermark_offsets(self._place(partition), cached=True)
                if end < 0:
                    return  # nothing of it has come yet
                until = end if at.end is None else min(end, at.end)
                unread += max(0, until - max(at.next, self._reached.get(partition, 0)))
        self._unread = unread

    def _is_all_read(self) -> bool:
        return all(at.is_done for at in self._positions.values())

    def _wait_for_room(self) -> bool:
        """Whether to go on."""
        limit = _AHEAD * self._settings.batch_rows
        with self._changed:
            while not self._closed:
                ahead = sum(count for partition, count in self._ahead.items() if partition not in self._paused)
                if ahead < limit:
                    return True
                self._changed.wait(_IDLE_S)
        return False

    def _pause(self, consumer: Any) -> None:
        paused = self._paused
        if paused != self._paused_there:
            begun = self._positions.keys()
            if now := [self._place(each) for each in paused - self._paused_there if each in begun]:
                consumer.pause(now)
            if again := [self._place(each) for each in self._paused_there - paused if each in begun]:
                consumer.resume(again)
            self._paused_there = paused

    def _on_messages(self, consumer: Any, messages: list[Any]) -> None:
        """Shares them out to their partitions, by functions in C where there are many. Problems, as the end of a
        partition is one, come after the messages that were read with them.
        """
        kind = self._kafka.Message
        problems: list[Any] = []
        if any(problem is not None for problem in map(kind.error, messages)):  # `==` of its errors fails with None
            problems = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        by_place: dict[Partition, list[Any]] = defaultdict(list)
        for place, run in self._runs(messages):
            by_place[place] += run
        for place, those in by_place.items():
            self._on_partition(place, those)
        for message in problems:
            self._on_problem(consumer, message, message.error())

    def _runs(self, messages: list[Any]) -> Iterator[tuple[Partition, list[Any]]]:
        """Those of one partition that follow each other: brokers send thousands at a time."""
        kind, topics = self._kafka.Message, self._settings.topics
        first = 0
        for number, same in groupby(map(kind.partition, messages)):
            run = messages[first : first + len(list(same))]
            first += len(run)
            if len(topics) == 1:
                yield Partition(topics[0], number), run
            else:
                yield from ((Partition(topic, number), list(those)) for topic, those in groupby(run, kind.topic))

    def _on_partition(self, partition: Partition, messages: list[Any]) -> None:
        at = self._positions[partition]
        if at.is_done:
            return
        last = messages[-1].offset()
        if at.end is not None and last >= at.end:
            messages = [each for each in messages if each.offset() < at.end]
        at.next = last + 1 if at.end is None else min(last + 1, at.end)
        records = self._decoder.decode(partition, messages) if messages else []
        self._put(Chunk(partition, records, Position(at.next, at.end), len(messages)))

    def _on_problem(self, consumer: Any, message: Any, problem: Any) -> None:
        name, partition = problem.name(), Partition(message.topic() or "", message.partition() or 0)
        if name == "_PARTITION_EOF":
            at = self._positions[partition]
            self._reached[partition] = message.offset()
            if at.end is not None and message.offset() >= at.end and not at.is_done:
                at.next = at.end
                self._put(Chunk(partition, [], Position(at.next, at.end)))
        elif name in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            self._on_data_gone(consumer, partition)
        elif not problem.retriable():
            raise error_of(problem, f"topic {partition.topic!r}")

    def _on_data_gone(self, consumer: Any, partition: Partition) -> None:
        at = self._positions[partition]
        first = self._brokers.positions([partition], "earliest", None, bounded=False)[partition].next
        text = f"{partition.split}: records from offset {at.next} on are gone; the first that is there is {first}"
        if not self._settings.allow_data_loss:
            raise DataGone(
                f"{text}. Retention has deleted them before they were read, or the topic was made again. To go on "
                "without them, set allow_data_loss=True"
            )
        log.warning("%s: going on from there, as allow_data_loss is set", text)
        consumer.incremental_unassign([self._place(partition)])
        if at.end is not None and first >= at.end:
            at.next = at.end
            self._put(Chunk(partition, [], Position(at.next, at.end)))
            return
        at.next = first
        consumer.incremental_assign([self._place(partition, first)])
        self._paused_there -= {partition}  # of what is assigned again the client has forgotten it

    def _put(self, chunk: Chunk) -> None:
        with self._changed:
            self._ready.setdefault(chunk.partition, deque()).append(chunk)
            self._ahead[chunk.partition] = self._ahead.get(chunk.partition, 0) + chunk.messages
        self._wake()

    def _place(self, partition: Partition, offset: int | None = None) -> Any:
        if offset is None:
            return self._kafka.TopicPartition(*partition)
        return self._kafka.TopicPartition(*partition, offset)

    def _commit(self, consumer: Any, wait: bool = False) -> None:
        with self._changed:
            offsets, self._to_commit = self._to_commit, {}
        if offsets and self._settings.group is not None:
            try:
                consumer.commit(offsets=[self._place(*each) for each in offsets.items()], asynchronous=not wait)
            except self._kafka.KafkaException as raised:
                self._on_commit(raised.args[0], [])

    def _on_commit(self, problem: Any, _offsets: Any) -> None:
        if problem is not None and problem.name() != "_NO_OFFSET":
            log.warning("offsets of group %r were not committed: %s", self._settings.group, message_of(problem))

    # -- brokers that are away

    def _on_error(self, problem: Any) -> None:
        if problem.name() in ("_AUTHENTICATION", "_SSL"):
            self._refusal = problem.str()
        elif self._down_since is None and problem.name() in ("_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE"):
            self._down_since = time.monotonic()
            log.warning("%s: brokers do not answer: %s", self._settings.name, message_of(problem))

    def _check_brokers(self, consumer: Any) -> None:
        if self._refusal:
            raise KafkaRefused(f"{self._settings.client.bootstrap_servers}: {self._refusal}")
        if self._down_since is None:
            return
        try:
            consumer.list_topics(self._settings.topics[0], timeout=_RETRY_S)
        except self._kafka.KafkaException as raised:
            away_ms = (time.monotonic() - self._down_since) * 1000
            if away_ms > self._settings.retry_ms:
                raise KafkaUnavailable(
                    f"no broker of {self._settings.client.bootstrap_servers} has answered for {away_ms / 1000:.0f} s: "
                    f"{message_of(raised.args[0])}"
                ) from None
        else:
            self._down_since = None
            log.warning("%s: brokers answer again", self._settings.name)


def _made_again(topic: str, before: str, now: str) -> str:
    return (
        f"topic {topic!r} was deleted and made again: its id was {before}, and is {now}. The offsets that this job has "
        "are those of records that are gone. Start it without its checkpoint or savepoint; or, to go on with its state "
        "and read the new topic from its beginning, set allow_data_loss=True"
    )
