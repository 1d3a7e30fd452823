"""What the tests here do with topics: write to one as any producer does, and read what a reader may see of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.systems.kafka import KafkaBroker


def put(broker: KafkaBroker, topic: str, values: Iterable[Any], partition: int | None = None, **more: Any) -> None:
    """Values as they are if they are bytes or None, else as JSON; of a dict with "key" that is the key."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for value in values:
        key = str(value["key"]) if isinstance(value, dict) and "key" in value else None
        data = value if isinstance(value, bytes | None) else json.dumps(value)
        producer.produce(topic, data, key, **more, **({} if partition is None else {"partition": partition}))
    assert producer.flush(60) == 0


def messages(broker: KafkaBroker, topic: str, isolation: str = "read_committed") -> list[Any]:
    """All that can be read now, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        left = set(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        found: list[Any] = []
        while left:
            for message in (*consumer.consume(1, 10), *consumer.consume(10_000, 0)):
                if message.error() is None:
                    found.append(message)
                else:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    left.discard(message.partition())
        return sorted(found, key=lambda message: (message.partition(), message.offset()))
    finally:
        consumer.close()


def values(broker: KafkaBroker, topic: str, isolation: str = "read_committed") -> list[Any]:
    """The same, of JSON."""
    return [json.loads(message.value()) for message in messages(broker, topic, isolation)]
