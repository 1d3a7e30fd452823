"""One job writes to an outlet as fast as it can, and at its end a reader takes all of it against the clock. Another job
is paced, with a checkpoint every 200 ms: its reader follows, and notes how long after each commit its first rows come.
"""

from __future__ import annotations

import hashlib
import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.side import Order, answer, received_order
from understudy import CheckpointCompleted, JobHandle, Outlet, StreamEnvironment

from . import job

INTERVAL_MS = 200


class Taken:
    """What a reader has taken."""

    def __init__(self) -> None:
        self.batches = 0
        self._parts: list[Any] = [np.empty(0, np.int64)]

    def take(self, records: Any) -> None:
        self.batches += 1
        is_columns = isinstance(records, pa.RecordBatch)
        self._parts.append(records.column(0).to_numpy() if is_columns else np.array(records, np.int64))

    def said(self) -> dict[str, Any]:
        rows = np.concatenate(self._parts)
        order = hashlib.blake2b(np.ascontiguousarray(rows).tobytes()).hexdigest()
        distinct = len(np.unique(rows))
        return {
            "rows": len(rows),
            "sum": int(rows.sum()),
            "distinct": distinct,
            "order": order,
            "batches": self.batches,
        }


def follow(running: JobHandle) -> tuple[Taken, list[float]]:
    """Read to the end of the job; in ms, how long after each commit its first batch came.

    A commit is known to the job's listeners before the task hears of it, whose sink makes it readable. So the way from
    the JobManager to the task and back is part of the time.
    """
    commits: list[int] = []
    running.on_event(
        lambda event: commits.append(event.timestamp_ms) if isinstance(event, CheckpointCompleted) else None
    )
    taken, lags_ms, seen = Taken(), [], 0
    for batch in running.outlet("out"):
        now_ms = time.time() * 1000
        taken.take(batch.records)
        if len(commits) > seen:
            seen = len(commits)
            lags_ms.append(now_ms - commits[-1])
    return taken, lags_ms


def read(outlet: Outlet) -> tuple[Taken, float]:
    """All of it, and how many seconds that took."""
    taken, began_s = Taken(), time.perf_counter()
    for batch in outlet:
        taken.take(batch.records)
    return taken, time.perf_counter() - began_s


def numbers(start: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"number": np.arange(start, start + rows)})


def stream(env: StreamEnvironment, kind: str, rows: int, rate: float | None = None) -> None:
    """The numbers, to the outlet."""
    if kind == "columns":
        made = env.generate(numbers, rows, schema=numbers(0, 0).schema, records_per_second=rate)
    else:
        made = env.generate(lambda number: number, rows, records_per_second=rate)
    made.to_outlet("out")


def run(order: Order) -> None:
    kind, rows = order.options["kind"], order.options["rows"]
    rate, paced_rows = order.options["rate"], order.options["paced_rows"]
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, {**order.options, "checkpoint_interval_ms": INTERVAL_MS})
        stream(env, kind, rows)
        timed = job.timed(cluster, env, order.workload)
        fast, seconds = read(timed.job.outlet("out"))
        env = job.environment(order.out, {**order.options, "checkpoint_interval_ms": INTERVAL_MS})
        stream(env, kind, paced_rows, rate)
        paced = cluster.submit(env, name=f"{order.workload}-paced")
        following, lags_ms = follow(paced)
        again, _ = read(paced.outlet("out"))
    said = {"fast": fast.said(), "following": following.said(), "again": again.said()}
    answer(seconds, job.PACKAGES, lags_ms=lags_ms, job_s=timed.seconds, **said)


if __name__ == "__main__":
    run(received_order())
