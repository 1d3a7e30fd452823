"""One job whose source is paced: how long each record takes from its source, through a shuffle and a function with
state per key, to its sink.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.side import Order, answer, received_order
from understudy import KeyedOperator, Operator, ValueState

from . import job

KEYS = 10_000


class Count(KeyedOperator):
    """Numbers each key's records and passes them on."""

    number = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.number.update(self.number.value() + 1)
        out.collect((record.id, record.emitted_ns))


class Arrivals(Operator):
    """Notes when each record arrived, and at the end writes that to a file."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def open(self) -> None:
        self._batches: list[Any] = []

    def process_batch(self, batch: Any, out: Any) -> None:
        self._batches.append((time.time_ns(), batch))

    def on_end(self, out: Any) -> None:
        parts = [np.empty((0, 3), np.int64)]
        for arrived_ns, batch in self._batches:
            records = np.array(batch, dtype=np.int64).reshape(-1, 2)
            parts.append(np.column_stack([records, np.full(len(records), arrived_ns)]))
        np.save(self._out / f"arrivals-{self.context.subtask_index}.npy", np.concatenate(parts))


def records(start: int, rows: int) -> pa.RecordBatch:
    """The time is that of the call: the source asks only for records that are due."""
    ids = np.arange(start, start + rows)
    emitted = np.full(rows, time.time_ns())
    return pa.RecordBatch.from_pydict({"id": ids, "key": ids * 2_654_435_761 % KEYS, "emitted_ns": emitted})


def run(order: Order) -> None:
    rate, rows = order.options["rate"], order.options["records"]
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, order.options)
        source = env.generate(records, rows, schema=records(0, 0).schema, records_per_second=rate)
        source.key_by("key").process(Count).sink_to(Arrivals(order.out))
        timed = job.timed(cluster, env, order.workload)
    answer(timed.seconds, job.PACKAGES, checkpoints=timed.told())


if __name__ == "__main__":
    run(received_order())
