"""The kit's contracts, on a real broker. A life takes seconds, so of all points CI tries some, and `slow` many."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.systems.kafka import KafkaBroker
from understudy import KafkaSink, KafkaSource
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
