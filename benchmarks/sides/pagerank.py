"""PageRank in rounds, of built-in parts: links joined with ranks, summed by page with a window per round."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.pagerank import DAMPING
from benchmarks.side import Order, answer, received_order
from understudy import DataStream, FileSink, JobHandle, StreamEnvironment, Sum, fixed_delay, tumbling
from understudy.runtime.chaos.saboteur import Saboteur

from . import job

PARTS = pa.schema([("page", pa.int64()), ("part", pa.float64())])
PAUSE_S = (0.8, 1.6)
RANKS = pa.schema([("page", pa.int64()), ("rank", pa.float64())])


def parts(joined: pa.RecordBatch) -> pa.RecordBatch:
    """What each page gives to those that it links to."""
    each = pc.divide(joined.column("rank"), joined.column("degree").cast(pa.float64()))
    return pa.RecordBatch.from_arrays([joined.column("target"), each], schema=PARTS)


def nothing(ranks: pa.RecordBatch) -> pa.RecordBatch:
    """So that pages without links to them come, too."""
    return pa.RecordBatch.from_arrays([ranks.column("page"), pa.array(np.zeros(len(ranks)))], schema=PARTS)


def next_ranks(pages: int, sums: pa.RecordBatch) -> pa.RecordBatch:
    rank = (1 - DAMPING) / pages + DAMPING * sums.column("given").to_numpy()
    return pa.RecordBatch.from_arrays([sums.column("page"), pa.array(rank)], schema=RANKS)


def stream(env: StreamEnvironment, order: Order) -> DataStream:
    links = env.from_parquet(str(order.out / "links.parquet"), name="links").key_by("source")
    pages = env.from_parquet(str(order.out / "pages.parquet"), name="pages")

    def step(loop: DataStream) -> DataStream:
        given = loop.key_by("page").join(links).map_batches(parts, schema=PARTS)
        all_given = given.union(loop.map_batches(nothing, schema=PARTS))
        summed = all_given.key_by("page").window(tumbling(1)).aggregate(given=Sum("part"))
        return summed.map_batches(partial(next_ranks, order.options["pages"]), schema=RANKS)

    return pages.bulk_iterate(step, max_rounds=order.options["rounds"])


@contextlib.contextmanager
def struck_by(saboteur: Saboteur, running: JobHandle) -> Iterator[None]:
    running.on_event(saboteur.on_event)
    try:
        yield
    finally:
        saboteur.stop()


def run(order: Order) -> None:
    env, kills = job.environment(order.out, order.options), order.options["kills"]
    saboteur = Saboteur(kills, seed=order.options["seed"], pause_s=PAUSE_S)
    if kills:
        env.restart = fixed_delay(attempts=kills + 10, delay_ms=0)
    stream(env, order).sink_to(FileSink(str(order.out / "ranks"), "parquet"), name="ranks")
    with job.local_cluster(order.options) as cluster:
        watched = partial(struck_by, saboteur) if kills else contextlib.nullcontext
        timed = job.timed(cluster, env, order.workload, watched)
        restarts = timed.job.details().restarts
    found = pq.read_table(order.out / "ranks")
    np.save(order.out / "ranks.npy", found["rank"].to_numpy()[np.argsort(found["page"].to_numpy())])
    more = {"restarts": restarts, "killed": saboteur.killed}
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told(), **more)


if __name__ == "__main__":
    run(received_order())
