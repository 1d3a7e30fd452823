"""Our side of keyed-aggregate: count and sum per key, from Parquet files or a Spark DataFrame to Parquet.

growth uses it too, with `chain`: so many operators between source and shuffle that change nothing.
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from benchmarks.side import Order, answer, received_order, write_totals
from understudy import Count, DataStream, FileSink, Sum

from . import job


def run(order: Order) -> None:
    """On a LocalCluster."""
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, order.options)
        build(env.from_parquet(str(order.data.parquet)), order)
        timed = job.timed(cluster, env, order.workload)
    finish(order, timed)


def build(rows: DataStream, order: Order) -> None:
    for _ in range(order.options.get("chain", 0)):
        rows = rows.map_batches(_unchanged, schema=rows.schema)
    totals = rows.key_by("key").aggregate(order.options.get("emit"), count=Count(), sum=Sum("value"))
    totals.sink_to(FileSink(str(order.out / "totals"), format="parquet"))


def finish(order: Order, timed: job.Timed) -> None:
    """Write the answer and say how long it took. With updates, a key's row of the highest count is its last."""
    found = pq.read_table(order.out / "totals").sort_by([("key", "ascending"), ("count", "ascending")])
    keys, counts, sums = (found[name].to_numpy() for name in ("key", "count", "sum"))
    if order.options.get("emit") == "updates":
        last = [*(keys[1:] != keys[:-1]), True]
        keys, counts, sums = keys[last], counts[last], sums[last]
    write_totals(order, keys, counts, sums)
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told())


def _unchanged(batch: Any) -> Any:
    return batch


if __name__ == "__main__":
    run(received_order())
