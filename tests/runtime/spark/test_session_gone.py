"""A Spark session that is stopped, and a JVM that is killed, while a job runs: the job ends, and says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...prepared import PATIENCE_SECONDS

pytestmark = pytest.mark.spark

SCRIPT = """
from pyspark.sql import SparkSession
from understudy import SparkCluster, StreamEnvironment

def session():
    settings = {"spark.ui.enabled": "false", "spark.log.level": "OFF"}
    return SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()

def program(frame):
    env = StreamEnvironment(checkpoint_interval_ms=100)
    env.from_dataframe(frame, records_per_second=1).collect(name="out")
    return env

def told(title, run):
    try:
        run()
    except Exception as error:
        print(title, f"{type(error).__name__}: {error}".replace("\\n", " "), flush=True)

def job_without(end):
    with SparkCluster(spark) as cluster:
        job = cluster.submit(program(spark.range(1000)))
        job.ready().result()
        end()
        job.wait()

def submit(frame):
    with SparkCluster(spark) as cluster:
        cluster.submit(program(frame))

def kill():
    own = spark.sparkContext._gateway.proc
    own.kill()
    own.wait()

spark = session()
frame = spark.range(1000)
told("stopped:", lambda: job_without(spark.stop))
told("cluster:", lambda: submit(frame))
spark = session()
told("frame:", lambda: submit(frame))
told("killed:", lambda: job_without(kill))
told("afterwards:", lambda: SparkCluster(spark).__enter__())
"""


def test_a_session_that_is_gone_ends_the_job_at_once_and_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    said = dict(line.split(": ", 1) for line in run.stdout.splitlines())
    assert said.keys() == {"stopped", "cluster", "frame", "killed", "afterwards"}, run.stderr
    assert "NoResourceAvailable: no TaskManager can start any more: the SparkSession is stopped" in said["stopped"]
    assert said["cluster"].startswith("InvalidSetting: SparkCluster: the SparkSession is stopped")
    assert said["frame"].startswith("InvalidProgram: source 'spark-source-1': the SparkSession that its DataFrame was")
    assert "NoResourceAvailable: no TaskManager can start any more: the JVM of the SparkSession" in said["killed"]
    assert said["afterwards"].startswith("InvalidSetting: SparkCluster: the JVM of the SparkSession has ended")
