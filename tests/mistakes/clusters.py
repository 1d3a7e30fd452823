"""The clusters that mistakes are made on."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from understudy import Cluster, LocalCluster, SparkCluster
from understudy.runtime.clusters.spark_session import spark_session
from understudy.testing import SimulatedCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("local", "simulated", "spark")
PATIENCE_MS = 60_000
"""Between heartbeats: a record of 64 MB holds its whole process while it is packed, on a busy machine for 10 s."""


@contextlib.contextmanager
def cluster_named(name: str, session: SparkSession | None = None) -> Iterator[Cluster]:
    """Two TaskManagers of it. `session`: to run on, on Spark; without it one is started."""
    match name:
        case "local":
            with LocalCluster(task_managers=2, heartbeat_timeout_ms=PATIENCE_MS) as local:
                yield local
        case "simulated":
            with SimulatedCluster(task_managers=2) as simulated:
                yield simulated
        case "spark":
            with contextlib.ExitStack() as own:
                if session is None:
                    folder = own.enter_context(tempfile.TemporaryDirectory())
                    session = own.enter_context(spark_session("local[2]", Path(folder)))
                yield own.enter_context(
                    SparkCluster(session, 2, slot_timeout_ms=300_000, heartbeat_timeout_ms=PATIENCE_MS)
                )
        case _:
            raise ValueError(f"wanted one of {', '.join(NAMES)}, found {name!r}")
