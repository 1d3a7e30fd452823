"""docs/connectors/kafka.md is true: its job runs against a broker, and its tables list the arguments that there are."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from understudy import KafkaSink, KafkaSource

from .prepared import Prepared
from .systems.kafka import KafkaBroker

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "connectors" / "kafka.md").read_text()
JOB, AVRO = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


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
    done = prepared.run("totals.py", kafka.bootstrap, folder=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "docs"})
    consumer.assign([TopicPartition("totals", 0, 0)])
    found = [(message.key(), json.loads(message.value())["total"]) for message in consumer.consume(3, 60)]
    consumer.close()
    assert sorted(found) == [(b"ann", 3), (b"ann", 7), (b"bob", 5)]


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
