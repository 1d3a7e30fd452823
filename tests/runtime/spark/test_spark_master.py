"""A stand-alone Spark cluster: a master and a worker of two cores, each a JVM of its own, and a program as users start
it, whose executor is killed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyspark
import pytest

from ...prepared import PATIENCE_SECONDS
from ..clusters.jobs import eventually

pytestmark = [pytest.mark.spark, pytest.mark.drawn, pytest.mark.slow]

COUNT, KEYS = 3_000, 7

MODULE = """
from understudy import KeyedOperator, ValueState

class Counting(KeyedOperator):
    seen = ValueState(int, default=0)
    def process(self, record, out):
        self.seen.update(self.seen.value() + 1)
        out.collect((self.key, self.seen.value()))
"""

SCRIPT = """
import sys
from pyspark.sql import SparkSession
from beside import Counting
from understudy import JobFailed, SparkCluster, StreamEnvironment

settings = {
    "spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.executor.memory": "512m",
    "spark.local.dir": sys.argv[2], "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
}
spark = SparkSession.builder.master(sys.argv[1]).config(map=settings).getOrCreate()

def program(**limits):
    env = StreamEnvironment(checkpoint_interval_ms=100)
    rows = env.from_dataframe(spark.range(3000).selectExpr("id % 7 AS key"), **limits)
    rows.key_by("key").process(Counting, name="count").collect(name="counts")
    return env

with SparkCluster(spark, task_managers=2) as cluster:
    job = cluster.submit(program(records_per_second=300), "counts")
    job.on_event(lambda event: print(type(event).__name__, flush=True))
    details = job.wait()
    print("restarts", details.restarts)
    print("counts", sorted(job.results("counts")), flush=True)
with SparkCluster(spark, task_managers=3, slot_timeout_ms=20_000) as cluster:
    try:
        cluster.submit(program(), "wide").wait()
    except JobFailed as error:
        print("failed", str(error).replace("\\n", " "), flush=True)
spark.stop()
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL. Nothing of it may stay behind."""
    folder = tmp_path_factory.mktemp("spark")
    started: list[subprocess.Popen[bytes]] = []

    def start(kind: str, *arguments: str) -> Callable[[], str]:
        log = folder / f"{kind}.log"
        spark_class = Path(pyspark.__path__[0], "bin", "spark-class")
        environment = os.environ | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        name = f"org.apache.spark.deploy.{kind}.{kind.title()}"
        where = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        with log.open("wb") as file:
            command = [str(spark_class), name, *where, *arguments]
            started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file))
        return log.read_text

    def url() -> str:
        found = re.search(r"spark://127\.0\.0\.1:\d+", said())
        return found[0] if found else ""

    try:
        said = start("master")
        eventually(lambda: url() != "", said)
        worker = start("worker", "--cores", "2", "--memory", "1g", "--work-dir", str(folder / "work"), url())
        eventually(lambda: "Successfully registered with master" in worker(), worker)
        yield url()
    finally:
        whole = [each for own in started for each in (psutil.Process(own.pid), *children(own))]
        for own in reversed(started):
            own.terminate()
            own.wait(timeout=PATIENCE_SECONDS)
        _, left = psutil.wait_procs(whole, timeout=PATIENCE_SECONDS)
        assert not left


def children(started: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(started.pid).children(recursive=True)


def executors() -> list[psutil.Process]:
    """Of all applications of the master's worker, which is this process's child."""
    living = psutil.Process().children(recursive=True)
    return [each for each in living if any("CoarseGrainedExecutorBackend" in part for part in each.cmdline())]


def test_a_job_goes_on_when_its_executor_is_killed_and_one_that_is_too_wide_is_told_why(
    master: str, tmp_path: Path
) -> None:
    """The code of operators is in a module beside the script, and the package on no executor."""
    (tmp_path / "beside.py").write_text(MODULE)
    script, log = tmp_path / "script.py", tmp_path / "log"
    script.write_text(SCRIPT)
    with log.open("wb") as errors:
        program = subprocess.Popen(
            [sys.executable, str(script), master, str(tmp_path / "local")],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        )
    try:
        assert program.stdout is not None
        assert any(line.startswith("CheckpointCompleted") for line in program.stdout), log.read_text()
        (executor,) = executors()
        executor.kill()
        said = program.stdout.read()
        assert program.wait(timeout=PATIENCE_SECONDS) == 0, log.read_text()
    finally:
        program.kill()
        program.communicate()
    per_key = {key: len(range(key, COUNT, KEYS)) for key in range(KEYS)}
    assert f"counts {sorted((key, n + 1) for key, rows in per_key.items() for n in range(rows))}\n" in said
    assert "restarts 0" not in said
    assert "137 is SIGKILL" in log.read_text()
    assert "needs 3 slots, 2 are offered" in said
    assert re.search(r"Spark has 1 executor \(\d on 127\.0\.0\.1 with 2 cores for 2 tasks\), and 2 of 2 slots", said)
    assert "start more workers, or give them more cores or memory, or give SparkCluster task_managers=2" in said
