"""Jobs from Kafka through a shuffle and state to Kafka are exact, whatever is killed: TaskManagers, broker, driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kafka_answers import problems_of_numbered, read_numbered
from benchmarks.sides.kafka import run_killed
from tests.runtime.clusters.jobs import eventually
from tests.systems.kafka import KafkaBroker
from understudy import LocalCluster, NoSuchTopic, OperatorCheckFailed, StreamEnvironment

from .topics import put

pytestmark = pytest.mark.processes

KEYS, ROWS = 20, 2_000

_DRIVER = """
import sys

import pyarrow as pa

from benchmarks.sides.kafka import SCHEMA, Count
from understudy import LocalCluster, StreamEnvironment, fixed_delay

servers, topic, answers, folder = sys.argv[1:]

if __name__ == "__main__":
    env = StreamEnvironment(
        parallelism=2, checkpoint_interval_ms=100, checkpoint_dir=folder, restart_strategy=fixed_delay(50, 0)
    )
    records = env.from_kafka(topic, servers, schema=SCHEMA)
    records.key_by("key").process(Count).to_kafka(answers, servers, key="key")
    with LocalCluster(task_managers=2) as cluster:
        cluster.submit(env, name="driven", resume="latest").wait()
"""


def test_a_driver_that_is_killed_is_resumed_exactly(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic, answers = kafka.create_topic(4), kafka.create_topic(2)
    (tmp_path / "driver.py").write_text(_DRIVER)
    paths = os.pathsep.join(each for each in sys.path if each)
    command = [sys.executable, str(tmp_path / "driver.py"), kafka.bootstrap, topic, answers, str(tmp_path / "cp")]
    for run in (1, 2):  # each sees half of the records, and is killed
        half = range(ROWS * (run - 1) // 2, ROWS * run // 2)
        put(kafka, topic, ({"key": index % KEYS, "index": index} for index in half))
        driver = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, start_new_session=True)
        try:
            eventually(lambda: len(read_numbered(kafka.bootstrap, answers)) >= half.stop, f"output of run {run}")  # noqa: B023
        finally:
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
    assert problems_of_numbered(read_numbered(kafka.bootstrap, answers), ROWS, KEYS) == []


@pytest.mark.slow
def test_task_managers_and_the_broker_are_killed(tmp_path: Path) -> None:
    """`python -m benchmarks kafka --rows 0 --kills 50 --broker-kills 3` is the long form."""
    broker = KafkaBroker(tmp_path / "kafka")
    broker.start()
    options = {"kills": 4, "broker_kills": 1, "seed": 1, "keys": KEYS, "per_s": 500, "checkpoint_interval_ms": 200}
    try:
        said = run_killed(options, broker, tmp_path / "job")
    finally:
        broker.stop()
    assert (said["killed"], said["broker_killed"]) == (4, 1)
    assert problems_of_numbered(said["found"], said["fed"], KEYS) == []


@pytest.mark.usefixtures("forked_templates")
def test_a_missing_topic_is_refused_at_submit(kafka: KafkaBroker) -> None:
    env = StreamEnvironment()
    env.from_kafka("nowhere", kafka.bootstrap).print()
    with LocalCluster(task_managers=1) as cluster:
        with pytest.raises(OperatorCheckFailed, match="topic 'nowhere' is not there") as raised:
            cluster.submit(env)
        assert isinstance(raised.value.__cause__, NoSuchTopic)
