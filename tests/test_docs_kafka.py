"""docs/connectors/kafka.md is true: its job runs against a broker, and its tables list the arguments that there are."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from understudy import KafkaSink, KafkaSource, LocalCluster, StreamEnvironment

from .prepared import Prepared
from .runtime.clusters.jobs import eventually
from .runtime.connectors.kafka.topics import messages
from .systems.kafka import KafkaBroker

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "connectors" / "kafka.md").read_text()
JOB, GONE, AVRO = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.processes
def test_the_job_reads_orders_and_writes_totals(kafka: KafkaBroker, tmp_path: Path, prepared: Prepared) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    kafka.create_topic(2, "orders")
    kafka.create_topic(1, "totals")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for customer, amount in [("ann", 3), ("bob", 5), ("ann", 4)]:
        producer.produce("orders", json.dumps({"customer": customer, "amount": amount}), customer)
    assert producer.flush(60) == 0
    (tmp_path / "totals.py").write_text(JOB)
    done = prepared.run("totals.py", kafka.bootstrap, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "docs"})
    consumer.assign([TopicPartition("totals", 0, 0)])
    found = [(message.key(), json.loads(message.value())["total"]) for message in consumer.consume(3, 60)]
    consumer.close()
    assert sorted(found) == [(b"ann", 3), (b"ann", 7), (b"bob", 5)]


@pytest.mark.processes
def test_what_is_gone_from_a_topic_is_gone_from_a_table_and_a_copy(kafka: KafkaBroker, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    kafka.create_topic(1, "people")
    kafka.create_topic(1, "copies")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for id, name in [(1, "ann"), (2, "bob"), (1, None), (3, "eve")]:
        producer.produce("people", None if name is None else json.dumps({"id": id, "name": name}), str(id))
    assert producer.flush(60) == 0
    table = tmp_path / "people.db"
    with contextlib.closing(sqlite3.connect(table)) as database:
        database.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        env = StreamEnvironment(checkpoint_interval_ms=100)
        person = pa.schema([("id", pa.int64()), ("name", pa.string())])
        exec(GONE, {"env": env, "SERVERS": kafka.bootstrap, "PERSON": person, "DATABASE": f"sqlite:///{table}"})
        with LocalCluster(task_managers=1) as cluster:
            job = cluster.submit(env)
            eventually(lambda: len(messages(kafka, "copies")) == 4, "the copies")
            job.stop()
            job.wait(timeout=120)
            rows = database.execute("SELECT * FROM people ORDER BY id")
            assert rows.fetchall() == [(2, "bob"), (3, "eve")]
    copies = [(each.key(), each.value() and json.loads(each.value())["name"]) for each in messages(kafka, "copies")]
    assert copies == [(b"1", "ann"), (b"2", "bob"), (b"1", None), (b"3", "eve")]


def test_the_avro_formats_can_be_made() -> None:
    exec(AVRO, {})


@pytest.mark.parametrize(("kind", "heading"), [(KafkaSource, "The source"), (KafkaSink, "The sink")])
def test_the_tables_list_the_arguments_and_their_defaults(kind: type, heading: str) -> None:
    (section,) = re.findall(rf"^## {heading}\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    listed = {
        name: default
        for cell in re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
        for name, default in re.findall(r"`(\w+)(?:=([^`]*))?`", cell)
    }
    parameters = inspect.signature(kind).parameters.values()
    assert set(listed) == {each.name for each in parameters}
    for each in parameters:
        if listed[each.name]:
            assert each.default == eval(listed[each.name]), each.name
