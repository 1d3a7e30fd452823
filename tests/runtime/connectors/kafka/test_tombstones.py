"""Messages without a value: what says that a key is gone becomes one, and one becomes a record that says so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
from confluent_kafka import Producer

from tests.systems.kafka import KafkaBroker
from understudy import KafkaSink, KafkaSource, LocalCluster, StreamEnvironment, UnreadableMessage
from understudy.actors.flow.records import RecordMismatch, rows_of
from understudy.runtime.connectors.kafka.kafka_messages import MessageMaker
from understudy.runtime.connectors.kafka.message_decoder import MessageDecoder
from understudy.runtime.connectors.kafka.partitions import Partition
from understudy.runtime.connectors.removals import Removals

from .topics import messages

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
PARTITION = Partition("people", 0)


@dataclass(frozen=True)
class Message:
    """As confluent_kafka's."""

    of_key: bytes | None
    of_value: bytes | None
    at: int = 0

    def key(self) -> bytes | None:
        return self.of_key

    def value(self) -> bytes | None:
        return self.of_value

    def offset(self) -> int:
        return self.at


def given(*pairs: tuple[Any, Any]) -> list[Message]:
    return [
        Message(key, value if isinstance(value, bytes | None) else json.dumps(value).encode(), at)
        for at, (key, value) in enumerate(pairs)
    ]


def decoded(found: list[Message], **options: Any) -> Any:
    source = KafkaSource("people", "nowhere:9092", **options)
    batch = MessageDecoder(source._settings).decode(PARTITION, found)
    if not isinstance(batch, pa.RecordBatch):
        return batch
    if (schema := source.source_schema()) is not None:
        assert batch.schema == schema
    return batch.to_pylist()


PEOPLE = given((b"1", {"id": 1, "name": "a"}), (b"1", None), (b"2", {"id": 2, "name": "b"}), (b"7", None))


def test_columns_have_the_key_of_what_is_gone_in_its_place() -> None:
    wanted = [
        {"id": 1, "name": "a", "gone": False},
        {"id": 1, "name": None, "gone": True},
        {"id": 2, "name": "b", "gone": False},
        {"id": 7, "name": None, "gone": True},
    ]
    assert decoded(PEOPLE, schema=SCHEMA, deleted="gone", key="id") == wanted
    for each in range(len(PEOPLE)):  # alone too: no value tells its columns
        assert decoded(PEOPLE[each : each + 1], schema=SCHEMA, deleted="gone", key="id") == wanted[each : each + 1]


def test_the_key_may_be_metadata_in_its_place() -> None:
    found = decoded(PEOPLE, schema=SCHEMA, metadata=["key"], deleted="gone")
    assert [(row["id"], row["kafka_key"], row["gone"]) for row in found] == [
        (1, b"1", False),
        (None, b"1", True),
        (2, b"2", False),
        (None, b"7", True),
    ]


def test_dicts_have_the_key_as_text() -> None:
    assert decoded(PEOPLE, deleted="gone", key="id", metadata="key") == [
        {"id": 1, "name": "a", "kafka_key": b"1", "gone": False},
        {"id": "1", "kafka_key": b"1", "gone": True},
        {"id": 2, "name": "b", "kafka_key": b"2", "gone": False},
        {"id": "7", "kafka_key": b"7", "gone": True},
    ]


def test_plain_values_are_null() -> None:
    found = given((b"1", b"x"), (b"2", None))
    wanted = [(b"1", False), (b"2", True)]
    for format, value in (("text", "x"), ("bytes", b"x")):
        rows = decoded(found, format=format, metadata=["key"], deleted="gone")
        assert [(row["kafka_key"], row["gone"]) for row in rows] == wanted
        assert [row["value"] for row in rows] == [value, None]


def test_plain_values_are_the_column_that_the_schema_names() -> None:
    schema = pa.schema([("line", pa.string())])
    found = given((b"1", b"x"), (b"2", None))
    rows = decoded(found, format="text", schema=schema, metadata=["key"], deleted="gone")
    assert rows == [
        {"line": "x", "kafka_key": b"1", "gone": False},
        {"line": None, "kafka_key": b"2", "gone": True},
    ]
    assert decoded(found[:1], format="text", schema=schema, metadata=["key"]) == [{"line": "x", "kafka_key": b"1"}]


def test_messages_of_several_rows_stay_in_order() -> None:
    def stream(*ids: int) -> bytes:
        sink = pa.BufferOutputStream()
        batch = pa.RecordBatch.from_pylist([{"id": each, "name": "x"} for each in ids], SCHEMA)
        with pa.ipc.new_stream(sink, SCHEMA) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()

    found = given((b"1", stream(1, 2)), (b"5", None), (b"3", stream()), (b"4", stream(4)))
    rows = decoded(found, format="arrow", schema=SCHEMA, metadata=["key"], deleted="gone", key="id")
    assert [(row["id"], row["kafka_key"], row["gone"]) for row in rows] == [
        (1, b"1", False),
        (2, b"1", False),
        (5, b"5", True),
        (4, b"4", False),
    ]


def test_a_key_that_its_column_cannot_have_is_named() -> None:
    with pytest.raises(
        UnreadableMessage, match=r"'people', partition 0, offsets 0 to 1: the key .* none of its column"
    ):
        decoded(given((b"1", {"id": 1}), (b"one", None)), schema=SCHEMA, deleted="gone", key="id")


