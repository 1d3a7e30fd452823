"""Pathway: an async UDF, and a count and a sum per key behind it.

It numbers no records, so its answer is the last count and sum of each key. The rows are given by a Python connector,
many in a commit; all rows of a commit wait together.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from typing import Any

import numpy as np

from benchmarks.data import Dataset, read
from benchmarks.digest import digest
from benchmarks.side import Order, answer, received_order

COMMITTED_MS = 1000


def run(order: Order) -> None:
    pw: Any = importlib.import_module("pathway")
    wait_s = order.options["wait_ms"] / 1000

    async def wait(value: int) -> int:
        await asyncio.sleep(wait_s)
        return value

    executor = pw.udfs.async_executor(capacity=order.options["in_flight"])
    waited = pw.udf(wait, executor=executor, deterministic=True)

    class Numbers(pw.Schema):  # type: ignore[misc]
        key: int
        value: int

    rows = pw.io.python.read(_subject(pw, order.data), schema=Numbers, autocommit_duration_ms=COMMITTED_MS)
    later = rows.select(rows.key, value=waited(rows.value))
    totals = later.groupby(later.key).reduce(later.key, count=pw.reducers.count(), sum=pw.reducers.sum(later.value))
    last: dict[int, tuple[int, int]] = {}

    def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            last[row["key"]] = row["count"], row["sum"]

    pw.io.subscribe(totals, on_change=changed)
    began_s = time.time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    ended_s = time.time()
    found = np.array([(key, *total) for key, total in last.items()], np.int64)
    more = {"outputs": int(found[:, 1].sum()), "digest": f"{digest(*found.T, np.zeros(len(found))):016x}"}
    span = {"began_s": began_s, "ended_s": ended_s, "checkpoints": "none"}
    answer(ended_s - began_s, ["pathway"], answers="totals", **span, **more)


def _subject(pw: Any, data: Dataset) -> Any:
    """An instance; the class is made here because its base is not there in other environments."""

    class Rows(pw.io.python.ConnectorSubject):  # type: ignore[misc]
        def run(self) -> None:
            for keys, values in read(data.files):
                for key, value in zip(keys.tolist(), values.tolist(), strict=True):
                    self.next(key=key, value=value)

    return Rows()


if __name__ == "__main__":
    run(received_order())
