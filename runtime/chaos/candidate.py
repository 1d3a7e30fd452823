"""One process that wants to lead: it waits for its turn, runs the job of a failover run, and says on standard output
what happens.

    python -m understudy.runtime.chaos.candidate '{"config": {...}, "output": ..., "checkpoints": ..., ...}'

It says `leads`, `runs` when all tasks run (with the checkpoint that they were restored from), `completed ID` for each
checkpoint, and `finished`; or `deposed` if it stepped down, as on a machine that had no time for it.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from pathlib import Path
from typing import Any

from ...actors.ask_errors import ActorDead
from ...messages import CheckpointCompleted
from ..api.environment import StreamEnvironment
from ..clusters.job_errors import JobLost
from ..clusters.local_cluster import LocalCluster
from .workload import EndFile, build

JOB = "failover"
_lock = threading.Lock()


def _say(*words: object) -> None:
    with _lock:
        print(*words, flush=True)


def main(argument: str) -> None:
    told: dict[str, Any] = json.loads(argument)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    env = build(
        Path(told["output"]),
        Path(told["checkpoints"]),
        EndFile(Path(told["end"])),
        records_per_second=told["records_per_second"],
        checkpoint_interval_ms=told["checkpoint_interval_ms"],
    )
    with LocalCluster(told["task_managers"], config=told["config"]) as cluster:
        _say("leads")
        try:
            _run(cluster, env)
        except (JobLost, ActorDead):
            _say("deposed")
        else:
            _say("finished")


def _run(cluster: LocalCluster, env: StreamEnvironment) -> None:
    job = cluster.submit(env, JOB)
    job.on_event(lambda event: _say("completed", event.checkpoint_id) if _is_completed(event) else None)
    job.ready().result()
    _say("runs", job.checkpoint_history().restored_checkpoint_id)
    job.wait()


def _is_completed(event: object) -> bool:
    return isinstance(event, CheckpointCompleted)


if __name__ == "__main__":
    main(sys.argv[1])
