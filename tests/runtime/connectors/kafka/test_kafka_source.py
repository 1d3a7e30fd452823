"""KafkaSource on a real broker: offsets lead to the same records, partitions have one reader, gone data is an error."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isnan
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.ipc
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from tests.runtime.connectors.harness import make_context
from tests.systems.kafka import ALICE, KafkaBroker
from understudy import (
    END,
    AvroFormat,
    DataGone,
    FromSplit,
    KafkaRefused,
    KafkaSource,
    KafkaUnavailable,
    NoSuchTopic,
    UnreadableMessage,
)
from understudy.actors.flow.records import rows_of
from understudy.messages import CheckpointId
from understudy.runtime.connectors.kafka import partition_reader

from .topics import put

pytestmark = pytest.mark.processes

WAIT_S = 60


class Reading:
    """One attempt of one subtask of a source."""

    def __init__(self, source: KafkaSource, offset: Any = None, rescale: Any = None, **where: Any) -> None:
        self.source, self.woken = source, threading.Event()
        source.context = make_context(**where)
        source.context.wake = self.woken.set
        source.open()
        if offset is not None:
            source.seek(offset)
        if rescale is not None:
            source.rescale(rescale)

    def batch(self) -> Any:
        """The next one, as `poll` returns it, or END. Waits."""
        while True:
            self.woken.clear()
            self.source.current_splits()
            polled = self.source.poll()
            if polled is not None:
                return polled
            assert self.woken.wait(WAIT_S), "nothing comes"

    def take(self, count: int) -> list[Any]:
        """At least so many records."""
        found: list[Any] = []
        while len(found) < count:
            batch = self.batch()
            assert batch is not END, f"it has ended after {len(found)} records"
            found += records(batch)
        return found

    def rest(self) -> list[Any]:
        found: list[Any] = []
        while (batch := self.batch()) is not END:
            found += records(batch)
        return found

    def until_found(self) -> Reading:
        """Until it knows its partitions."""
        while self.source.current_splits() is None:
            self.woken.clear()
            assert self.source.poll() is None
            if self.source.current_splits() is None:
                assert self.woken.wait(WAIT_S)
        return self

    def fails(self) -> None:
        self.take(1_000_000)


def records(batch: FromSplit) -> list[Any]:
    if isinstance(batch.records, pa.RecordBatch):
        return [row.asdict() for row in rows_of(batch.records)]
    return list(batch.records)


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    return kafka.create_topic(3)


@pytest.fixture
def begin(kafka: KafkaBroker, topic: str) -> Iterator[Any]:
    made: list[Reading] = []

    def reading(
        offset: Any = None, rescale: Any = None, subtask: int = 0, parallelism: int = 1, **options: Any
    ) -> Reading:
        settings = {"topics": topic, "bootstrap_servers": kafka.bootstrap, "bounded": True} | options
        made.append(Reading(KafkaSource(**settings), offset, rescale, subtask=subtask, parallelism=parallelism))
        return made[-1]

    yield reading
    for each in made:
        each.source.close()


def numbers(found: list[Any]) -> list[int]:
    return sorted(each["n"] for each in found)


# -- offsets


def test_a_bounded_source_reads_all_that_is_there_when_it_starts(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [{"n": n, "key": n} for n in range(100)])
    reading = begin().until_found()
    put(kafka, topic, [{"n": 100, "key": "later"}])
    assert numbers(reading.rest()) == list(range(100))


def test_an_empty_topic_ends_at_once_and_so_does_a_subtask_without_a_partition(begin: Any) -> None:
    assert begin().rest() == []
    assert begin(subtask=4, parallelism=5).rest() == begin(subtask=3, parallelism=5).rest() == []


def test_the_subtasks_together_read_everything_once(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [{"n": n, "key": n} for n in range(60)])
    found = [record for subtask in range(2) for record in begin(subtask=subtask, parallelism=2).rest()]
    assert numbers(found) == list(range(60))


def test_an_offset_leads_to_the_same_remaining_records(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [{"n": n, "key": n} for n in range(100)])
    first = begin(batch_rows=7)
    seen: list[Any] = []
    offsets = [(0, first.source.offset())]
    while (batch := first.batch()) is not END:
        seen += records(batch)
        offsets.append((len(seen), first.source.offset()))
    for taken, offset in offsets[:: len(offsets) // 4]:
        assert numbers(begin(offset, batch_rows=5).rest()) == numbers(seen[taken:])


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_after_a_rescale_each_record_comes_once(kafka: KafkaBroker, topic: str, begin: Any, parallelism: int) -> None:
    put(kafka, topic, [{"n": n, "key": n} for n in range(90)])
    old = [begin(subtask=subtask, parallelism=3, batch_rows=4) for subtask in range(3)]
    seen = [record for each in old[:2] for record in records(each.batch())]
    offsets = [each.source.offset() for each in old]  # the last one has not even looked for its partitions
    new = [begin(rescale=offsets, subtask=subtask, parallelism=parallelism) for subtask in range(parallelism)]
    assert numbers(seen + [record for each in new for record in each.rest()]) == list(range(90))


@pytest.mark.parametrize(("start", "wanted"), [("earliest", [0, 1, 2, 3]), ("latest", [])])
def test_it_starts_where_it_is_said(kafka: KafkaBroker, topic: str, begin: Any, start: str, wanted: list[int]) -> None:
    put(kafka, topic, [{"n": n, "key": n} for n in range(4)])
    assert numbers(begin(start=start).rest()) == wanted


def test_latest_goes_on_with_what_comes_after_the_start(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [{"n": 0}])
    reading = begin(start="latest", bounded=False).until_found()
    put(kafka, topic, [{"n": 1}])
    assert numbers(reading.take(1)) == [1]


@pytest.mark.parametrize("as_datetime", [False, True])
def test_it_starts_at_a_time(kafka: KafkaBroker, topic: str, begin: Any, as_datetime: bool) -> None:
    for n in range(4):
        put(kafka, topic, [{"n": n}], partition=n % 2, timestamp=1_700_000_000_000 + n * 1000)
    start: Any = 1_700_000_002_000
    if as_datetime:
        start = datetime.fromtimestamp(start / 1000, UTC)
    assert numbers(begin(start=start).rest()) == [2, 3]
    assert begin(start=1_800_000_000_000).rest() == []


def test_a_group_shows_the_offsets_of_completed_checkpoints_and_can_be_started_from(
    kafka: KafkaBroker, topic: str, begin: Any
) -> None:
    put(kafka, topic, [{"n": n} for n in range(10)], partition=0)
    first = begin(bounded=False, group=f"of-{topic}", batch_rows=5)
    first.take(10)
    first.source.on_checkpoint(CheckpointId(1))
    first.source.on_checkpoint_complete(CheckpointId(1))
    put(kafka, topic, [{"n": 10}], partition=0)
    first.take(1)
    first.source.close()  # which sends what is to be committed still
    asked = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"of-{topic}"})
    (committed,) = asked.committed([TopicPartition(topic, 0)], WAIT_S)
    asked.close()
    assert committed.offset == 10
    assert numbers(begin(start="group", group=f"of-{topic}").rest()) == [10]
    assert numbers(begin(start="group", group=f"nobody-{topic}").rest()) == list(range(11))
    assert begin(start="group-or-latest", group=f"nobody-{topic}").rest() == []


def test_partitions_that_appear_later_are_read_from_their_beginning(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    reading = begin(bounded=False, start="latest", discover_ms=50).until_found()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WAIT_S)
    put(kafka, topic, [{"n": 1}], partition=3)
    assert numbers(reading.take(1)) == [1]
    assert f"{topic}-3" in reading.source.current_splits()  # type: ignore[operator]
    offset = reading.source.offset()
    put(kafka, topic, [{"n": 2}], partition=3)
    assert numbers(begin(offset, bounded=False, start="latest").take(1)) == [2]


def test_a_partition_that_appeared_while_the_job_was_down_is_read_from_its_beginning(
    kafka: KafkaBroker, topic: str, begin: Any
) -> None:
    offset = begin(bounded=False, start="latest").until_found().source.offset()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WAIT_S)
    put(kafka, topic, [{"n": 1}], partition=3)
    assert numbers(begin(offset, bounded=False, start="latest").take(1)) == [1]


def test_records_of_aborted_and_open_transactions_are_not_read(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"test-{topic}"})
    producer.init_transactions(WAIT_S)
    for n, end in enumerate((producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, b'{"n": %d}' % n, partition=0)
        producer.flush(WAIT_S)
        end(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b'{"n": 3}', partition=0)
    producer.flush(WAIT_S)
    assert numbers(begin().rest()) == [0, 2]
    assert numbers(begin(isolation="read_uncommitted").rest()) == [0, 1, 2, 3]
    producer.abort_transaction(WAIT_S)


def test_it_says_how_far_behind_it_is(
    kafka: KafkaBroker, topic: str, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the last record of each partition is the mark of its transaction."""
    monkeypatch.setattr(partition_reader, "_COUNT_S", 0.0)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{topic}-behind"})
    producer.init_transactions()
    producer.begin_transaction()
    for value in range(9):
        producer.produce(topic, str(value).encode(), partition=value % 3)
    producer.commit_transaction()
    reading = begin(bounded=False, batch_rows=1)
    pending: set[float] = set()
    while 0 not in pending:
        reading.source.poll()
        pending |= set() if isnan(found := reading.source._pending()) else {found}
        reading.woken.wait(0.01)
    assert 0 < max(pending) <= 9 + 3


