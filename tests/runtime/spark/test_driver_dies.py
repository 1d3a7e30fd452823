"""A driver on Spark that is killed: its JVM and workers end by themselves, and the next start of the script goes on."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ...prepared import PATIENCE_SECONDS
from ..clusters.jobs import eventually, visible_files

pytestmark = pytest.mark.spark

COUNT, KEYS = 3_000, 8
MARK = "UNDERSTUDY_DRIVER_TEST"

SCRIPT = """
import sys
from pyspark.sql import SparkSession
from understudy import FileSink, KeyedOperator, SparkCluster, StreamEnvironment, ValueState

class Counting(KeyedOperator):
    seen = ValueState(int, default=0)
    def process(self, record, out):
        self.seen.update(self.seen.value() + 1)
        out.collect({"key": self.key, "number": self.seen.value(), "index": record})

folder = sys.argv[1]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
env = StreamEnvironment(checkpoint_interval_ms=100, checkpoint_dir=f"{folder}/checkpoints")
numbers = env.generate(lambda index: index, 3000, records_per_second=600, name="numbers")
gate = env.generate(lambda index: index, 0 if "last" in sys.argv else None, records_per_second=1, name="gate")
gate.collect(name="held")
numbers.key_by(lambda index: index % 8).process(Counting, name="count").sink_to(FileSink(f"{folder}/out", "jsonl"))
with SparkCluster(spark, task_managers=2) as cluster:
    job = cluster.submit(env, "counts", resume="latest")
    print("from", job.restored_from and job.restored_from.checkpoint_id, flush=True)
    job.on_event(lambda event: print(type(event).__name__, flush=True))
    job.wait()
spark.stop()
"""


@pytest.fixture
def mark() -> Iterator[str]:
    value = uuid.uuid4().hex
    yield value
    for process in marked(value):
        process.kill()


def marked(mark: str) -> list[psutil.Process]:
    """Every living process that was started with this mark in its environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_nothing_is_left_of_a_killed_driver_and_the_next_one_is_exact(tmp_path: Path, mark: str) -> None:
    script, log = tmp_path / "script.py", tmp_path / "log"
    script.write_text(SCRIPT)

    def start(which: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script), str(tmp_path), which],
            stdout=subprocess.PIPE,
            stderr=log.open("a"),
            text=True,
            env=os.environ | {MARK: mark},
        )

    first = start("not yet")
    assert first.stdout is not None
    assert any(line.startswith("CheckpointCompleted") for line in first.stdout), log.read_text()
    assert len(marked(mark)) >= 3, "the script, its JVM and Spark's Python workers"
    first.kill()
    first.communicate()
    eventually(lambda: marked(mark) == [], lambda: f"the end of {marked(mark)}")
    second = start("last")
    said, _ = second.communicate(timeout=PATIENCE_SECONDS)
    assert second.returncode == 0, log.read_text()
    assert int(said.splitlines()[0].removeprefix("from ")) > 0
    lines = [json.loads(line) for path in visible_files(tmp_path / "out") for line in path.read_text().splitlines()]
    assert sorted(each["index"] for each in lines) == list(range(COUNT))
    assert all(each["number"] == each["index"] // KEYS + 1 for each in lines)
    eventually(lambda: marked(mark) == [], lambda: f"the end of {marked(mark)}")
