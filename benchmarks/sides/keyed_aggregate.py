"""Our side of keyed-aggregate: count and sum per key, from Parquet to Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.side import Order, answer, received_order, write_totals
from understudy import Count, FileSink, StreamEnvironment, Sum
from understudy.runtime.api import DataStream

from . import job


def program(env: StreamEnvironment, rows: DataStream, out: Path, emit: str | None) -> None:
    totals = rows.key_by("key").aggregate(emit, count=Count(), sum=Sum("value"))
    totals.sink_to(FileSink(str(out / "totals"), format="parquet"))


def run(order: Order) -> None:
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, order.options)
        program(env, env.from_parquet(str(order.data.parquet)), order.out, order.options.get("emit"))
        timed = job.timed(cluster, env, order.workload)
    _write(order)
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told())


def _write(order: Order) -> None:
    """With updates, a key's row of the highest count is its last."""
    found = pq.read_table(order.out / "totals").sort_by([("key", "ascending"), ("count", "ascending")])
    keys, counts, sums = (found[name].to_numpy() for name in ("key", "count", "sum"))
    if order.options.get("emit") == "updates":
        last = [*(keys[1:] != keys[:-1]), True]
        keys, counts, sums = keys[last], counts[last], sums[last]
    write_totals(order, keys, counts, sums)


if __name__ == "__main__":
    run(received_order())