def test_a_paused_split_holds_no_other_up(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [{"n": n} for n in range(50)], partition=0)
    put(kafka, topic, [{"n": 100 + n} for n in range(50)], partition=1)
    reading = begin(batch_rows=2).until_found()
    reading.source.paused_splits = frozenset({f"{topic}-0"})
    assert numbers(reading.take(50)) == list(range(100, 150))
    reading.source.paused_splits = frozenset()
    assert numbers(reading.rest()) == list(range(50))


# -- what can go wrong


def test_data_that_is_gone_is_an_error_unless_it_is_allowed(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [{"n": n} for n in range(10)], partition=0)
    reading = begin(bounded=False, batch_rows=1)
    reading.take(1)
    offset = reading.source.offset()
    reading.source.close()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 5)]).values()
    deleted.result(WAIT_S)
    with pytest.raises(DataGone, match=rf"{topic}-0: records from offset 1 on are gone; the first .* is 5"):
        begin(offset, bounded=False).take(1)
    assert numbers(begin(offset, bounded=False, allow_data_loss=True).take(5)) == [5, 6, 7, 8, 9]


def make_again(kafka: KafkaBroker, topic: str, count: int) -> None:
    """The topic is deleted, and another one of its name has `count` records, 100 and more, in its first partition."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_topics([topic])[topic].result(WAIT_S)
    kafka.create_topic(3, topic)
    put(kafka, topic, [{"n": 100 + n} for n in range(count)], partition=0)


def test_a_topic_that_was_made_again_is_an_error_though_it_has_the_offset(
    kafka: KafkaBroker, topic: str, begin: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its offsets are those of other records: from the stored one on, all before it would be left out."""
    put(kafka, topic, [{"n": n} for n in range(3)], partition=0)
    reading = begin(bounded=False)
    reading.take(3)
    offset = reading.source.offset()
    reading.source.close()
    make_again(kafka, topic, 5)
    with pytest.raises(DataGone, match=rf"topic '{topic}' was deleted and made again.*allow_data_loss=True"):
        begin(offset, bounded=False).take(1)
    again = begin(offset, bounded=False, allow_data_loss=True)
    assert numbers(again.take(5)) == [100, 101, 102, 103, 104]
    assert any("made again" in each.getMessage() for each in caplog.records)
    later = begin(again.source.offset(), bounded=False)
    put(kafka, topic, [{"n": 1}], partition=0)
    assert numbers(later.take(1)) == [1]


