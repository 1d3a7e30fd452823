"""A Spark session for the length of a command."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..connectors.spark.this_python import PYTHON_CHOSEN
from .spark_cluster import DAEMON, DAEMON_SETTING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def spark_session(master: str, folder: Path) -> Iterator[SparkSession]:
    """A session of this process only, with its files in `folder`. What the JVM logs goes to a file there, whose end is
    shown when Spark does not start.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    log = folder / "spark.log"
    builder = (
        SparkSession.builder.master(master)
        .appName("understudy")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.local.dir", str(folder / "spark"))
    )
    if master.startswith("local-cluster") and not os.environ.get("PYSPARK_PYTHON"):
        builder = builder.config(DAEMON_SETTING, DAEMON)
    with _workers_of_this_python():
        try:
            with _stderr_into(log):
                spark = builder.getOrCreate()
        except Exception as error:
            tail = log.read_text(errors="replace").splitlines()[-10:]
            raise click.ClickException("\n".join([f"Spark did not start on {master!r}: {error}", *tail])) from error
        try:
            yield spark
        finally:
            spark.stop()


@contextlib.contextmanager
def _workers_of_this_python() -> Iterator[None]:
    """All workers of the session run this interpreter, unless another was chosen."""
    if os.environ.get(PYTHON_CHOSEN):
        yield
        return
    os.environ[PYTHON_CHOSEN] = sys.executable
    try:
        yield
    finally:
        del os.environ[PYTHON_CHOSEN]


@contextlib.contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    """Processes started meanwhile write their standard error to the file, for as long as they live."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
