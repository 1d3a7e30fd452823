"""Our side of `kafka`: a count per key from topic to topic, in one go or under SIGKILLs; and the source alone.

Under kills a feeder writes at a pace, TaskManagers are killed by a saboteur, and the broker every now and then; the job
is stopped when all has come out.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
from confluent_kafka import Producer

from benchmarks.kafka_answers import PARTITIONS, fresh_topic, read_numbered, timed_answer
from benchmarks.side import Order, answer, received_order
from tests.systems.kafka import KafkaBroker
from understudy import KeyedOperator, LocalCluster, Operator, StreamEnvironment, ValueState, fixed_delay
from understudy.runtime.chaos.saboteur import Saboteur

from . import job

PACKAGES = (*job.PACKAGES, "numba", "confluent-kafka")
SCHEMA = pa.schema([("key", pa.int64()), ("index", pa.int64())])
PAUSE_S = (0.1, 1.0)
POLL_S = 0.5


class Numbered(NamedTuple):
    key: int
    number: int
    index: int  # type: ignore[assignment]  # a tuple has a method of this name


class Count(KeyedOperator):
    """Numbers the records of each key."""

    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        number = self.seen.value() + 1
        self.seen.update(number)
        out.collect(Numbered(self.key, number, record.index))


class CompiledCount(Count):
    compiled = True


class Nothing(Operator):
    """Takes columns and drops them."""

    takes: ClassVar[Any] = "any"

    def process_batch(self, batch: Any, out: Any) -> None:
        pass


def run(order: Order) -> None:
    """From one topic to the other."""
    options = order.options | {"answers": fresh_topic(order.options["servers"], PARTITIONS)}
    with job.local_cluster(options) as cluster:
        env = job.environment(order.out, options)
        records = env.from_kafka(options["topic"], options["servers"], bounded=True, schema=SCHEMA)
        counted = records.key_by("key").process(CompiledCount if options.get("compiled") else Count)
        counted.to_kafka(options["answers"], options["servers"], key="key")
        timed = job.timed(cluster, env, order.workload)
    timed_answer(options, PACKAGES, timed.ended_s, checkpoints=timed.told())


def run_source(order: Order) -> None:
    """The source, and nothing behind it. Decoding is left out, as the bare client decodes nothing."""
    options = order.options
    with job.local_cluster(options) as cluster:
        env = job.environment(order.out, options)
        env.from_kafka(options["topic"], options["servers"], bounded=True, format="bytes").sink_to(Nothing)
        timed = job.timed(cluster, env, order.workload)
    answer(timed.seconds, PACKAGES, **timed.span)


class Feeder(threading.Thread):
    """Writes records at a pace until it is over."""

    def __init__(self, broker: KafkaBroker, topic: str, keys: int, per_s: int) -> None:
        super().__init__(name="feeder", daemon=True)
        self._broker, self._topic, self._keys, self._per_s = broker, topic, keys, per_s
        self.fed = 0
        self.over = threading.Event()

    def run(self) -> None:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap, "enable.idempotence": True})
        while not self.over.wait(0.1):
            for index in range(self.fed, self.fed + self._per_s // 10):
                producer.produce(
                    self._topic, json.dumps({"key": index % self._keys, "index": index}), str(index % self._keys)
                )
            self.fed += self._per_s // 10
            producer.poll(0)
        if left := producer.flush(120):
            raise RuntimeError(f"{left} records were not written")


def run_killed(options: dict[str, Any], broker: KafkaBroker, out: Path) -> dict[str, Any]:
    """Kafka to Kafka while TaskManagers and the broker are killed. Returns what happened, and what came out."""
    topic, answers = broker.create_topic(4), broker.create_topic(4)
    saboteur = Saboteur(options["kills"], seed=options["seed"], pause_s=PAUSE_S)
    feeder = Feeder(broker, topic, options["keys"], options["per_s"])
    env = StreamEnvironment(
        checkpoint_interval_ms=options["checkpoint_interval_ms"],
        checkpoint_dir=str(out / "checkpoints"),
        restart_strategy=fixed_delay(attempts=10_000, delay_ms=100),
        max_same_failures=10_000,
        parallelism=2,
    )
    records = env.from_kafka(topic, broker.bootstrap, schema=SCHEMA, group="killed")
    records.key_by("key").process(Count).to_kafka(answers, broker.bootstrap, key="key")
    broker_kills, broker_killed = options["broker_kills"], 0
    every = max(saboteur.wanted // (broker_kills + 1), 1)
    began_s = time.monotonic()
    with LocalCluster(task_managers=2) as cluster:
        handle = cluster.submit(env, name="kafka-killed")
        handle.on_event(saboteur.on_event)
        feeder.start()
        try:
            while (saboteur.killed < saboteur.wanted or broker_killed < broker_kills) and not handle.status.is_terminal:
                time.sleep(POLL_S)
                if broker_killed < min(saboteur.killed // every, broker_kills):
                    broker.kill()
                    broker.start()
                    broker_killed += 1
        finally:
            saboteur.stop()
            feeder.over.set()
            feeder.join()
        for waited in itertools.count():
            found = read_numbered(broker.bootstrap, answers)
            if len(found) >= feeder.fed or handle.status.is_terminal or waited > 240:
                break
            time.sleep(POLL_S)
        handle.stop()
        handle.wait()
    return {
        "fed": feeder.fed,
        "killed": saboteur.killed,
        "broker_killed": broker_killed,
        "recovery_ms": saboteur.recovery_ms,
        "seconds": round(time.monotonic() - began_s, 1),
        "found": read_numbered(broker.bootstrap, answers),
    }


if __name__ == "__main__":
    received = received_order()
    (run_source if received.options.get("only_source") else run)(received)
