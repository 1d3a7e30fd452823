"""PartitionReader: what one call of the client brings, in whatever order. The rest is tested on a real broker."""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from threading import Condition
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import KafkaSink, KafkaSource
from understudy.runtime.connectors.kafka.partition_reader import PartitionReader
from understudy.runtime.connectors.kafka.partitions import Partition, Position, check_start


@dataclass
class Message:
    at: int
    problem: Any = None
    of: str = "orders"
    number: int = 0

    def error(self) -> Any:
        return self.problem

    def topic(self) -> str:
        return self.of

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.at


def reader_of(*topics: str, **positions: Position) -> Any:
    """Without its thread. `positions`: of partitions, by their splits."""
    reader: Any = PartitionReader.__new__(PartitionReader)
    reader._kafka = SimpleNamespace(Message=Message, TopicPartition=lambda *place: place)
    reader._settings = SimpleNamespace(topics=topics)
    reader._decoder = SimpleNamespace(decode=lambda _, messages: [each.at for each in messages])
    places = {Partition(name.rpartition("_")[0], int(name.rpartition("_")[2])): at for name, at in positions.items()}
    reader._positions = places
    reader._changed, reader._wake = Condition(), lambda: None
    reader._ready, reader._ahead, reader._reached = {}, {}, {}
    reader._found, reader._paused, reader._unread, reader._failure = None, frozenset(), None, None
    reader._paused_there = frozenset()
    return reader


def test_messages_that_come_together_with_the_end_of_their_partition_are_read() -> None:
    reader = reader_of("orders", orders_0=Position(0, 3))
    end = SimpleNamespace(name=lambda: "_PARTITION_EOF")
    reader._on_messages(None, [Message(0), Message(1), Message(2), Message(3, end)])
    chunks: deque[Any] = reader._ready[Partition("orders", 0)]
    assert [record for chunk in chunks for record in chunk.records] == [0, 1, 2]
    assert chunks[-1].position.is_done


def test_a_bounded_partition_gives_nothing_from_its_end_on() -> None:
    """Messages that were written after the start come with those before it."""
    reader = reader_of("orders", orders_0=Position(0, 2))
    reader._on_messages(None, [Message(0), Message(1), Message(2), Message(3)])
    reader._on_messages(None, [Message(4)])
    (chunk,) = reader._ready[Partition("orders", 0)]
    assert chunk.records == [0, 1]
    assert chunk.position == Position(2, 2)


def test_the_ends_of_several_partitions_come_together() -> None:
    """As those of empty transactions do: their marks are no messages, but have offsets."""
    reader = reader_of("orders", orders_0=Position(0, 2), orders_1=Position(0, 3))
    end = SimpleNamespace(name=lambda: "_PARTITION_EOF")
    reader._on_messages(None, [Message(2, end, number=0), Message(0, number=1), Message(3, end, number=1)])
    assert reader._is_all_read()
    assert [chunk.position.next for chunk in reader._ready[Partition("orders", 0)]] == [2]
    assert [chunk.position.next for chunk in reader._ready[Partition("orders", 1)]] == [1, 3]


@pytest.mark.parametrize("first", [5, 7])
def test_a_bounded_partition_of_which_all_the_rest_is_gone_is_at_its_end(first: int) -> None:
    """Retention has deleted what was not read yet, and it is read with allow_data_loss."""
    reader, assigned = losing_reader(first)
    assert reader.take(frozenset()).position == Position(5, 5)
    assert reader._is_all_read()
    assert not assigned


def test_a_bounded_partition_of_which_a_part_is_gone_is_read_from_the_first_that_is_there() -> None:
    reader, assigned = losing_reader(4)
    assert assigned == [("orders", 0, 4)]
    reader._on_messages(None, [Message(4), Message(5)])
    (chunk,) = reader._ready[Partition("orders", 0)]
    assert (chunk.records, chunk.position) == ([4], Position(5, 5))


def test_a_partition_that_was_paused_when_its_data_had_gone_is_paused_again() -> None:
    """Else all of it would be read ahead, into memory: what waits of a paused partition counts for nothing."""
    reader, _ = losing_reader(4, paused=True)
    paused: list[Any] = []
    reader._pause(SimpleNamespace(pause=paused.extend))
    assert paused == [("orders", 0)]


def losing_reader(first: int, *, paused: bool = False) -> tuple[Any, list[Any]]:
    """It wanted to go on from 2, and ends at 5; with what it has the consumer read then."""
    reader, assigned = reader_of("orders", orders_0=Position(2, 5)), list[Any]()
    reader._paused = reader._paused_there = frozenset(reader._positions if paused else ())
    reader._settings.allow_data_loss = True
    reader._brokers = SimpleNamespace(positions=lambda wanted, *_, **__: {each: Position(first) for each in wanted})
    consumer = SimpleNamespace(incremental_unassign=lambda _: None, incremental_assign=assigned.extend)
    reader._on_messages(consumer, [Message(2, SimpleNamespace(name=lambda: "_AUTO_OFFSET_RESET"))])
    return reader, assigned


