"""One process sends into its running job: records one by one from many senders, then batches from a few.

It says how long each durable answer took, and which records were acknowledged; the sink writes which came out.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.side import Order, answer, received_order
from understudy import CheckpointCompleted, Inlet, JobHandle, Operator

from . import job

SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.float64())])
EACH = 1 << 40
"""Ids of one sender: so many times its index, and on from there."""


class Ids(Operator):
    """Keeps the ids that came, and at the end writes them to a file, in their order."""

    takes = "columns"

    def __init__(self, out: Path, name: str) -> None:
        self._out = out / f"{name}.npy"

    def open(self) -> None:
        self._ids: list[Any] = []

    def process_batch(self, batch: Any, out: Any) -> None:
        self._ids.append(batch.column("id").to_numpy())

    def on_end(self, out: Any) -> None:
        np.save(self._out, np.concatenate([np.empty(0, np.int64), *self._ids]))


class Answers:
    """When each call was made, and how long its durable answer took; and what a checkpoint would have taken."""

    def __init__(self, running: JobHandle) -> None:
        self.taken: list[tuple[float, float]] = []
        self._completed: list[tuple[float, float]] = []
        running.on_event(self._on_event)

    def _on_event(self, event: Any) -> None:
        if isinstance(event, CheckpointCompleted):
            now = time.perf_counter()
            self._completed.append((now - event.duration_ms / 1000, now))

    def percentiles(self) -> dict[str, float | None]:
        began, took = np.array(self.taken).T
        p50, p99 = np.percentile(took, [50, 99]) * 1e3
        triggered, completed = np.array(self._completed or [(0.0, 0.0)]).T
        following = np.searchsorted(triggered, began)
        there = following < len(completed)
        waited = completed[following[there]] - began[there]
        in_checkpoint = np.percentile(waited, [50, 99]) * 1e3 if there.any() else (None, None)
        return {
            "p50_ms": round(float(p50), 2),
            "p99_ms": round(float(p99), 2),
            "checkpoint_p50_ms": in_checkpoint[0] and round(float(in_checkpoint[0])),
            "checkpoint_p99_ms": in_checkpoint[1] and round(float(in_checkpoint[1])),
        }


async def one_by_one(inlet: Inlet, first: int, until: float, answers: Answers) -> int:
    """Sends a record once the one before lasts. How many."""
    count = 0
    while (began := time.perf_counter()) < until:
        await inlet.send({"id": first + count, "amount": 0.5})
        answers.taken.append((began, time.perf_counter() - began))
        count += 1
    return count


async def in_batches(inlet: Inlet, first: int, rows: int, until: float, answers: Answers) -> int:
    """The same of Arrow batches."""
    count = 0
    while (began := time.perf_counter()) < until:
        ids = np.arange(first + count, first + count + rows)
        await inlet.send_batch(pa.record_batch([ids, np.full(rows, 0.5)], schema=SCHEMA))
        answers.taken.append((began, time.perf_counter() - began))
        count += rows
    return count


async def send_all(running: JobHandle, senders: int, rows: int, seconds: float) -> dict[str, Any]:
    """`rows` 0: one by one."""
    inlets = [running.inlet("records") for _ in range(senders)]
    for inlet in inlets:
        await inlet.last_number()
    answers = Answers(running)
    began = time.perf_counter()
    until = began + seconds
    counts = await asyncio.gather(
        *(
            in_batches(inlet, EACH * index, rows, until, answers)
            if rows
            else one_by_one(inlet, EACH * index, until, answers)
            for index, inlet in enumerate(inlets)
        )
    )
    lasted = time.perf_counter() - began
    return {
        "seconds": lasted,
        "counts": counts,
        "rows_per_s": round(sum(counts) / lasted),
        **answers.percentiles(),
    }


def run(order: Order) -> None:
    options = order.options
    with job.local_cluster({}) as cluster:
        env = job.environment(order.out, {})
        env.from_inlet("records", schema=SCHEMA).sink_to(Ids(order.out, "ids"))
        running = cluster.submit(env)
        running.ready().result(timeout=60)
        said = asyncio.run(send_all(running, options["senders"], options["rows"], options["seconds"]))
        running.stop().result(timeout=60)
        running.wait(timeout=60)
    answer(said.pop("seconds"), job.PACKAGES, **said)


if __name__ == "__main__":
    run(received_order())
