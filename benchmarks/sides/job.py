"""Runs one of our jobs and takes its time: from the JobManager's decision to deploy, when all TaskManagers have
registered, to the moment when the client knows that the job has finished, with all output committed.

Left out, as start-up, are imports, the start of the cluster and of its TaskManagers. Deployment is not.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy import (
    CheckpointCompleted,
    Cluster,
    JobHandle,
    JobStatus,
    JobStatusChanged,
    LocalCluster,
    StreamEnvironment,
    TaskManagerChanged,
    no_restart,
)

TASK_MANAGERS = 2
CHECKPOINT_INTERVAL_MS = 1000
PACKAGES = ("understudy", "numpy", "pyarrow", "pyzmq", "msgpack")

Watched = Callable[[JobHandle], contextlib.AbstractContextManager[Any]]
"""What goes on beside a job, from its begin to its end."""


@dataclass
class Timed:
    """One job, over."""

    job: JobHandle
    seconds: float
    checkpoints: list[CheckpointCompleted]
    ended_s: float = 0.0

    @property
    def span(self) -> dict[str, float]:
        """Begin and end, for whoever measures what processes took in between."""
        return {"began_s": self.ended_s - self.seconds, "ended_s": self.ended_s}

    def told(self) -> dict[str, Any]:
        """What the report says of the checkpoints."""
        return {
            "count": len(self.checkpoints),
            "longest_ms": max((one.duration_ms for one in self.checkpoints), default=0),
            "largest_bytes": max((one.state_size_bytes for one in self.checkpoints), default=0),
        }


class Clock:
    """Hears a job's events."""

    def __init__(self) -> None:
        self.deployed_s = 0.0
        self._has_run = False
        self.checkpoints: list[CheckpointCompleted] = []

    def on_event(self, event: Any) -> None:
        match event:
            case TaskManagerChanged(registered=True) if not self._has_run:
                self.deployed_s = event.timestamp_ms / 1000  # with the last one come the deployments
            case JobStatusChanged(status=JobStatus.RUNNING):
                self._has_run = True
            case CheckpointCompleted():
                self.checkpoints.append(event)


def timed(cluster: Cluster, env: StreamEnvironment, name: str, watched: Watched = contextlib.nullcontext) -> Timed:
    """Run the job to its end. Raises JobFailed."""
    clock = Clock()
    job = cluster.submit(env, name=name)
    job.on_event(clock.on_event)
    submitted_s = time.time()
    with watched(job):
        job.wait()
    ended_s = time.time()
    return Timed(job, ended_s - (clock.deployed_s or submitted_s), clock.checkpoints, ended_s)


def environment(out: Path, options: dict[str, Any]) -> StreamEnvironment:
    """Exactly once with a checkpoint every second, unless the options say otherwise (0: none). A failure is to show, so
    the job does not restart.
    """
    return StreamEnvironment(
        restart_strategy=no_restart(),
        parallelism=options.get("parallelism"),
        checkpoint_interval_ms=options.get("checkpoint_interval_ms", CHECKPOINT_INTERVAL_MS) or None,
        checkpoint_dir=str(out / "checkpoints"),
        batch_rows=options.get("batch_rows"),
        state_backend=options.get("state_backend", "filesystem"),
        incremental_checkpoints=options.get("incremental", False),
    )


@contextlib.contextmanager
def local_cluster(options: dict[str, Any]) -> Iterator[Cluster]:
    with LocalCluster(task_managers=options.get("task_managers", TASK_MANAGERS)) as cluster:
        yield cluster
