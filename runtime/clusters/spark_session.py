"""A Spark session for the length of a command."""

from __future__ import annotations

import contextlib
import os
import re
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

_TOO_OLD = re.compile(r"class file version (\d+)\..* class file versions up to (\d+)\.")
_CLASS_FILES_OF_JAVA_0 = 44
"""Java 17 has class files of version 61, Java 8 those of 52."""


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
            wrote = log.read_text(errors="replace")
            said = f"Spark did not start on {master!r}: {java_advice(os.environ, wrote) or error}"
            raise click.ClickException("\n".join([said, *wrote.splitlines()[-10:]])) from error
        try:
            yield spark
        finally:
            spark.stop()


def java_advice(environ: Mapping[str, str], said: str = "") -> str:
    """What to do where PySpark finds no Java, or one that is too old, by what that `said`; else empty."""
    if home := environ.get("JAVA_HOME"):
        java = Path(home, "bin", "java")
        if not java.exists():
            return f"JAVA_HOME is {home}, and there is no {java}: correct it, or unset it"
    elif found := shutil.which("java", path=environ.get("PATH", "")):
        java = Path(found)
    else:
        return "there is no java on the PATH, and no JAVA_HOME: install Java 17, or set JAVA_HOME to where it is"
    if (versions := _TOO_OLD.search(said)) is None:
        return ""
    wanted, has = (int(version) - _CLASS_FILES_OF_JAVA_0 for version in versions.groups())
    return f"{java} is Java {has}, and PySpark wants Java {wanted} or later: set JAVA_HOME to where that is"


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
