"""Our side of windows: count and sum per key and window of event time, from Parquet files to a digest of results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from benchmarks.digest import combined, digest
from benchmarks.side import Order, answer, received_order
from benchmarks.timed_data import DELAY_MS, GAP_MS, SIZE_MS, SLIDE_MS
from understudy import Count, Sum, bounded_out_of_orderness, session, sliding, tumbling

from . import job
from .stateful_function import Digest

SHAPES: dict[str, Any] = {
    "tumbling": tumbling(SIZE_MS),
    "sliding": sliding(SIZE_MS, SLIDE_MS),
    "session": session(GAP_MS),
}


class ResultsDigest(Digest):
    """Of (key, window end, count, sum)."""

    takes = "columns"

    def process_batch(self, batch: pa.RecordBatch, out: Any) -> None:
        self.outputs += len(batch)
        columns = (batch.column(name).to_numpy() for name in ("key", "window_end", "count", "sum"))
        self.digest = combined([self.digest, digest(*columns)])


def run(order: Order) -> None:
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, order.options)
        rows = env.from_parquet(str(order.data.parquet))
        timed_rows = rows.assign_timestamps("time", bounded_out_of_orderness(DELAY_MS))
        windows = timed_rows.key_by("key").window(SHAPES[order.options["shape"]])
        windows.aggregate(count=Count(), sum=Sum("value")).process(ResultsDigest).collect(name="digests")
        timed = job.timed(cluster, env, order.workload)
        parts = timed.job.results("digests")
    found = combined(int(one[1]) for one in parts)
    outputs = sum(one[0] for one in parts)
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told(), outputs=outputs, digest=f"{found:016x}")


if __name__ == "__main__":
    run(received_order())
