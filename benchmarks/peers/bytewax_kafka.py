"""Bytewax from Kafka to Kafka: two processes, recovery on, an epoch a second, `stateful_map` per record.

Its sink flushes and does not use transactions: at least once.
"""

from __future__ import annotations

import importlib
import json
import socket
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.kafka_answers import PARTITIONS, fresh_topic, timed_answer
from benchmarks.side import Order, in_processes, received_order

WORKERS = 2


def run(order: Order) -> None:
    folder = order.out / "recovery"
    folder.mkdir()
    importlib.import_module("bytewax.recovery").init_db_dir(folder, WORKERS)
    addresses = _addresses()
    options = order.options | {"answers": fresh_topic(order.options["servers"], PARTITIONS)}
    in_processes(_work, [(options, order.out, addresses, index) for index in range(WORKERS)])
    timed_answer(options, ["bytewax", "confluent-kafka"])


def _work(options: dict[str, Any], out: Path, addresses: list[str], index: int) -> None:
    recovery = importlib.import_module("bytewax.recovery").RecoveryConfig(out / "recovery")
    running: Any = importlib.import_module("bytewax._bytewax")
    running.cluster_main(
        _flow(options), addresses, index, epoch_interval=timedelta(seconds=1), recovery_config=recovery
    )


def _flow(options: dict[str, Any]) -> Any:
    op: Any = importlib.import_module("bytewax.operators")
    connectors: Any = importlib.import_module("bytewax.connectors.kafka")
    flow = importlib.import_module("bytewax.dataflow").Dataflow("count")
    source = connectors.KafkaSource([options["servers"]], [options["topic"]], tail=False, batch_size=1000)
    messages = op.input("in", flow, source)
    keyed = op.map("parse", messages, _parse)
    counted = op.stateful_map("count", keyed, _count)
    made = op.map("make", counted, lambda pair: _message(connectors, *pair))
    op.output("out", made, connectors.KafkaSink([options["servers"]], options["answers"]))
    return flow


def _parse(message: Any) -> tuple[str, int]:
    record = json.loads(message.value)
    return str(record["key"]), record["index"]


def _count(seen: int | None, index: int) -> tuple[int, tuple[int, int]]:
    number = (seen or 0) + 1
    return number, (number, index)


def _message(connectors: Any, key: str, counted: tuple[int, int]) -> Any:
    number, index = counted
    value = json.dumps({"key": int(key), "number": number, "index": index})
    return connectors.KafkaSinkMessage(key.encode(), value.encode())


def _addresses() -> list[str]:
    with ExitStack() as reserved:
        sockets = [reserved.enter_context(socket.socket()) for _ in range(WORKERS)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


if __name__ == "__main__":
    run(received_order())
