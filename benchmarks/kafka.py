"""Kafka to Kafka: a count per key, against peers on the same broker; the source against the bare client; and kills.

One broker for all, made for the benchmark. The records are JSON, `{"key": ..., "index": ...}`, keyed, in four
partitions; each gives a record with the number that it has within its key.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tests.systems.kafka import KafkaBroker

from .contest import Side, compared, compete, problems_of
from .data import Dataset
from .kafka_answers import PARTITIONS, problems_of_numbered
from .measure import Measured
from .peers_known import peer_words
from .report import contest_options, finish, spread
from .side import Order
from .venvs import Environment, python_of

WORKLOAD = "kafka"
PEERS = {
    "bytewax": (
        "bytewax_kafka",
        Environment("bytewax-kafka", ("bytewax[kafka]==0.21.1", "numpy", "pyarrow", "setuptools<81")),
        "2 processes, recovery, an epoch a second, at least once",
    ),
    "quix": (
        "quix_kafka",
        Environment("quixstreams", ("quixstreams==3.28.1", "numpy", "pyarrow")),
        "2 processes, RocksDB with changelog, a commit a second, at least once",
    ),
}
"""By name: the module, what it needs, and how it is set up."""
BARE_COPY = "2 processes of the bare client that hand records on as they are, at least once"
COMPILED = "the counting function compiled by Numba"
KILLED_KEYS, KILLED_PER_S, KILLED_CHECKPOINT_MS = 100, 1_000, 250


@contextmanager
def broker_of() -> Iterator[KafkaBroker]:
    with tempfile.TemporaryDirectory(prefix="understudy-kafka-") as name:
        broker = KafkaBroker(Path(name), quick=False)
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()


def fill(broker: KafkaBroker, rows: int, keys: int) -> str:
    """A topic with the records."""
    from confluent_kafka import Producer

    topic = broker.create_topic(PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    for index in range(rows):
        while True:
            try:
                producer.produce(topic, json.dumps({"key": index % keys, "index": index}), str(index % keys))
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise click.ClickException("the broker did not take the records")
    return topic


def killed_case(kills: int, broker_kills: int, seed: int) -> tuple[dict[str, Any], list[str]]:
    """TaskManagers are killed at random moments, and the broker now and then."""
    from .sides.kafka import run_killed

    options = {
        "kills": kills,
        "broker_kills": broker_kills,
        "seed": seed,
        "keys": KILLED_KEYS,
        "per_s": KILLED_PER_S,
        "checkpoint_interval_ms": KILLED_CHECKPOINT_MS,
    }
    with broker_of() as broker, tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        said = run_killed(options, broker, Path(name))
    found = said.pop("found")
    problems = problems_of_numbered(found, said["fed"], KILLED_KEYS)
    if said["killed"] < kills or said["broker_killed"] < broker_kills:
        problems.append(f"only {said['killed']} and {said['broker_killed']} kills of {kills} and {broker_kills}")
    case = said | {
        "outputs": len(found),
        "checked": not problems,
        **spread("kill_to_result_ms", said.pop("recovery_ms")),
    }
    click.echo(f"{'killed':>16}  {case}", err=True)
    return case, [f"under kills: {problem}" for problem in problems]


def check_counts(order: Order, measured: Measured) -> list[str]:
    """Each record has come out once, and the numbers of each key go up to how many it has."""
    said, wanted = measured.said, (order.data.rows, order.data.keys)
    if (said["outputs"], said["keys"]) == wanted and said["is_numbered"]:
        return []
    return [
        f"{said['outputs']} records of {said['keys']} keys came out, wanted {wanted}; numbered: {said['is_numbered']}"
    ]


def speed(
    rows: int, keys: int, runs: int, python: bool, peers: Sequence[str], cache: Path
) -> tuple[dict[str, Any], list[str]]:
    """Ours against peers, and our source against the bare client, on one broker."""
    with broker_of() as broker, tempfile.TemporaryDirectory(prefix="understudy-kafka-") as name:
        options = {
            "servers": broker.bootstrap,
            "topic": fill(broker, rows, keys),
            "task_managers": 2,
            "parallelism": 2,
            "rows": rows,
        }
        data = Dataset(Path(name), rows, keys)
        setting = f"2 TaskManagers (local), exactly once, checkpoint every 1 s, {PARTITIONS} partitions"
        ours = [sys.executable, "-m", "benchmarks.sides.kafka"]
        counting = [Side("understudy", ours, data, options | {"compiled": True}, setting=f"{setting}; {COMPILED}")]
        if python:
            counting.append(Side("python", ours, data, options, setting=setting))
        for peer in peers:
            module, environment, setting = PEERS[peer]
            command = [str(python_of(environment, cache)), "-m", f"benchmarks.peers.{module}"]
            counting.append(Side(peer, command, data, options, setting=setting))
        bare_copy = [sys.executable, "-m", "benchmarks.sides.bare_kafka_copy"]
        counting.append(Side("bare-copy", bare_copy, data, options, setting=BARE_COPY, answers=False))
        compete(WORKLOAD, counting[:1], 1, check_counts)  # left out: meanwhile the broker's Java compiles itself
        scores = compete(WORKLOAD, counting, runs, check_counts)
        alone = options | {"only_source": True, "task_managers": 1, "parallelism": 1}
        sources = [
            Side("source", ours, data, alone, setting="1 TaskManager, values as bytes", answers=False),
            Side("bare-client", [sys.executable, "-m", "benchmarks.sides.bare_kafka"], data, options, answers=False),
        ]
        read = compete(WORKLOAD, sources, runs, check_counts)
    return {**compared(scores), "source": compared(read)}, problems_of([*scores, *read])


@click.command(WORKLOAD)
@click.option("--rows", default=500_000, show_default=True, type=click.IntRange(0), help="0: only the kills.")
@click.option("--keys", default=1_000, show_default=True, type=click.IntRange(1))
@click.option(
    "--kills", default=0, show_default=True, type=click.IntRange(0), help="Of TaskManagers, in a run of its own."
)
@click.option("--broker-kills", default=0, show_default=True, type=click.IntRange(0), help="In that run.")
@click.option("--seed", default=1, show_default=True, help="Fixes the moments and victims of the kills.")
@click.option("--python", is_flag=True, help="Ours: with a second side, the same function as Python runs it.")
@contest_options
def kafka(
    rows: int,
    keys: int,
    kills: int,
    broker_kills: int,
    seed: int,
    python: bool,
    peers: str,
    runs: int,
    json_path: str | None,
    data_dir: Path,
) -> None:
    """Kafka to Kafka: count per key against peers, the source against the bare client, and exactness under kills."""
    figures: dict[str, Any] = {}
    problems: list[str] = []
    if rows:
        figures, problems = speed(rows, keys, runs, python, peer_words(peers, PEERS), data_dir)
    if kills:
        figures["killed"], wrong = killed_case(kills, broker_kills, seed)
        problems += wrong
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
