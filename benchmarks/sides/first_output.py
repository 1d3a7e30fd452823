"""A small job on a LocalCluster: notes when the first record reaches the sink, in a process that is not the first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.side import Order, answer, received_order
from understudy import KeyedOperator, Operator, ValueState

from . import job

RECORDS = 1_000


class Count(KeyedOperator):
    number = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.number.update(self.number.value() + 1)
        out.collect((self.key, self.number.value()))


class First(Operator):
    """Passes on what comes, and notes when the first of it came."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._noted = False

    def process_batch(self, batch: Any, out: Any) -> None:
        if not self._noted:
            self._noted = True
            (self._out / f"first-{self.context.subtask_index}").write_text(repr(time.time()))
        out.emit(batch)


def run(order: Order) -> None:
    with job.local_cluster(order.options) as cluster:
        env = job.environment(order.out, order.options)
        sources = order.options.get("parallelism", job.TASK_MANAGERS)
        numbers = env.from_collection(range(RECORDS), parallelism=sources).key_by(_tenth)
        numbers.process(Count).process(First(order.out)).collect(name="counted")
        timed = job.timed(cluster, env, order.workload)
        committed_s = time.time()
        counted = sorted(timed.job.results("counted"))
    firsts = [float(path.read_text()) for path in order.out.glob("first-*")]
    answer(
        timed.seconds,
        job.PACKAGES,
        rows=RECORDS,
        first_s=min(firsts),
        committed_s=committed_s,
        right=counted == sorted((key, number) for key in range(10) for number in range(1, RECORDS // 10 + 1)),
    )


def _tenth(number: int) -> int:
    return number % 10


if __name__ == "__main__":
    run(received_order())
