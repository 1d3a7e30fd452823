"""KafkaSink on a real broker: what is prepared is committed by whoever restores it, once, or its loss is an error."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from tests.runtime.clusters.jobs import eventually
from tests.runtime.connectors.harness import Running, Snapshot, rescaled
from tests.systems.kafka import ALICE, KafkaBroker
from understudy import (
    InvalidProgram,
    KafkaRefused,
    KafkaSink,
    KafkaUnavailable,
    NoSuchTopic,
    StreamEnvironment,
    TransactionLost,
)
from understudy.runtime.connectors.kafka.client_settings import ClientSettings
from understudy.runtime.connectors.kafka.coordinator import TransactionCoordinator

from .topics import messages, put, values

pytestmark = pytest.mark.processes


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    return kafka.create_topic(2)


@pytest.fixture
def attempts() -> Iterator[list[Running[KafkaSink]]]:
    """Closed at the end, whatever has become of them."""
    made: list[Running[KafkaSink]] = []
    yield made
    for each in made:
        each.operator.close()


def sink(kafka: KafkaBroker, topic: str, **options: Any) -> KafkaSink:
    return KafkaSink(topic, kafka.bootstrap, **({"transactional_id_prefix": f"of-{topic}"} | options))


class Attempts:
    """Attempts of one sink on one topic."""

    def __init__(self, kafka: KafkaBroker, topic: str, made: list[Running[KafkaSink]], **options: Any) -> None:
        self._kafka, self._topic, self._made, self._options = kafka, topic, made, options
        self._attempt = 0

    def begin(self, restore_from: Snapshot | None = None, **where: Any) -> Running[KafkaSink]:
        self._attempt += 1
        made = Running(sink(self._kafka, self._topic, **self._options), restore_from, attempt=self._attempt, **where)
        self._made.append(made)
        return made


@pytest.fixture
def sinks(kafka: KafkaBroker, topic: str, attempts: list[Running[KafkaSink]]) -> Attempts:
    return Attempts(kafka, topic, attempts)


# -- what becomes visible, and when


def test_records_are_visible_when_their_checkpoint_is_complete_and_not_before(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    running = sinks.begin()
    running.take({"n": 1})
    running.checkpoint(1)
    running.take({"n": 2})
    assert values(kafka, topic) == []
    running.complete(1)
    assert values(kafka, topic) == [{"n": 1}]
    running.checkpoint(2)
    running.checkpoint(3)
    running.complete(3)
    assert sorted(each["n"] for each in values(kafka, topic)) == [1, 2]


def test_checkpoints_that_never_complete_make_the_pool_grow_and_lose_nothing(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    running = sinks.begin()
    for checkpoint in range(1, 6):
        running.take({"n": checkpoint})
        running.checkpoint(checkpoint)
    assert values(kafka, topic) == []
    running.complete(5)
    assert sorted(each["n"] for each in values(kafka, topic)) == [1, 2, 3, 4, 5]


def test_key_headers_partition_and_time_are_those_of_the_record(kafka: KafkaBroker, topic: str) -> None:
    made = Running(
        sink(
            kafka,
            topic,
            key="name",
            partition=lambda record: record["n"] % 2,
            timestamp="at",
            headers=lambda record: {"source": f"s{record['n']}"},
        )
    )
    made.take({"name": "ann", "n": 0, "at": 1_000}, {"name": "bob", "n": 1, "at": 2_000})
    made.checkpoint(1)
    made.complete(1)
    made.operator.close()
    found = [(m.partition(), m.key(), m.headers(), m.timestamp()[1]) for m in messages(kafka, topic)]
    assert found == [
        (0, b"ann", [("source", b"s0")], 1_000),
        (1, b"bob", [("source", b"s1")], 2_000),
    ]


def test_without_a_partition_keys_go_where_the_java_client_sends_them(kafka: KafkaBroker) -> None:
    """murmur2(key) as a positive number, modulo the partitions: these are what its DefaultPartitioner gives for 10."""
    topic = kafka.create_topic(10)
    made = Running(sink(kafka, topic, key="key", format="text", timestamp=None))
    made.operator._maker._encode = lambda batch: [each["key"] for each in batch]
    made.take({"key": "a"}, {"key": "b"}, {"key": "kafka"}, {"key": "understudy"})
    made.checkpoint(1)
    made.complete(1)
    made.operator.close()
    assert {m.value().decode(): m.partition() for m in messages(kafka, topic)} == {
        key: _murmur2(key.encode()) % 10 for key in ("a", "b", "kafka", "understudy")
    }


def _murmur2(data: bytes) -> int:
    """As org.apache.kafka.common.utils.Utils has it, with the sign taken off."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


