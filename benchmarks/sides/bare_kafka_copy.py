"""The bare client from topic to topic: two processes of confluent-kafka that hand on what they consume, as it is. They
decode, count and commit nothing: what any side could reach with this client, beside this broker.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.kafka_answers import PARTITIONS, fresh_topic, messages
from benchmarks.side import Order, answer, in_processes, received_order

WORKERS = 2


def run(order: Order) -> None:
    options = order.options | {"answers": fresh_topic(order.options["servers"], PARTITIONS)}
    in_processes(_copy, [(options, order.data.rows, index) for index in range(WORKERS)])
    moments = [message.timestamp()[1] / 1000 for message in messages(options["servers"], options["answers"])]
    if len(moments) != order.data.rows:
        raise RuntimeError(f"{len(moments)} of {order.data.rows} records were copied")
    began_s, ended_s = min(moments), max(moments)
    answer(ended_s - began_s, ["confluent-kafka"], began_s=began_s, ended_s=ended_s)


def _copy(options: dict[str, Any], rows: int, index: int) -> None:
    """One worker's partitions, to their ends."""
    settings = {"bootstrap.servers": options["servers"], "fetch.queue.backoff.ms": 10}
    consumer = Consumer(settings | {"group.id": "copy", "enable.partition.eof": True})
    producer = Producer(
        {"bootstrap.servers": options["servers"], "linger.ms": 20, "queue.buffering.max.messages": rows}
    )
    left = set(range(index, PARTITIONS, WORKERS))
    consumer.assign([TopicPartition(options["topic"], number, 0) for number in left])
    while left:
        for message in consumer.consume(8192, 0.1):
            if message.error() is None:
                producer.produce(options["answers"], message.value(), message.key())
            else:
                left.discard(message.partition())
        producer.poll(0)
    if unsent := producer.flush(120):
        raise RuntimeError(f"{unsent} records were not written")
    consumer.close()


if __name__ == "__main__":
    run(received_order())
