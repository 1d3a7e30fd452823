"""The kit's contracts, on a real broker. A life takes seconds, so of all points CI tries some, and `slow` many."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from tests.systems.kafka import KafkaBroker
from understudy import KafkaSink, KafkaSource
from understudy.runtime.connectors.kafka.partition_reader import PartitionReader
from understudy.runtime.connectors.kafka.partitions import Position
from understudy.testing import SinkContract, SourceContract

from .topics import put, values

pytestmark = pytest.mark.processes

RECORDS = 24


class _Sink(SinkContract):
    outside = ("cimpl", "confluent_kafka", "understudy.runtime.connectors.kafka.connection")
    broker: ClassVar[KafkaBroker]
    topic: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _with_broker(self, kafka: KafkaBroker) -> None:
        type(self).broker = kafka

    def clear(self) -> None:
        type(self).topic = self.broker.create_topic(2)

    def make_sink(self) -> KafkaSink:
        return KafkaSink(self.topic, self.broker.bootstrap, transactional_id_prefix=self.topic, retry_ms=20_000)

    def contents(self) -> list[Any]:
        return values(self.broker, self.topic)


class TestKafkaSinkAtSomePoints(_Sink):
    most_points = 3


@pytest.mark.slow
class TestKafkaSink(_Sink):
    most_points = 60


class _Source(SourceContract):
    """A thread of its own polls the broker."""

    outside = ("cimpl", "confluent_kafka")

    broker: ClassVar[KafkaBroker]
    topic: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _with_broker(self, kafka: KafkaBroker) -> None:
        type(self).broker = kafka

    def clear(self) -> None:
        type(self).topic = self.broker.create_topic(3)
        put(self.broker, self.topic, self.wanted())

    def make_source(self) -> KafkaSource:
        return KafkaSource(self.topic, self.broker.bootstrap, bounded=True, batch_rows=4)

    def wanted(self) -> list[Any]:
        return [{"key": f"k{index}", "n": index} for index in range(RECORDS)]


class TestKafkaSourceAtSomePoints(_Source):
    most_points = 3


@pytest.mark.slow
class TestKafkaSource(_Source):
    most_points = 60


def moves_its_offset_at_fetch(patch: pytest.MonkeyPatch) -> None:
    offset = KafkaSource.offset

    def hasty(self: Any) -> Any:
        if self._reader is not None and self._positions is not None:
            self._positions = {each: Position(at.next, at.end) for each, at in self._reader._positions.items()}
        return offset(self)

    patch.setattr(KafkaSource, "offset", hasty)


def loses_what_finds_no_room(patch: pytest.MonkeyPatch) -> None:
    put = PartitionReader._put

    def careless(self: Any, chunk: Any) -> None:
        if self._ahead.get(chunk.partition):
            chunk = replace(chunk, records=[], messages=0)
        put(self, chunk)

    patch.setattr(PartitionReader, "_put", careless)


def commits_what_waits_when_it_is_closed(patch: pytest.MonkeyPatch) -> None:
    closed = KafkaSource.close

    def close(self: Any) -> None:
        if self._reader is not None:
            self._reader.commit({each: at.next for each, at in dict(self._reader._positions).items()})
        closed(self)

    patch.setattr(KafkaSource, "close", close)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "test"),
    [
        (moves_its_offset_at_fetch, "test_a_checkpoint_at_each_moment_of_its_threads"),
        (loses_what_finds_no_room, "test_its_threads_have_their_turns_in_other_orders"),
        (commits_what_waits_when_it_is_closed, "test_a_cancel_at_each_moment_of_its_threads"),
    ],
    ids=lambda it: getattr(it, "__name__", None),
)
def test_a_mistake_in_the_thread_or_behind_it_is_found(
    mistake: Any, test: str, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Contract(_Source):
        timeout, most_points = 10, 60

        def make_source(self) -> KafkaSource:
            start: Any = {"group": self.topic, "start": "group"}
            return KafkaSource(self.topic, self.broker.bootstrap, bounded=True, batch_rows=4, **start)

    Contract.broker = kafka
    mistake(monkeypatch)
    with pytest.raises(AssertionError) as caught:
        getattr(Contract(), test)()
    print(caught.value)
