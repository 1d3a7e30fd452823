"""A PySpark daemon that has the runtime imported, so that a TaskManager's worker is forked ready instead of importing
for most of a second.

Set it when the session is built, on a cluster whose workers have this package installed:

    SparkSession.builder.config("spark.python.daemon.module", "understudy.runtime.clusters.spark_daemon")

Spark runs it as `python -m`. It starts no thread and opens no socket of ours before the fork.
"""

from __future__ import annotations

from pyspark import daemon

from . import task_manager_process  # noqa: F401 - imported for the workers that are forked from here

if __name__ == "__main__":
    daemon.manager()
