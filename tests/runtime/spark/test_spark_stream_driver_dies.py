"""A program that runs a query of Spark is killed, also in the middle of a batch: the next one is exact."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ...prepared import PATIENCE_SECONDS
from ..clusters.jobs import eventually, visible_files
from .test_driver_dies import mark, marked

__all__ = ["mark"]

pytestmark = pytest.mark.spark

ROWS_A_FILE = 50

SCRIPT = """
import sys
from pyspark.sql import SparkSession
from understudy import FileSink, LocalCluster, StreamEnvironment

folder, is_last = sys.argv[1], sys.argv[2] == "last"
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
numbers = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(f"{folder}/inbox")
shuffled = numbers.selectExpr("id", "rand() AS luck").repartition(2)
env = StreamEnvironment(checkpoint_interval_ms=100, checkpoint_dir=f"{folder}/checkpoints")
env.from_spark_stream(shuffled, available_now=is_last).sink_to(FileSink(f"{folder}/out", "jsonl"))
with LocalCluster(task_managers=1) as cluster:
    job = cluster.submit(env, "numbers", resume="latest")
    print("runs", flush=True)
    job.wait()
spark.stop()
"""


@pytest.mark.parametrize(("files", "kills"), [(6, 1), pytest.param(40, 3, marks=pytest.mark.slow)])
def test_a_killed_program_goes_on_exactly(tmp_path: Path, mark: str, files: int, kills: int) -> None:
    inbox, script, log = tmp_path / "inbox", tmp_path / "script.py", tmp_path / "log"
    inbox.mkdir()
    script.write_text(SCRIPT)
    for number in range(files):
        rows = range(number * ROWS_A_FILE, (number + 1) * ROWS_A_FILE)
        (inbox / f"{number:03}.json").write_text("".join(json.dumps({"id": row}) + "\n" for row in rows))

    def start(which: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script), str(tmp_path), which],
            stdout=subprocess.PIPE,
            stderr=log.open("a"),
            text=True,
            env=os.environ | {"UNDERSTUDY_DRIVER_TEST": mark},
        )

    def committed() -> list[int]:
        written = visible_files(tmp_path / "out") if (tmp_path / "out").exists() else []
        return [json.loads(line)["id"] for path in written for line in path.read_text().splitlines()]

    def has_more_than(rows: int) -> Callable[[], bool]:
        return lambda: len(committed()) > min(rows, files * ROWS_A_FILE - 1)

    for _ in range(kills):
        before = len(committed())
        program = start("not yet")
        eventually(has_more_than(before), f"more output than {before} rows", PATIENCE_SECONDS)
        time.sleep(random.random())
        program.kill()
        program.communicate()
        eventually(lambda: marked(mark) == [], lambda: f"the end of {marked(mark)}")
    last = start("last")
    last.communicate(timeout=PATIENCE_SECONDS)
    assert last.returncode == 0, log.read_text()
    assert sorted(committed()) == list(range(files * ROWS_A_FILE))
    eventually(lambda: marked(mark) == [], lambda: f"the end of {marked(mark)}")
