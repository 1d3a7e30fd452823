"""Our side of `async`: a counter per key, in coroutines that wait, in coroutines that never do, or without any.

While the job runs, somebody asks now and then for the threads of the TaskManagers' processes and for the last
checkpoints. How many records are in flight at a checkpoint, and how often a coroutine is begun, the operator itself
writes to files; under SIGKILLs, at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.digest import combined
from benchmarks.side import Order, answer, received_order
from understudy import (
    FileSink,
    JobHandle,
    KeyedOperator,
    LocalCluster,
    StreamEnvironment,
    TaskManagerChanged,
    ValueState,
    fixed_delay,
)
from understudy.runtime.chaos.saboteur import Saboteur

from . import job
from .recovery import NUMBERED, PAUSE_S, rows_of
from .stateful_function import Digest

NAME = "wait"
AT_BARRIERS, BEGUN = "at-barriers", "begun"
"""Files: a line with the records in flight for each checkpoint, and a byte for each coroutine that was begun."""
WATCHED_EVERY_S = 0.5


class Counted(KeyedOperator):
    """Numbers the records of each key."""

    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        number = self.seen.value() + 1
        self.seen.update(number)
        out.collect((self.key, number, record.value, 0))


class NeverWaits(KeyedOperator):
    """The same in a coroutine."""

    seen = ValueState(int, default=0)

    async def process(self, record: Any, out: Any) -> None:
        number = self.seen.value() + 1
        self.seen.update(number)
        out.collect((self.key, number, record.value, 0))


class Waits(KeyedOperator):
    """The same after a while."""

    seen = ValueState(int, default=0)

    def __init__(self, wait_ms: int, out: Path) -> None:
        self._wait_s = wait_ms / 1000
        self._out = out

    def open(self) -> None:
        self._running = 0
        self._at_barriers: list[int] = []

    async def process(self, record: Any, out: Any) -> None:
        out.collect((self.key, await self._waited(), record.value, 0))

    async def _waited(self) -> int:
        """The record's number among those of its key, after the wait."""
        self._running += 1
        try:
            await asyncio.sleep(self._wait_s)
        finally:
            self._running -= 1
        number = self.seen.value() + 1
        self.seen.update(number)
        return number

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self._at_barriers.append(self._running)  # a file would be part of what the task stands still for

    def close(self) -> None:
        self._write_down()

    def _write_down(self) -> None:
        with (self._out / AT_BARRIERS).open("a") as file:
            file.writelines(f"{each}\n" for each in self._at_barriers)
        self._at_barriers.clear()


class WaitsKilled(Waits):
    """The same with records of three columns, and each begin written down."""

    def open(self) -> None:
        super().open()
        self._begun = os.open(self._out / BEGUN, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    async def process(self, record: Any, out: Any) -> None:
        os.write(self._begun, b".")
        out.collect((record.id, self.key, await self._waited()))

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        super().on_checkpoint(checkpoint_id)
        self._write_down()

    def close(self) -> None:
        os.close(self._begun)


class Watch:
    """Looks at a running job twice a second, on a thread of its own."""

    def __init__(self) -> None:
        self.most_threads = 0
        """Of one TaskManager's process."""
        self._sync_ms: dict[int, float] = {}
        """By checkpoint, of the subtasks that have coroutines."""
        self._pids: set[int] = set()
        self._job: JobHandle | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def sync_ms(self) -> list[float]:
        return list(self._sync_ms.values())

    def on_event(self, event: Any) -> None:
        if isinstance(event, TaskManagerChanged):
            (self._pids.add if event.registered else self._pids.discard)(event.pid)

    @contextlib.contextmanager
    def of(self, handle: JobHandle) -> Iterator[None]:
        self._job = handle
        handle.on_event(self.on_event)
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def _run(self) -> None:
        assert self._job is not None
        vertices: set[Any] = set()
        while not self._over.wait(WATCHED_EVERY_S):
            for pid in list(self._pids):
                with contextlib.suppress(psutil.Error):
                    self.most_threads = max(self.most_threads, psutil.Process(pid).num_threads())
            vertices |= {task.vertex_id for task in self._job.details().tasks if NAME in task.vertex_name.split(" -> ")}
            for checkpoint in self._job.checkpoint_history().checkpoints:
                own = [each.metrics.sync_ms for each in checkpoint.subtasks if each.vertex_id in vertices]
                if own and checkpoint.kind == "checkpoint" and checkpoint.status == "completed":
                    self._sync_ms[checkpoint.checkpoint_id] = max(own)


def run(order: Order) -> None:
    """One TaskManager, from Parquet files to a digest of the output."""
    options = order.options
    with job.local_cluster(options) as cluster:
        env = job.environment(order.out, options)
        keyed = env.from_parquet(str(order.data.parquet)).key_by("key")
        match options["operator"]:
            case "waits":
                waits = Waits(options["wait_ms"], order.out)
                counted = keyed.process(waits, name=NAME).async_settings(max_in_flight=options["in_flight"])
            case "never-waits":
                counted = keyed.process(NeverWaits, name=NAME)
            case _:
                counted = keyed.process(Counted, name=NAME)
        counted.process(Digest).collect(name="digests")
        watch = Watch()
        timed = job.timed(cluster, env, order.workload, watch.of)
        parts = timed.job.results("digests")
    found = combined(int(one[1]) for one in parts)
    more = {"outputs": sum(one[0] for one in parts), "digest": f"{found:016x}", "threads": watch.most_threads}
    barriers = {"sync_ms": watch.sync_ms, "at_barriers": at_barriers(order.out)}
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told(), **timed.span, **more, **barriers)


def run_killed(order: Order) -> None:
    """A generator at a pace, and TaskManagers killed again and again; the output in files."""
    options = order.options
    make = rows_of(options["keys"])
    with LocalCluster(task_managers=job.TASK_MANAGERS) as cluster:
        env = StreamEnvironment(
            checkpoint_interval_ms=options["checkpoint_interval_ms"],
            checkpoint_dir=str(order.out / "checkpoints"),
            restart_strategy=fixed_delay(attempts=options["kills"] + 10, delay_ms=0),
        )
        rows = env.generate(
            make, options["rows"], schema=make(0, 0).schema, records_per_second=options["records_per_second"]
        )
        waits = rows.key_by("key").process(WaitsKilled(options["wait_ms"], order.out), name=NAME)
        counted = waits.async_settings(max_in_flight=options["in_flight"])
        counted.sink_to(FileSink(str(order.out / "counted"), format="parquet", schema=NUMBERED), name="counted")
        saboteur = Saboteur(options["kills"], seed=options["seed"], pause_s=PAUSE_S)
        handle, began_s = cluster.submit(env, name=order.workload), time.time()
        handle.on_event(saboteur.on_event)
        try:
            handle.wait()
        finally:
            saboteur.stop()
        seconds = time.time() - began_s
    begun = (order.out / BEGUN).stat().st_size
    told = {"killed": saboteur.killed, "recovery_ms": saboteur.recovery_ms, "begun": begun}
    answer(seconds, job.PACKAGES, at_barriers=at_barriers(order.out), **told)


def at_barriers(out: Path) -> list[int]:
    """How many coroutines ran in the operator's subtasks at each of their checkpoints."""
    path = out / AT_BARRIERS
    return np.loadtxt(path, np.int64, ndmin=1).tolist() if path.exists() else []


if __name__ == "__main__":
    received = received_order()
    (run_killed if "kills" in received.options else run)(received)