def test_columns_are_written_row_by_row(kafka: KafkaBroker, topic: str, sinks: Attempts) -> None:
    from understudy.actors.operators.collector import Collector

    running = sinks.begin()
    batch = pa.RecordBatch.from_pydict({"name": ["a", 'q"'], "n": [1, -2], "x": [0.5, None]})
    running.operator.process_batch(batch, Collector())
    running.operator.process_batch(batch.select(["name", "n"]), Collector())
    running.checkpoint(1)
    running.complete(1)
    assert sorted(map(str, values(kafka, topic))) == sorted(
        map(str, [*batch.to_pylist(), *batch.select(["name", "n"]).to_pylist()])
    )


# -- after a failure


def test_a_restored_attempt_commits_what_was_prepared_and_aborts_what_was_open(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    first = sinks.begin()
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    first.take({"n": "open"})
    second = sinks.begin(snapshot)
    assert values(kafka, topic) == [{"n": 1}]
    assert len(values(kafka, topic, "read_uncommitted")) >= 1
    second.take({"n": 2})
    second.checkpoint(2)
    second.complete(2)
    assert sorted(each["n"] for each in values(kafka, topic)) == [1, 2]


def test_what_was_committed_is_not_committed_again_though_its_producer_has_gone_on(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    """An EndTxn with the numbers of checkpoint 1 would commit what the same session has open after checkpoint 3."""
    first = sinks.begin()
    first.take({"n": 1})
    of_one = first.checkpoint(1)
    first.complete(1)
    for checkpoint in (2, 3):  # both producers of the pool have had a transaction since
        first.take({"n": checkpoint})
        first.checkpoint(checkpoint)
        first.complete(checkpoint)
    first.take({"n": "never to be seen"})
    first.operator._open_one.client.flush(30)  # type: ignore[union-attr]
    sinks.begin(of_one)
    assert sorted(each["n"] for each in values(kafka, topic)) == [1, 2, 3]


def test_restoring_the_same_checkpoint_again_and_again_commits_once(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    first = sinks.begin()
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    for _ in range(3):
        again = sinks.begin(snapshot)
        again.take({"n": "gone"})
        again.checkpoint(2)
    assert values(kafka, topic) == [{"n": 1}]


def test_a_zombie_writes_nothing_once_its_successor_has_begun(kafka: KafkaBroker, topic: str, sinks: Attempts) -> None:
    zombie = sinks.begin()
    zombie.take({"n": 1})
    snapshot = zombie.checkpoint(1)
    successor = sinks.begin(snapshot)
    successor.take({"n": 2})
    successor.checkpoint(2)
    successor.complete(2)
    with pytest.raises(TransactionLost, match="another producer has begun to use the id"):
        zombie.complete(1)
    assert sorted(each["n"] for each in values(kafka, topic)) == [1, 2]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_another_parallelism_takes_over_all_that_was_prepared_and_aborts_the_rest(
    kafka: KafkaBroker, topic: str, sinks: Attempts, parallelism: int
) -> None:
    old = [sinks.begin(subtask=subtask, parallelism=2) for subtask in range(2)]
    for subtask, each in enumerate(old):
        each.take({"n": subtask})
    snapshots = [each.checkpoint(1) for each in old]
    for each in old:
        each.take({"n": "open"})
        each.operator._open_one.client.flush(30)  # type: ignore[union-attr]
    new = [
        sinks.begin(share, subtask=subtask, parallelism=parallelism)
        for subtask, share in enumerate(rescaled(snapshots, parallelism))
    ]
    for subtask, each in enumerate(new):
        each.take({"n": 10 + subtask})
        each.checkpoint(2)
    for each in new:
        each.complete(2)
    assert sorted(each["n"] for each in values(kafka, topic)) == [0, 1, *(10 + each for each in range(parallelism))]


def test_an_attempt_that_is_canceled_leaves_what_it_has_prepared_to_its_successor(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    first = sinks.begin()
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    first.take({"n": "open"})
    first.operator.close()
    assert values(kafka, topic) == []
    sinks.begin(snapshot)
    assert values(kafka, topic) == [{"n": 1}]


_PREPARE_AND_DIE = """
import os, pickle, signal, sys
from tests.runtime.connectors.harness import Running
topic, servers = sys.argv[1:]
from understudy import KafkaSink
running = Running(KafkaSink(topic, servers, transactional_id_prefix="of-" + topic))
running.take({"n": 1}, {"n": 2})
snapshot = running.checkpoint(1)
running.take({"n": "open"})
sys.stdout.buffer.write(pickle.dumps(snapshot))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_prepared_is_committed_by_another(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PREPARE_AND_DIE, topic, kafka.bootstrap],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert values(kafka, topic) == []
    sinks.begin(pickle.loads(done.stdout))
    assert sorted(each["n"] for each in values(kafka, topic)) == [1, 2]


@pytest.mark.slow
def test_what_was_prepared_outlives_the_broker(kafka: KafkaBroker, topic: str, sinks: Attempts) -> None:
    first = sinks.begin()
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    kafka.kill()
    kafka.start()
    second = sinks.begin(snapshot)
    assert values(kafka, topic) == [{"n": 1}]
    second.take({"n": 2})
    second.checkpoint(2)
    kafka.kill()
    kafka.start()
    second.complete(2)
    assert sorted(each["n"] for each in values(kafka, topic)) == [1, 2]


# -- loss is an error


def given_up(kafka: KafkaBroker, topic: str, sinks: Attempts) -> Snapshot:
    """A snapshot with a transaction that the broker has aborted since."""
    first = sinks.begin()
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    coordinator = TransactionCoordinator(ClientSettings(kafka.bootstrap, {}), 30_000)
    coordinator.fence(f"of-{topic}-0-0")
    coordinator.close()
    return snapshot


def test_a_transaction_that_was_given_up_is_an_error_that_says_what_to_do(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    snapshot = given_up(kafka, topic, sinks)
    with pytest.raises(TransactionLost, match=rf"transaction of-{topic}-0-0 .* its records are in no output|older"):
        sinks.begin(snapshot)
    assert values(kafka, topic) == []


def test_the_broker_gives_a_transaction_up_when_its_time_is_over(
    kafka: KafkaBroker, topic: str, attempts: list[Running[KafkaSink]]
) -> None:
    sinks = Attempts(kafka, topic, attempts, transaction_timeout_ms=1_000)
    first = sinks.begin()
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    coordinator = TransactionCoordinator(ClientSettings(kafka.bootstrap, {}), 30_000)
    while (state := coordinator.describe(f"of-{topic}-0-0")) is not None and state.state == "Ongoing":
        pass
    coordinator.close()
    with pytest.raises(TransactionLost):
        first.complete(1)
    with pytest.raises(TransactionLost):
        sinks.begin(snapshot)
    assert values(kafka, topic) == []


def test_a_loss_may_be_ignored_once_the_time_is_over(
    kafka: KafkaBroker, topic: str, attempts: list[Running[KafkaSink]]
) -> None:
    from tests.runtime.connectors.harness import ManualClock

    clock = ManualClock()
    sinks = Attempts(kafka, topic, attempts, ignore_failures_after_timeout=True, transaction_timeout_ms=60_000)
    first = sinks.begin(clock=clock)
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    sinks.begin()  # fences it
    clock.ms = 59_000
    with pytest.raises(TransactionLost):
        sinks.begin(snapshot, clock=clock)
    clock.ms = 61_000
    later = sinks.begin(snapshot, clock=clock)
    later.take({"n": 2})
    later.checkpoint(2)
    later.complete(2)
    assert values(kafka, topic) == [{"n": 2}]


# -- at least once


def test_at_least_once_a_barrier_waits_for_the_brokers(kafka: KafkaBroker, topic: str) -> None:
    running = Running(KafkaSink(topic, kafka.bootstrap, guarantee="at-least-once"))
    running.take({"n": 1}, {"n": 2})
    running.checkpoint(1)
    assert sorted(each["n"] for each in values(kafka, topic)) == [1, 2]
    running.operator.close()


# -- what cannot work is refused


def test_a_missing_topic_is_refused_and_the_one_most_like_it_is_named_first(kafka: KafkaBroker, topic: str) -> None:
    with pytest.raises(NoSuchTopic, match=rf"topic '{topic}s' is not there.*\(found at {kafka.bootstrap}: {topic}\b"):
        KafkaSink(f"{topic}s", kafka.bootstrap).check_at_submit(True)


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_topic_that_is_deleted_is_named_and_not_taken_for_brokers_that_are_away(
    kafka: KafkaBroker, topic: str, attempts: list[Running[KafkaSink]], guarantee: str
) -> None:
    sinks = Attempts(kafka, topic, attempts, guarantee=guarantee, retry_ms=2_000)
    running = sinks.begin()
    running.take({"n": 1})
    before = running.checkpoint(1)
    running.complete(1)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_topics([topic])[topic].result(timeout=60)
    eventually(lambda: topic not in admin.list_topics(timeout=60).topics, "the broker to have deleted it")
    running.take({"n": 2})
    with pytest.raises(NoSuchTopic, match=topic):
        running.checkpoint(2)
    with pytest.raises(NoSuchTopic, match=topic):
        sinks.begin(before)


def test_brokers_that_are_not_there_are_named() -> None:
    unreachable = KafkaSink("t", "127.0.0.1:1", retry_ms=1_000)
    with pytest.raises(KafkaUnavailable, match=r"no broker at 127\.0\.0\.1:1 within 1 s"):
        unreachable.check_at_submit(True)
    unreachable.check_at_submit(False)  # the job may run where they can be reached


def test_a_time_out_that_the_brokers_do_not_take_is_refused(kafka: KafkaBroker, topic: str) -> None:
    KafkaSink(topic, kafka.bootstrap).check_at_submit(True)
    with pytest.raises(KafkaRefused, match=r"wanted at most 900000, the brokers' transaction.max.timeout.ms"):
        KafkaSink(topic, kafka.bootstrap, transaction_timeout_ms=900_001).check_at_submit(True)


def test_a_time_out_that_cannot_outlast_a_checkpoint_is_refused(kafka: KafkaBroker) -> None:
    from understudy.runtime.api.translation import translate

    env = StreamEnvironment(checkpoint_interval_ms=60_000)
    env.from_collection([{"n": 1}]).to_kafka("t", kafka.bootstrap, transaction_timeout_ms=200_000)
    with pytest.raises(InvalidProgram, match=r"transaction_timeout_ms: wanted at least 240000"):
        translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_recovery_logs_in_as_the_producer_does(
    kafka: KafkaBroker, topic: str, attempts: list[Running[KafkaSink]], mechanism: str
) -> None:
    name, password = ALICE
    options = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }

    def secured(**changed: str) -> KafkaSink:
        return KafkaSink(
            topic, kafka.secured, transactional_id_prefix=topic, options=lambda: options | changed, retry_ms=15_000
        )

    secured().check_at_submit(True)
    first = Running(secured())
    attempts.append(first)
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    attempts.append(Running(secured(), snapshot, attempt=1))
    assert values(kafka, topic) == [{"n": 1}]
    wrong = secured(**{"sasl.password": "mellon"})
    with pytest.raises(KafkaRefused) as raised:
        wrong.check_at_submit(True)
    assert "mellon" not in str(raised.value)
    with pytest.raises(KafkaRefused, match="'alice'"):
        Running(wrong, snapshot, attempt=2)
    assert "mellon" not in repr(wrong._settings)


def test_a_login_that_recovery_cannot_do_is_refused_when_the_sink_is_made() -> None:
    options = {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(ValueError, match=r"OAUTHBEARER cannot be used with guarantee='exactly-once'.*PLAIN"):
        KafkaSink("t", "b:9092", options=options)
    KafkaSink("t", "b:9092", options=options, guarantee="at-least-once")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"guarantee": "twice"}, "guarantee: wanted"),
        ({"format": "xml"}, "format: wanted one of 'json'"),
        ({"transaction_timeout_ms": 10}, "transaction_timeout_ms: wanted a whole number from 1000"),
        ({"key": 5}, "key: wanted a column's name or a function"),
        ({"options": {"transactional.id": "x"}}, "transactional.id cannot be set here"),
        ({"bootstrap_servers": "nohost"}, "wanted 'host:port'"),
        ({"bootstrap_servers": "kafka://b:9092"}, "wanted 'host:port'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        KafkaSink(**({"topic": "t", "bootstrap_servers": "b:9092"} | options))


def test_a_sink_travels_with_its_job_and_shows_no_secret(kafka: KafkaBroker, topic: str) -> None:
    made = sink(kafka, topic, key=lambda record: record["n"], options={"sasl.password": "mellon"})
    there = pickle.loads(cloudpickle.dumps(made))
    assert there.topic == topic
    assert "mellon" not in repr(vars(made))


def test_what_is_read_committed_does_not_wait_for_a_sink_that_was_closed(
    kafka: KafkaBroker, topic: str, sinks: Attempts
) -> None:
    running = sinks.begin()
    running.take({"n": "never"})
    running.operator.close()
    put(kafka, topic, [{"n": 1}], partition=0)
    put(kafka, topic, [{"n": 2}], partition=1)
    assert values(kafka, topic) == [{"n": 1}, {"n": 2}]