def test_an_offset_of_an_earlier_release_goes_on_with_the_topic_that_is_there(
    kafka: KafkaBroker, topic: str, begin: Any
) -> None:
    put(kafka, topic, [{"n": n} for n in range(3)], partition=0)
    offset = {
        "subtask": 0,
        "parallelism": 1,
        "positions": {f"{topic}-{n}": [1 if n == 0 else 0, None] for n in range(3)},
    }
    reading = begin(offset, bounded=False)
    assert numbers(reading.take(2)) == [1, 2]
    stored = reading.source.offset()
    reading.source.close()
    make_again(kafka, topic, 5)
    with pytest.raises(DataGone, match="made again"):
        begin(stored, bounded=False).take(1)


@pytest.mark.parametrize("bounded", [False, True])
def test_a_topic_that_is_made_again_while_it_is_read_is_an_error(
    kafka: KafkaBroker, topic: str, begin: Any, bounded: bool
) -> None:
    """A bounded source too, which would wait for its end for ever, or reach it by other records."""
    put(kafka, topic, [{"n": n} for n in range(20)], partition=0)
    reading = begin(bounded=bounded, discover_ms=300, batch_rows=1)
    reading.take(1)
    make_again(kafka, topic, 30)
    with pytest.raises((DataGone, NoSuchTopic), match=f"topic '{topic}'") as raised:
        reading.rest()
    if raised.type is NoSuchTopic:  # asked between the two; the restart finds the new one
        with pytest.raises(DataGone, match="made again"):
            begin(reading.source.offset(), bounded=bounded).take(1)


