"""Spark's Python daemon, with everything imported that a TaskManager needs. Only ever run, as `python -m`, by Spark.

Spark forks its Python workers from a daemon process that has imported next to nothing, and so each new worker spends
most of a second on imports. This daemon is PySpark's own, which imports first: a worker that takes a dead one's place
is a TaskManager after some fifty milliseconds. Spark runs it by the setting `spark.python.daemon.module`; SparkCluster
does so on a local master, and elsewhere who creates the session may, where this package is installed on the executors.

PySpark imports after the fork because libraries may start threads as they are imported. Those of ours that do (OpenBLAS
and jemalloc) prepare for forks; a LocalCluster's template relies on the same.
"""

from __future__ import annotations

import importlib
import sys

from .as_task_manager import preparing_task_managers

PRELOADED = (
    "pandas",
    "pyspark.core.files",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "understudy.runtime.clusters.spark_launcher",
)


def main() -> None:
    """The daemon's entry point, in PySpark's place."""
    with preparing_task_managers():
        for name in PRELOADED:
            importlib.import_module(name)
    sys.path_importer_cache.clear()  # or each worker reads the directories of PySpark's archives again: 0.2 s
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
