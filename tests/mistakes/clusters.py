"""The clusters that mistakes are made on."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from understudy import Cluster, LocalCluster, SparkCluster
from understudy.runtime.clusters.spark_session import spark_session
from understudy.testing import SimulatedCluster

NAMES = ("local", "simulated", "spark")


@contextlib.contextmanager
def cluster_named(name: str) -> Iterator[Cluster]:
    """Two TaskManagers of it."""
    match name:
        case "local":
            with LocalCluster(task_managers=2) as local:
                yield local
        case "simulated":
            with SimulatedCluster(task_managers=2) as simulated:
                yield simulated
        case "spark":
            with (
                tempfile.TemporaryDirectory() as folder,
                spark_session("local[2]", Path(folder)) as session,
                SparkCluster(session, task_managers=2, slot_timeout_ms=300_000) as spark,
            ):
                yield spark
        case _:
            raise ValueError(f"wanted one of {', '.join(NAMES)}, found {name!r}")
