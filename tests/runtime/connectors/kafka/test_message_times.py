"""The times of messages, as metadata of their records."""

from __future__ import annotations

from dataclasses import dataclass

from understudy import KafkaSource
from understudy.runtime.connectors.kafka.message_decoder import MessageDecoder
from understudy.runtime.connectors.kafka.partitions import Partition


@dataclass(frozen=True)
class Message:
    """As confluent_kafka's."""

    of_time: tuple[int, int]

    def value(self) -> bytes:
        return b"{}"

    def timestamp(self) -> tuple[int, int]:
        return self.of_time


def test_a_message_without_a_time_has_none_and_one_of_1970_has_its_own() -> None:
    source = KafkaSource("orders", "nowhere:9092", metadata=["timestamp"])
    messages = [Message((0, -1)), Message((1, 0)), Message((2, 7))]
    records = MessageDecoder(source._settings).decode(Partition("orders", 0), messages)
    assert records == [{"kafka_timestamp": time_ms} for time_ms in (None, 0, 7)]
