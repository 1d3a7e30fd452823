"""A Spark session for the length of a command."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
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
            said = f"Spark did not start on {master!r}: {java_advice(os.environ) or error}"
            raise click.ClickException("\n".join([said, *tail])) from error
        try:
            yield spark
        finally:
            spark.stop()


def java_advice(environ: Mapping[str, str]) -> str:
    """What to do where PySpark finds no Java; empty where it finds one."""
    if home := environ.get("JAVA_HOME"):
        java = Path(home, "bin", "java")
        return "" if java.exists() else f"JAVA_HOME is {home}, and there is no {java}: correct it, or unset it"
    if shutil.which("java", path=environ.get("PATH", "")) is None:
        return "there is no java on the PATH, and no JAVA_HOME: install Java 17, or set JAVA_HOME to where it is"
    return ""


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