def test_a_missing_topic_is_refused_at_submit_and_fails_in_a_task(kafka: KafkaBroker, begin: Any) -> None:
    with pytest.raises(NoSuchTopic, match="topic 'nowhere' is not there"):
        begin(topics="nowhere").source.check_at_submit(True)
    with pytest.raises(NoSuchTopic):
        begin(topics="nowhere").take(1)


def test_brokers_that_are_away_are_waited_for_and_then_named(begin: Any) -> None:
    with pytest.raises(KafkaUnavailable, match=r"no broker at 127\.0\.0\.1:1 within 1 s"):
        begin(bootstrap_servers="127.0.0.1:1", retry_ms=1_000).take(1)


@pytest.mark.parametrize(
    ("server", "found"), [("127.0.0.1:1", "Connection refused"), ("no-such-host.invalid:9092", "Failed to resolve")]
)
def test_brokers_that_cannot_be_reached_are_named_long_before_it_is_an_error(
    server: str, found: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = KafkaSource("orders", server, retry_ms=1_500)
    with pytest.raises(KafkaUnavailable, match=f"no broker at {server} within .*{found}"):
        source.check_at_submit(True)
    (said,) = [each.getMessage() for each in caplog.records if "no broker at" in each.getMessage()]
    assert said.startswith(f"KafkaSource: no broker at {server} yet, and tries again for")
    assert found in said


@pytest.mark.slow
def test_a_broker_that_is_killed_and_back_is_waited_for(
    kafka: KafkaBroker, topic: str, begin: Any, caplog: pytest.LogCaptureFixture
) -> None:
    put(kafka, topic, [{"n": 0}], partition=0)
    reading = begin(bounded=False)
    reading.take(1)
    kafka.kill()
    kafka.start()
    put(kafka, topic, [{"n": 1}], partition=0)
    assert numbers(reading.take(1)) == [1]
    assert sum("brokers do not answer" in each.message for each in caplog.records) <= 2


def test_a_wrong_password_is_an_error_that_does_not_show_it(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    name, password = ALICE
    login = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": name}
    put(kafka, topic, [{"n": 0}])
    right = begin(bootstrap_servers=kafka.secured, options=lambda: login | {"sasl.password": password})
    assert numbers(right.rest()) == [0]
    wrong = begin(bootstrap_servers=kafka.secured, options=login | {"sasl.password": "mellon"})
    with pytest.raises(KafkaRefused, match="correct the user, the password or the protocol") as raised:
        wrong.take(1)
    assert "mellon" not in f"{raised.value} {vars(wrong.source)}"


def test_a_message_that_cannot_be_read_is_named(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [{"n": 0}, b"{oops", {"n": 2}], partition=2)
    with pytest.raises(UnreadableMessage, match=rf"topic '{topic}', partition 2, offset 1: not 'json'.*oops"):
        begin().rest()
    with pytest.raises(UnreadableMessage, match="partition 2, offset 1"):
        begin(schema=pa.schema([("n", pa.int64())])).rest()


# -- formats


def test_json_as_columns(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [{"n": 1, "x": 0.5, "more": [1]}, {"x": None, "n": 2}, None], partition=0)
    schema = pa.schema([("x", pa.float64()), ("n", pa.int64())])
    reading = begin(schema=schema, metadata=["offset", "timestamp"])
    batch = reading.batch()
    assert batch.records.schema == reading.source.source_schema()
    found = records(batch) + reading.rest()
    assert [(row["kafka_offset"], row["x"], row["n"]) for row in found] == [(0, 0.5, 1), (1, None, 2)]


def test_bytes_with_all_that_kafka_knows(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    more = {"key": b"k", "headers": [("h", b"v")], "timestamp": 1_700_000_000_000}
    put(kafka, topic, [b"\xff", None], partition=1, **{name: more[name] for name in ("headers", "timestamp")})
    metadata = ("topic", "partition", "offset", "timestamp", "key", "headers")
    first, tombstone = begin(format="bytes", metadata=metadata).rest()
    assert first == {
        "value": b"\xff",
        "kafka_topic": topic,
        "kafka_partition": 1,
        "kafka_offset": 0,
        "kafka_timestamp": 1_700_000_000_000,
        "kafka_key": None,
        "kafka_headers": [{"name": "h", "value": b"v"}],
    }
    assert tombstone["value"] is None
    assert begin(format="bytes").rest() == [b"\xff"]


def test_text_and_a_format_of_ones_own(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    put(kafka, topic, [b"one", b"two"], partition=0)
    assert begin(format="text").rest() == ["one", "two"]
    assert begin(format=lambda values: [{"length": len(value)} for value in values]).rest() == [{"length": 3}] * 2


def test_arrow_messages_of_several_rows(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    def stream(*numbers: int) -> bytes:
        sink = io.BytesIO()
        table = pa.table({"n": numbers})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    put(kafka, topic, [stream(1, 2), stream(3)], partition=0)
    found = begin(format="arrow", metadata=["offset"]).rest()
    assert [(row["n"], row["kafka_offset"]) for row in found] == [(1, 0), (2, 0), (3, 1)]


def test_avro_without_a_registry(kafka: KafkaBroker, topic: str, begin: Any) -> None:
    schema = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]}
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), {"n": 5})
    put(kafka, topic, [sink.getvalue()])
    assert begin(format=AvroFormat(schema)).rest() == [{"n": 5}]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topics": []}, "topics: wanted the name of a topic"),
        ({"start": "somewhere"}, "start: wanted one of earliest"),
        ({"start": "group"}, "needs group="),
        ({"start": datetime(2026, 1, 1)}, "with a time zone"),
        ({"metadata": ["colour"]}, "metadata: wanted some of topic"),
        ({"isolation": "none"}, "isolation: wanted"),
        ({"format": "xml"}, "format: wanted one of 'json'"),
        ({"options": {"group.id": "g"}}, "group.id cannot be set here"),
        ({"batch_rows": 0}, "batch_rows: wanted a whole number from 1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        KafkaSource(**({"topics": "t", "bootstrap_servers": "b:9092"} | options))