def consumer_with(**ends: int) -> Any:
    """It knows where partitions end, by their splits; -1001 is librdkafka's for those it has not heard of."""
    answers = {(name.rpartition("_")[0], int(name.rpartition("_")[2])): end for name, end in ends.items()}
    return SimpleNamespace(get_watermark_offsets=lambda place, cached: (0, answers[place]))


def test_what_is_pending_is_what_is_unread_and_what_is_read_ahead() -> None:
    reader = reader_of("orders", orders_0=Position(0), orders_1=Position(5))
    assert reader.pending() is None
    reader._count_unread(consumer_with(orders_0=10, orders_1=-1001))
    assert reader.pending() is None, "one of them is not known yet"
    reader._count_unread(consumer_with(orders_0=10, orders_1=8))
    assert reader.pending() == 13
    reader._on_messages(None, [Message(0), Message(1)])
    reader._count_unread(consumer_with(orders_0=10, orders_1=8))
    assert reader.pending() == 13, "none is taken"
    reader.take(frozenset())
    assert reader.pending() == 11


def test_marks_of_transactions_are_not_pending_at_the_end_of_a_partition() -> None:
    reader = reader_of("orders", orders_0=Position(0))
    end = SimpleNamespace(name=lambda: "_PARTITION_EOF")
    reader._on_messages(None, [Message(0), Message(1), Message(3, end)])
    reader._count_unread(consumer_with(orders_0=3))
    reader.take(frozenset())
    assert reader.pending() == 0


def test_of_a_bounded_partition_what_comes_after_its_end_is_not_pending() -> None:
    reader = reader_of("orders", orders_0=Position(0, 2), orders_1=Position(4, 4))
    reader._count_unread(consumer_with(orders_0=10))
    assert reader.pending() == 2


def test_what_was_taken_leaves_room_for_as_many_messages() -> None:
    reader = reader_of("orders", orders_0=Position(0))
    reader._on_messages(None, [Message(0), Message(1), Message(2)])
    assert reader.take(frozenset()).records == [0, 1, 2]
    assert reader._ahead == {Partition("orders", 0): 0}


@pytest.mark.parametrize("is_paused", [True, False])
def test_what_waits_of_a_paused_partition_takes_no_room_from_the_others(is_paused: bool) -> None:
    class Ended(Condition):
        """Whoever waits here is closed."""

        def wait(self, timeout: float | None = None) -> bool:
            reader._closed = True
            return True

    reader = reader_of("orders", orders_0=Position(0), orders_1=Position(0))
    reader._settings.batch_rows = 2
    reader._changed, reader._closed = Ended(), False
    reader._on_messages(None, [Message(at) for at in range(8)])
    reader._paused = frozenset({Partition("orders", 0)} if is_paused else ())
    assert reader._wait_for_room() is is_paused


@pytest.mark.parametrize("topics", [("orders",), ("orders", "refunds")])
@given(data=st.data())
def test_each_partition_gets_its_own_messages_in_order(topics: tuple[str, ...], data: st.DataObject) -> None:
    places = [(topic, number) for topic in topics for number in (0, 1)]
    order = data.draw(st.lists(st.sampled_from(places), max_size=20))
    reader = reader_of(*topics, **{f"{topic}_{number}": Position(0, None) for topic, number in places})
    reader._on_messages(None, [Message(at, None, *place) for at, place in enumerate(order)])
    for place in places:
        (chunk,) = reader._ready.get(Partition(*place), [None])
        own = [at for at, each in enumerate(order) if each == place]
        assert own == (chunk.records if chunk else [])
        assert not own or chunk.position.next == own[-1] + 1


def test_a_start_is_a_moment_in_ms() -> None:
    noon = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)
    assert check_start(noon, None) == check_start(noon.astimezone(timezone(timedelta(hours=5))), None) == 1796040000250


def test_a_partition_that_nobody_had_found_yet_begins_where_the_source_does() -> None:
    """Of others, which have come since, all is read. Old subtask 1 had only begun to look."""
    source = KafkaSource("orders", "localhost:9")
    source._old_parallelism = 2
    partitions = [Partition("orders", number) for number in range(4)]
    for unfound, wanted in ((None, {0, 1}), ({1}, {1}), (set(), set())):
        source._unfound = unfound
        assert {each.owner(2) for each in partitions if source._is_initial(each)} == wanted


@pytest.mark.parametrize(("timeout_ms", "is_long_enough"), [(89_999, False), (90_000, True)])
def test_a_transaction_outlasts_three_checkpoints_and_a_restart(timeout_ms: int, is_long_enough: bool) -> None:
    sink = KafkaSink("orders", "localhost:9", transaction_timeout_ms=timeout_ms)
    with nullcontext() if is_long_enough else pytest.raises(ValueError, match="wanted at least 90000"):
        sink.check_interval(10_000)
    KafkaSink("orders", "localhost:9", transaction_timeout_ms=1_000, guarantee="at-least-once").check_interval(10_000)
