"""Our side of Nexmark: one query, from the files of a dataset or from the generator, to a digest of its answer."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.nexmark.dataset import GROUP_ROWS
from benchmarks.nexmark.model import Model
from benchmarks.nexmark.queries import QUERIES
from benchmarks.nexmark.query import Query
from benchmarks.nexmark.sink import AnswerSink
from benchmarks.nexmark.streams import Streams, generated, stored
from benchmarks.nexmark.window_latency import WindowArrivals, latencies_ms, tapped
from benchmarks.side import Order, answer, received_order
from understudy import DataStreamSink, FileSink, LocalCluster, StreamEnvironment, fixed_delay
from understudy.runtime.chaos.saboteur import Saboteur

from . import job

PAUSE_S = (0.05, 0.5)
"""From a checkpoint to the next kill."""


def run(order: Order) -> None:
    query, model = QUERIES[order.options["query"]], Model(**order.options["model"])
    if order.options.get("kills"):
        run_killed(order, query, model)
        return
    if order.options.get("paced"):
        run_paced(order, query, model)
        return
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, {"batch_rows": GROUP_ROWS, **order.options})
        is_stored = order.options.get("source", "stored") == "stored"
        streams = stored(env, order.data.folder, model) if is_stored else generated(env, model)
        build(query, streams, order.out)
        timed = job.timed(cluster, env, query.name)
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told(), **timed.span)


def build(query: Query, streams: Streams, out: Path, *, durable: bool = False) -> DataStreamSink:
    results = query.build(streams)
    if query.writes_files:
        return results.sink_to(FileSink(str(out / "files"), format="csv"), name="answer")
    return results.sink_to(AnswerSink(out, query.compared, query.key, durable=durable), name="answer")


def run_paced(order: Order, query: Query, model: Model) -> None:
    """A second of event time a second, to see how long the results of windows take."""
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, order.options)
        streams = generated(env, model, model.rate)
        noted = replace(streams, read=lambda *what: tapped(streams.read(*what), order.out))
        query.build(noted).sink_to(WindowArrivals(order.out))
        timed = job.timed(cluster, env, query.name)
    found = latencies_ms(order.out, streams.delay_ms)
    p50, p99 = (round(float(each), 2) for each in np.percentile(found, [50, 99]))
    answer(timed.seconds, job.PACKAGES, results=len(found), p50_ms=p50, p99_ms=p99)


def run_killed(order: Order, query: Query, model: Model) -> None:
    """The generator at a pace, and a TaskManager killed again and again."""
    options = order.options
    with LocalCluster(task_managers=job.TASK_MANAGERS) as cluster:
        env = StreamEnvironment(
            checkpoint_interval_ms=options["checkpoint_interval_ms"],
            checkpoint_dir=str(order.out / "checkpoints"),
            restart_strategy=fixed_delay(attempts=options["kills"] + 10, delay_ms=0),
        )
        build(query, generated(env, model, options["events_per_second"]), order.out, durable=True)
        clock, saboteur = job.Clock(), Saboteur(options["kills"], seed=options["seed"], pause_s=PAUSE_S)
        handle, submitted_s = cluster.submit(env, name=query.name), time.time()
        handle.on_event(clock.on_event)
        handle.on_event(saboteur.on_event)
        try:
            handle.wait()
        finally:
            saboteur.stop()
        seconds = time.time() - (clock.deployed_s or submitted_s)
    answer(seconds, job.PACKAGES, killed=saboteur.killed, recovery_ms=saboteur.recovery_ms)


if __name__ == "__main__":
    run(received_order())