def test_records_that_can_say_nothing_are_named() -> None:
    with pytest.raises(UnreadableMessage, match=r"deleted: it can be added to columns and dicts, found \[1\]"):
        decoded(given((b"1", [1]), (b"1", None)), deleted="gone", key="id")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"deleted": "gone", "schema": SCHEMA}, "which key is gone"),
        ({"deleted": "", "schema": SCHEMA, "key": "id"}, "wanted the name of a column"),
        ({"deleted": "name", "schema": SCHEMA, "key": "id"}, "there is a column 'name' already"),
        ({"deleted": "gone", "schema": SCHEMA, "key": "ID"}, r"wanted a column of the schema \(id, name\), found 'ID'"),
        ({"deleted": "gone", "schema": pa.schema([("at", pa.float64())]), "key": "at"}, "found 'at' of double"),
        ({"deleted": "gone", "format": "arrow", "key": "id"}, "wanted a schema too"),
        ({"deleted": "gone", "format": "bytes", "key": "id"}, "have no columns"),
        ({"key": "id"}, "name the column that says so too"),
    ],
)
def test_what_cannot_say_what_is_gone_is_refused_when_the_source_is_made(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        KafkaSource("people", "nowhere:9092", **options)


def test_the_first_that_gives_no_record_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    decoder = MessageDecoder(KafkaSource("people", "nowhere:9092")._settings)
    assert [decoder.decode(PARTITION, PEOPLE) for _ in range(2)] == [
        [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    ]
    (said,) = caplog.messages
    assert "offset 1: a message without a value" in said
    assert "deleted='gone'" in said


# -- writing


class Notes:
    """Notes the messages."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any]] = []

    def produce(self, _topic: str, value: Any, key: Any, **_more: Any) -> None:
        self.sent.append((key, None if value is None else json.loads(value)))

    def poll(self, _timeout_s: float) -> None: ...


def sent(batch: Any, removals: Removals, headers: Any = None) -> list[tuple[Any, Any]]:
    producer = Notes()
    MessageMaker("people", "json", "id", None, None, headers, removals).produce(producer, batch, 1.0)
    return producer.sent


CHANGES = [
    ("+I", 1, "a"),
    ("-U", 1, "a"),
    ("+U", 1, "b"),
    ("-U", 2, "x"),
    ("+U", 3, "x"),
    ("-D", 1, "b"),
    ("-U", 4, "z"),
]


@pytest.mark.parametrize("in_columns", [True, False])
@pytest.mark.parametrize("headers", [None, lambda record: None])
def test_changes_are_values_and_their_ends(in_columns: bool, headers: Any) -> None:
    rows = [{"kind": kind, "id": id, "name": name} for kind, id, name in CHANGES]
    batch = pa.RecordBatch.from_pylist(rows) if in_columns else rows
    assert sent(batch, Removals(kind="kind"), headers) == [
        (b"1", {"id": 1, "name": "a"}),
        (b"1", {"id": 1, "name": "b"}),
        (b"2", None),
        (b"3", {"id": 3, "name": "x"}),
        (b"1", None),
        (b"4", None),
    ]


def test_deleted_records_have_no_value_and_all_may_be() -> None:
    rows = [{"id": 1, "name": None, "gone": True}, {"id": 2, "name": "b", "gone": None}]
    for batch in (rows, pa.RecordBatch.from_pylist(rows), rows_of(pa.RecordBatch.from_pylist(rows))):
        assert sent(batch, Removals(deleted="gone")) == [(b"1", None), (b"2", {"id": 2, "name": "b"})]
        assert sent(batch[:1], Removals(deleted="gone")) == [(b"1", None)]


def test_a_format_of_ones_own_sees_records_as_they_are() -> None:
    producer = Notes()
    maker = MessageMaker("people", json.dumps, "id", None, None, None, Removals(deleted="gone"))
    maker.produce(producer, [{"id": 1, "gone": False}, {"id": 2, "gone": True}], 1.0)
    assert producer.sent == [(b"1", {"id": 1, "gone": False}), (b"2", None)]


def test_what_says_of_no_key_that_it_is_gone_is_refused() -> None:
    with pytest.raises(ValueError, match="name the column that has it, key="):
        KafkaSink("people", "nowhere:9092", deleted="gone")
    with pytest.raises(ValueError, match="not both"):
        KafkaSink("people", "nowhere:9092", key="id", deleted="gone", kind="kind")
    with pytest.raises(RecordMismatch, match="the key of a record that removes one is null"):
        sent([{"id": None, "gone": True}], Removals(deleted="gone"))
    with pytest.raises(RecordMismatch, match="says '-T', wanted one of"):
        sent([{"id": 1, "kind": "-T"}], Removals(kind="kind"))


@pytest.mark.processes
@pytest.mark.usefixtures("forked_templates")
def test_a_job_reads_and_writes_what_is_gone(kafka: KafkaBroker) -> None:
    before, after = kafka.create_topic(2), kafka.create_topic(2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for key, value in [(b"0", "a"), (b"1", "b"), (b"2", "c"), (b"41", None), (b"0", None), (b"0", "d")]:
        text = None if value is None else json.dumps({"id": int(key), "name": value})
        producer.produce(before, text, key)
    assert producer.flush(60) == 0
    env = StreamEnvironment(checkpoint_interval_ms=100, parallelism=2)
    people = env.from_kafka(before, kafka.bootstrap, schema=SCHEMA, deleted="gone", key="id", bounded=True)
    people.filter(lambda person: person.id != 1).to_kafka(after, kafka.bootstrap, key="id", deleted="gone")
    with LocalCluster(task_managers=2) as cluster:
        cluster.submit(env).wait(timeout=120)
    found: dict[bytes, list[Any]] = {}
    for message in messages(kafka, after):
        found.setdefault(message.key(), []).append(message.value() and json.loads(message.value()))
    assert found == {
        b"0": [{"id": 0, "name": "a"}, None, {"id": 0, "name": "d"}],
        b"2": [{"id": 2, "name": "c"}],
        b"41": [None],
    }
