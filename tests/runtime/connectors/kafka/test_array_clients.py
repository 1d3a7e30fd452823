"""ArrayProducer and ArrayConsumer on a real broker: what the package's clients do, for thousands of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.runtime.connectors.harness import Running
from tests.systems.kafka import KafkaBroker
from understudy import KafkaRefused, KafkaSink
from understudy.actors.operators.collector import Collector
from understudy.runtime.connectors.kafka import librdkafka
from understudy.runtime.connectors.kafka.array_consumer import ArrayConsumer, ArrayMessage, Taken
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
    consumer = ArrayConsumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic}, print, print)
    for each in (producer, consumer):
        each.close(*([0] if each is producer else []))
    closed = [
        lambda: producer.produce_columns(topic, pa.array([b"x"]), None, 1),
        lambda: producer.flush(1),
        lambda: producer.poll(0),
        producer.begin_transaction,
        lambda: consumer.take(1, 0),
        lambda: consumer.pause([TopicPartition(topic, 0)]),
    ]
    for call in closed:
        with pytest.raises(RuntimeError, match="is closed: make another one"):
            call()


def test_a_setting_that_is_none_is_refused_as_by_the_package(kafka: KafkaBroker) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap, "no.such.setting": "1"}
    with pytest.raises(KafkaException) as of_package:
        Producer(settings)
    for make in (lambda: ArrayProducer(settings, print), lambda: ArrayConsumer(settings, print, print)):
        with pytest.raises(KafkaException) as of_arrays:
            make()
        assert str(of_arrays.value.args[0]) == str(of_package.value.args[0])


# -- the consumer


def taken(consumer: ArrayConsumer) -> Iterator[Taken]:
    while True:
        if (found := consumer.take(100, 0.1)) is not None:
            yield found


@pytest.mark.parametrize("rows", [0, 1, 1_000])
def test_all_messages_come_in_order_with_their_offsets_and_then_the_end(kafka: KafkaBroker, rows: int) -> None:
    topic = kafka.create_topic(2)
    put(kafka, topic, [b"%d" % number for number in range(rows)], partition=0)
    put(kafka, topic, [b"", None, b"last"], partition=1)
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "enable.partition.eof": True}
    consumer = ArrayConsumer(settings, print, print)
    consumer.incremental_assign([TopicPartition(topic, number, 0) for number in range(2)])
    found: dict[int, list[ArrayMessage]] = {0: [], 1: []}
    ends: dict[int, int] = {}
    for each in taken(consumer):
        for number, those in each.messages:
            found[number] += those
        ends |= {number: offset for number, offset, error in each.problems if error.name() == "_PARTITION_EOF"}
        if len(ends) == 2:
            break
    consumer.close()
    assert [(m.offset(), m.value()) for m in found[0]] == [(number, b"%d" % number) for number in range(rows)]
    assert [(m.offset(), m.value()) for m in found[1]] == [(0, b""), (1, None), (2, b"last")]
    assert ends == {0: rows, 1: 3}


def test_offsets_are_committed_and_the_answer_is_heard(kafka: KafkaBroker, topic: str) -> None:
    heard: list[Any] = []
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "enable.auto.commit": False}
    consumer = ArrayConsumer(settings, print, lambda problem, _places: heard.append(problem))
    consumer.commit([TopicPartition(topic, 0, 7)], asynchronous=True)
    while not heard:
        consumer.take(1, 0.1)
    consumer.close()
    assert heard == [None]
    package = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    assert package.committed([TopicPartition(topic, 0)], timeout=60)[0].offset == 7
    package.close()


def test_brokers_that_are_away_are_heard_of() -> None:
    heard: list[Any] = []
    consumer = ArrayConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, heard.append, print)
    while not heard:
        consumer.take(1, 0.1)
    with pytest.raises(KafkaException):
        consumer.list_topics("t", timeout=0.1)
    consumer.close()
    assert heard[0].name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN")


# -- where they are used


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
