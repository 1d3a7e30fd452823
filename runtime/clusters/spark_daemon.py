"""Spark's Python daemon, with everything imported that a TaskManager needs.

Spark forks its Python workers from a daemon process that has imported next to nothing, and so each new worker spends
most of a second on imports. This daemon is PySpark's own, which imports first: a worker that takes a dead one's place
is a TaskManager after some fifty milliseconds. Spark runs it when told to by `spark.python.daemon.module`; SparkCluster
does so on a local master, and elsewhere who creates the session may, where this package is installed on the executors.

PySpark imports after the fork because libraries may start threads as they are imported. Those of ours that do (OpenBLAS
and jemalloc) prepare for forks; a LocalCluster's template relies on the same.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.python.daemon.module"
MODULE = "understudy.runtime.clusters.spark_daemon"

_PRELOADED = (
    "pandas",
    "pyspark.core.files",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "understudy.runtime.clusters.spark_launcher",
)


def preload_workers(spark: SparkSession) -> None:
    """Let the session's Python workers be forked from this daemon, unless the user has chosen one, or the interpreter.

    Only on a local master, whose executor reads the driver's settings, and only if a new interpreter finds this very
    package: what a script has put on its own path, a daemon does not see.
    """
    context: Any = spark.sparkContext
    settings = context._jsc.sc().conf()
    is_local = context.master == "local" or context.master.startswith("local[")
    if is_local and context.pythonExec == sys.executable and not settings.contains(SETTING) and _is_found():
        settings.set(SETTING, MODULE)


def main() -> None:
    """The daemon's entry point, in PySpark's place."""
    for name in _PRELOADED:
        importlib.import_module(name)
    sys.path_importer_cache.clear()  # or each worker reads the directories of PySpark's archives again: 0.2 s
    from pyspark.daemon import manager

    manager()


def _is_found() -> bool:
    import understudy

    find = "import importlib.util as u; found = u.find_spec('understudy'); print(found.origin if found else '', end='')"
    found = subprocess.run([sys.executable, "-c", find], capture_output=True, text=True, check=False)
    return found.returncode == 0 and found.stdout == understudy.__file__


if __name__ == "__main__":
    main()
