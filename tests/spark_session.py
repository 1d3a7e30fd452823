"""The fixture `spark`: one Spark session, `local[2]`, for all tests on Spark. A JVM takes twelve seconds of the
processor to start, so it lives on, and tests that need one run in the same worker: tests/conftest.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Nothing of it may stay behind."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    own_scripts = str(Path(sys.executable).parent)  # as after `activate`: workers of PySpark run `python3`
    if not os.environ["PATH"].startswith(own_scripts):
        os.environ["PATH"] = os.pathsep.join([own_scripts, os.environ["PATH"]])
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    gateway = session.sparkContext._gateway
    yield session
    own = psutil.Process(gateway.proc.pid)
    started = [own, *own.children(recursive=True)]
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    _, left = psutil.wait_procs(started, timeout=20)
    assert not left
    SparkContext._gateway = SparkContext._jvm = None
