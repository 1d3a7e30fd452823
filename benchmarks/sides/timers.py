"""Our side of timers: a timer per key and 10 s, registered with each record, and a result for each that fires."""

from __future__ import annotations

from typing import Any

from benchmarks.digest import combined
from benchmarks.side import Order, answer, received_order
from benchmarks.timed_data import DELAY_MS, SIZE_MS
from understudy import KeyedOperator, ValueState, bounded_out_of_orderness

from . import job
from .stateful_function import ColumnsDigest, Digest


class Spans(KeyedOperator):
    """Numbers the 10 s in which a key has records: its timers, each with the time since the one before."""

    seen = ValueState(tuple, default=(0, 0, 0))

    def process(self, record: Any, out: Any) -> None:
        records, number, last = self.seen.value()
        self.seen.update((records + 1, number, last))
        self.timers.at_event_time(self.timestamp - self.timestamp % SIZE_MS + SIZE_MS - 1)

    def on_timer(self, timer: Any, out: Any) -> None:
        records, number, last = self.seen.value()
        self.seen.update((records, number + 1, timer.time_ms))
        out.collect((self.key, timer.time_ms, number + 1, timer.time_ms - last))


class CompiledSpans(Spans):
    """The same methods, as machine code."""

    compiled = True


def run(order: Order) -> None:
    spans, of_outputs = (CompiledSpans, ColumnsDigest) if order.options.get("compiled") else (Spans, Digest)
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, order.options)
        rows = env.from_parquet(str(order.data.parquet))
        timed_rows = rows.assign_timestamps("time", bounded_out_of_orderness(DELAY_MS))
        timed_rows.key_by("key").process(spans).process(of_outputs).collect(name="digests")
        timed = job.timed(cluster, env, order.workload)
        parts = timed.job.results("digests")
    found = combined(int(one[1]) for one in parts)
    outputs = sum(one[0] for one in parts)
    more = {"checkpoints": timed.told(), "outputs": outputs, "digest": f"{found:016x}"}
    answer(timed.seconds, job.PACKAGES, **timed.span, **more)


if __name__ == "__main__":
    run(received_order())
