"""ArrayProducer on a real broker: what the package's producer does, for thousands of messages at once."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from ctypes import c_size_t, c_void_p
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.runtime.clusters.jobs import eventually
from tests.runtime.connectors.harness import Running
from tests.systems.kafka import KafkaBroker
from understudy import KafkaRefused, KafkaSink
from understudy.actors.operators.collector import Collector
from understudy.runtime.connectors.kafka import librdkafka
from understudy.runtime.connectors.kafka.array_producer import ArrayProducer
from understudy.runtime.connectors.kafka.client_settings import LIBRDKAFKA
from understudy.runtime.connectors.kafka.transactional_producer import drop

from .topics import messages, put

pytestmark = pytest.mark.processes


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    return kafka.create_topic(1)


@pytest.fixture
def producers(kafka: KafkaBroker, topic: str) -> Iterator[Any]:
    """Makes producers with these settings that have begun a transaction."""
    made: list[ArrayProducer] = []

    def begun(**settings: Any) -> ArrayProducer:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        own = {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{topic}-{len(made)}"}
        producer = ArrayProducer(own | named, lambda text: None)
        made.append(producer)
        producer.init_transactions(60)
        producer.begin_transaction()
        return producer

    yield begun
    for each in made:
        drop(each)


def test_messages_have_the_values_and_keys_of_the_columns(kafka: KafkaBroker, topic: str, producers: Any) -> None:
    producer = producers()
    values = pa.array(["not", "one", "", None, "zwölf"], pa.large_string()).slice(1)
    keys = pa.array([None, b"k", b"", b"long key"], pa.binary())
    producer.produce_columns(topic, values, keys, 10)
    producer.produce_columns(topic, values.cast(pa.string()), None, 10)
    producer.produce_columns(topic, pa.array([None], pa.binary()), None, 10)
    producer.produce_columns(topic, pa.array([], pa.binary()), None, 10)
    assert producer.flush(60) == 0
    producer.commit_transaction(60)
    assert [(m.key(), m.value()) for m in messages(kafka, topic)] == [
        (None, b"one"),
        (b"k", b""),
        (b"", None),
        (b"long key", "zwölf".encode()),
        *((None, value) for value in (b"one", b"", None, "zwölf".encode(), None)),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of another allocator")
def test_metadata_of_an_offset_end_where_they_end(kafka: KafkaBroker, topic: str, producers: Any) -> None:
    """librdkafka copies as many bytes as it is said to, and reads to the next zero: digits behind a mark's own made
    it that of a later transaction.
    """
    memory = ctypes.CDLL(None)
    memory.malloc.restype, memory.malloc.argtypes, memory.free.argtypes = c_void_p, (c_size_t,), (c_void_p,)
    producer, found = producers(), []
    group = f"marks of {topic}"
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "logger": LIBRDKAFKA,
        }
    )
    texts = [("77be01aa:4 " * 3)[:length] for length in range(9, 33)]
    for text in texts:
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1, metadata=text)], group, 60)
        producer.commit_transaction(60)
        producer.begin_transaction()
        used = [memory.malloc(len(text)) for _ in range(40)]
        for each in used:
            ctypes.memset(each, ord("7"), (len(text) + 7) // 16 * 16 + 8)
        for each in used:
            memory.free(each)
        found += [each.metadata for each in consumer.committed([TopicPartition(topic, 0)], timeout=60)]
    consumer.close()
    assert found == texts


def test_the_order_stays_when_the_queue_is_full_again_and_again(kafka: KafkaBroker, topic: str, producers: Any) -> None:
    producer = producers(queue_buffering_max_messages=100, linger_ms=0)
    wanted = [b"%d" % number for number in range(5_000)]
    producer.produce_columns(topic, pa.array(wanted, pa.large_binary()), None, 60)
    assert producer.flush(60) == 0
    producer.commit_transaction(60)
    assert [m.value() for m in messages(kafka, topic)] == wanted


def test_a_queue_that_stays_full_is_an_error(topic: str, producers: Any) -> None:
    producer = producers(queue_buffering_max_messages=10, linger_ms=20_000)
    with pytest.raises(BufferError, match="stays full"):
        producer.produce_columns(topic, pa.array([b"x"] * 11, pa.large_binary()), None, 0.05)


def test_settings_that_no_topic_can_have_are_refused_as_by_the_package(
    kafka: KafkaBroker, topic: str, producers: Any
) -> None:
    package = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic, "linger.ms": 60_000})
    package.init_transactions(60)
    package.begin_transaction()
    with pytest.raises(KafkaException) as of_package:
        package.produce(topic, b"x")
    with pytest.raises(KafkaException) as of_arrays:
        producers(linger_ms=60_000).produce_columns(topic, pa.array([b"x"], pa.binary()), None, 10)
    assert of_arrays.value.args[0].name() == of_package.value.args[0].name() == "_INVALID_ARG"


def test_a_message_that_is_too_large_is_refused_as_by_the_package(
    kafka: KafkaBroker, topic: str, producers: Any
) -> None:
    large = b"x" * 2_000_000
    with pytest.raises(KafkaException) as of_package:
        Producer({"bootstrap.servers": kafka.bootstrap}).produce(topic, large)
    with pytest.raises(KafkaException) as of_arrays:
        producers().produce_columns(topic, pa.array([b"a", large, b"c"], pa.large_binary()), None, 10)
    (wanted,), (found,) = of_package.value.args, of_arrays.value.args
    assert (found.name(), found.retriable(), found.fatal()) == (wanted.name(), wanted.retriable(), wanted.fatal())
    running = Running(KafkaSink(topic, kafka.bootstrap, format="text"))
    with pytest.raises(KafkaRefused, match="MSG_SIZE_TOO_LARGE"):
        running.take("x" * 2_000_000)
    running.operator.close()


def test_an_open_transaction_is_aborted_by_close_and_not_without_it(
    kafka: KafkaBroker, topic: str, producers: Any
) -> None:
    producer = producers()
    producer.produce_columns(topic, pa.array([b"gone"], pa.binary()), None, 10)
    assert producer.flush(60) == 0
    producer.close(0)
    put(kafka, topic, [b"seen"])
    assert [m.value() for m in messages(kafka, topic)] == [b"seen"]


def test_a_fenced_producer_says_so_as_that_of_the_package(kafka: KafkaBroker, topic: str, producers: Any) -> None:
    def fenced(name: str, first: Any, write: Any) -> Any:
        write(first)
        assert first.flush(60) == 0
        second = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
        second.init_transactions(60)
        with pytest.raises(KafkaException) as raised:
            first.commit_transaction(60)
        return raised.value.args[0]

    column = pa.array([b"x"], pa.binary())
    of_arrays = fenced(f"{topic}-0", producers(), lambda it: it.produce_columns(topic, column, None, 10))
    package = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{topic}-of-package"})
    package.init_transactions(60)
    package.begin_transaction()
    of_package = fenced(f"{topic}-of-package", package, lambda it: it.produce(topic, b"x"))
    assert (of_arrays.name(), of_arrays.fatal()) == (of_package.name(), of_package.fatal())


def test_calls_of_what_is_closed_are_errors(kafka: KafkaBroker, topic: str, producers: Any) -> None:
    producer = producers()
    producer.close(0)
    closed = [
        lambda: producer.produce_columns(topic, pa.array([b"x"]), None, 1),
        lambda: producer.flush(1),
        lambda: producer.poll(0),
        producer.begin_transaction,
    ]
    for call in closed:
        with pytest.raises(RuntimeError, match="is closed: make another one"):
            call()


def test_a_setting_that_is_none_is_refused_as_by_the_package(kafka: KafkaBroker) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap, "no.such.setting": "1"}
    with pytest.raises(KafkaException) as of_package:
        Producer(settings)
    with pytest.raises(KafkaException) as of_arrays:
        ArrayProducer(settings, print)
    assert str(of_arrays.value.args[0]) == str(of_package.value.args[0])


def test_statistics_do_not_pile_up_while_no_record_comes(
    kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.runtime.connectors.kafka.transactional_producer.STATISTICS_MS", 50)
    running = Running(KafkaSink(topic, kafka.bootstrap))
    clients = [each.client for each in running.operator._all_producers()]

    def waiting() -> list[int]:
        return [client._library.outq_len(client._there) for client in clients]

    eventually(lambda: len(clients) == 2 and min(waiting()) >= 5, "statistics that wait")
    running.checkpoint(1)
    assert max(waiting()) < 5
    running.operator.close()


# -- where it is used


@pytest.mark.parametrize(
    ("settings", "can"), [({"acks": "all", "linger.ms": 0.5, "x": True}, True), ({"error_cb": print}, False)]
)
def test_functions_among_the_settings_are_for_the_package(settings: dict[str, Any], can: bool) -> None:
    assert librdkafka.can_do(settings) is can


def test_lines_of_librdkafka_that_are_wanted_come_by_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIBRDKAFKA, "level", 20)
    LIBRDKAFKA.manager._clear_cache()  # type: ignore[attr-defined]
    assert not librdkafka.can_do({})
    monkeypatch.undo()
    LIBRDKAFKA.manager._clear_cache()  # type: ignore[attr-defined]
    assert librdkafka.can_do({})


def test_a_sink_writes_the_same_with_the_packages_producer(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    def written() -> list[Any]:
        topic = kafka.create_topic(3)
        running = Running(KafkaSink(topic, kafka.bootstrap, key="k"))
        columns = pa.RecordBatch.from_pydict({"k": ["a", "b", None, "c"] * 5, "n": list(range(20))})
        running.operator.process_batch(columns, Collector())
        running.take({"k": "a", "n": 'text "é"'}, {"k": 7, "n": None})
        running.checkpoint(1)
        running.complete(1)
        running.operator.close()
        return [(m.partition(), m.key(), m.value()) for m in messages(kafka, topic) if m.key() is not None]

    by_arrays = written()
    monkeypatch.setattr("understudy.runtime.connectors.kafka.transactional_producer.can_do", lambda settings: False)
    assert written() == by_arrays
