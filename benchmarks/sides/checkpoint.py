"""One job with a given number of keys, all of which are there after its first rows: count and sum per key in columns,
or the same with a Python method per record. `probed`: also how long a checkpoint keeps a task from its next batch.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.side import Order, answer, received_order
from understudy import Count, DataStream, FileSink, KeyedOperator, Sum, ValueState
from understudy.actors.operators.aggregate import ColumnarAggregate

from . import job

BATCH_ROWS = 65_536
SCATTER = 2_654_435_761
TOTALS = "totals"
"""The folder with key, count and sum of every key."""


class Probe:
    """For each checkpoint, how long it was from its begin in the operator to the operator's next batch; and how long
    the operator usually waits for a batch, which is no pause.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        self._pauses: list[float] = []
        self._waits: list[float] = []
        self._checkpoint_s = self._ended_s = 0.0

    def begins(self) -> None:
        now = time.perf_counter()
        if self._checkpoint_s:
            self._pauses.append(now - self._checkpoint_s)
            self._checkpoint_s = 0.0
        elif self._ended_s:
            self._waits.append(now - self._ended_s)

    def ends(self) -> None:
        self._ended_s = time.perf_counter()

    def checkpoint(self) -> None:
        self._checkpoint_s = time.perf_counter()

    def write(self, subtask: int) -> None:
        wait = float(np.median(self._waits)) if self._waits else 0.0
        np.save(self._out / f"pauses-{subtask}.npy", np.maximum(np.array(self._pauses) - wait, 0.0))


class ProbedAggregate(ColumnarAggregate):
    """With a probe that is told of batches and checkpoints."""

    probe: Probe

    def process_batch(self, batch: Any, out: Any) -> None:
        self.probe.begins()
        super().process_batch(batch, out)
        self.probe.ends()

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self.probe.checkpoint()
        super().on_checkpoint(checkpoint_id)

    def on_end(self, out: Any) -> None:
        self.probe.write(self.context.subtask_index)
        super().on_end(out)


class Totals(KeyedOperator):
    """The same per record. It emits nothing; at its end it writes what it holds, for the check, into a folder."""

    seen = ValueState(tuple, default=(0, 0))

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def process(self, record: Any, out: Any) -> None:
        count, total = self.seen.value()
        self.seen.update((count + 1, total + record.value))

    def on_end(self, out: Any) -> None:
        totals = [(key, *self.seen.value()) for key in self.keys()]
        keys, counts, sums = zip(*totals, strict=True) if totals else ((), (), ())
        table = pa.table([pa.array(column, pa.int64()) for column in (keys, counts, sums)], ["key", "count", "sum"])
        pq.write_table(table, self._folder / f"part-{self.context.subtask_index}.parquet")


class ProbedTotals(Totals):
    """With a probe. As it stands before `process_batch`, its batches come as lists of rows."""

    def __init__(self, folder: Path, probe: Probe) -> None:
        super().__init__(folder)
        self.probe = probe

    def process_batch(self, batch: Any, out: Any) -> None:
        self.probe.begins()
        super().process_batch(batch, out)
        self.probe.ends()

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self.probe.checkpoint()
        super().on_checkpoint(checkpoint_id)

    def on_end(self, out: Any) -> None:
        self.probe.write(self.context.subtask_index)
        super().on_end(out)


def rows_of(keys: int) -> Any:
    """The generator's function: key i is in row i, and then in every row that is i modulo the number of keys."""

    def make(start: int, rows: int) -> pa.RecordBatch:
        ids = np.arange(start, start + rows)
        return pa.RecordBatch.from_pydict({"key": ids % keys * SCATTER, "value": ids})

    return make


def build(rows: DataStream, order: Order) -> None:
    keyed, folder = rows.key_by("key"), order.out / TOTALS
    sink = FileSink(str(folder), format="parquet")
    if order.options["state"] == "records":
        folder.mkdir()
        totals = ProbedTotals(folder, Probe(order.out)) if order.options["probed"] else Totals(folder)
        keyed.process(totals).collect(name="none")
    elif order.options["probed"]:
        probed = ProbedAggregate(["key"], {"count": Count(), "sum": Sum("value")}, "end")
        probed.probe = Probe(order.out)
        keyed.process(probed).sink_to(sink)
    else:
        keyed.aggregate(count=Count(), sum=Sum("value")).sink_to(sink)


def run(order: Order) -> None:
    make = rows_of(order.options["keys"])
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, {"batch_rows": BATCH_ROWS, **order.options})
        build(env.generate(make, order.options["rows"], schema=make(0, 0).schema), order)
        timed = job.timed(cluster, env, order.workload)
    events = [
        {"duration_ms": one.duration_ms, "bytes": one.state_size_bytes, "final": one.final} for one in timed.checkpoints
    ]
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told(), events=events)


if __name__ == "__main__":
    run(received_order())
