"""Quix Streams from Kafka to Kafka: two processes of one consumer group, state in RocksDB with its changelog topic.

At least once, its default and its fastest way; a commit a second. A process ends when nothing has come for a while;
that is not counted.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.kafka_answers import PARTITIONS, fresh_topic, timed_answer
from benchmarks.side import Order, in_processes, received_order

WORKERS = 2
IDLE_S = 15.0


def run(order: Order) -> None:
    options = order.options | {"answers": fresh_topic(order.options["servers"], PARTITIONS)}
    in_processes(_work, [(options, order.out / f"{i}") for i in range(WORKERS)])
    timed_answer(options, ["quixstreams", "confluent-kafka"])


def _work(options: dict[str, Any], state: Path) -> None:
    quix: Any = importlib.import_module("quixstreams")
    app = quix.Application(
        broker_address=options["servers"],
        consumer_group=f"quix-{options['answers']}",
        auto_offset_reset="earliest",
        commit_interval=1.0,
        state_dir=str(state),
        loglevel="WARNING",
    )
    frame = app.dataframe(app.topic(options["topic"], value_deserializer="json"))
    frame = frame.apply(_count, stateful=True)
    frame.to_topic(app.topic(options["answers"], value_serializer="json"))
    app.run(timeout=IDLE_S)


def _count(record: dict[str, Any], state: Any) -> dict[str, Any]:
    number = state.get("seen", 0) + 1
    state.set("seen", number)
    return {"key": record["key"], "number": number, "index": record["index"]}


if __name__ == "__main__":
    run(received_order())
