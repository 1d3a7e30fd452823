"""Our side of stateful-function: a Python method per record, with state per key and one output for each input."""

from __future__ import annotations

from typing import Any

from benchmarks.digest import combined, digest, digest_of_rows
from benchmarks.side import Order, answer, received_order
from understudy import KeyedOperator, Operator, OperatorListState, ValueState

from . import job


class Running(KeyedOperator):
    """Each record's number within its key, its difference from the key's record before, and the greatest so far."""

    seen = ValueState(tuple, default=(0, 0, 0))

    def process(self, record: Any, out: Any) -> None:
        value = record.value
        count, last, maximum = self.seen.value()
        count += 1
        if count == 1 or value > maximum:
            maximum = value
        self.seen.update((count, value, maximum))
        out.collect((self.key, count, value - last, maximum))


class CompiledRunning(Running):
    """The same method, as machine code."""

    compiled = True


class Digest(Operator):
    """Takes all outputs and emits, at the end, their number and digest. Both are state: nothing counts twice."""

    so_far = OperatorListState(tuple, name="digest")

    def open(self) -> None:
        restored = self.so_far.get()
        self.outputs, self.digest = sum(one[0] for one in restored), combined(int(one[1]) for one in restored)

    def process_batch(self, batch: Any, out: Any) -> None:
        self.outputs += len(batch)
        self.digest = combined([self.digest, digest_of_rows(batch)])

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self.so_far.update([(self.outputs, str(self.digest))])

    def on_end(self, out: Any) -> None:
        out.collect((self.outputs, str(self.digest)))


class ColumnsDigest(Digest):
    """The same of outputs that come as columns."""

    takes = "columns"

    def process_batch(self, batch: Any, out: Any) -> None:
        self.outputs += len(batch)
        self.digest = combined([self.digest, digest(*(column.to_numpy() for column in batch.columns))])


def run(order: Order) -> None:
    running, of_outputs = (CompiledRunning, ColumnsDigest) if order.options.get("compiled") else (Running, Digest)
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, order.options)
        rows = env.from_parquet(str(order.data.parquet))
        rows.key_by("key").process(running).process(of_outputs).collect(name="digests")
        timed = job.timed(cluster, env, order.workload)
        parts = timed.job.results("digests")
    found = combined(int(one[1]) for one in parts)
    outputs = sum(one[0] for one in parts)
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told(), outputs=outputs, digest=f"{found:016x}")


if __name__ == "__main__":
    run(received_order())
