"""The bare client: what confluent-kafka consumes in one process, values taken and dropped. The limit of a source.

With the setting that makes it quick, as our source has it: by default it waits for a second when its queue was full.
"""

from __future__ import annotations

import time

from confluent_kafka import Consumer, TopicPartition

from benchmarks.side import Order, answer, received_order


def run(order: Order) -> None:
    options, rows = order.options, order.data.rows
    consumer = Consumer(
        {
            "bootstrap.servers": options["servers"],
            "group.id": "bare",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 10,
        }
    )
    partitions = consumer.list_topics(options["topic"], timeout=60).topics[options["topic"]].partitions
    taken = 0
    began_s = time.time()
    consumer.assign([TopicPartition(options["topic"], number, 0) for number in partitions])
    while taken < rows:
        values = [message.value() for message in consumer.consume(8192, 0.1)]
        taken += len(values)
    ended_s = time.time()
    consumer.close()
    answer(ended_s - began_s, ["confluent-kafka"], began_s=began_s, ended_s=ended_s)


if __name__ == "__main__":
    run(received_order())
