"""Polars: the query over the same files, once. The time is the query's alone, after the import."""

from __future__ import annotations

import importlib
import os
import time
from typing import Any

from benchmarks.side import Order, answer, received_order, write_totals


def run(order: Order) -> None:
    os.environ["POLARS_MAX_THREADS"] = "2"
    polars: Any = importlib.import_module("polars")
    begun = time.perf_counter()
    rows = polars.scan_parquet([str(path) for path in order.data.files])
    totals = rows.group_by("key").agg(count=polars.len(), sum=polars.col("value").sum())
    table = totals.collect(engine="streaming" if order.options.get("streaming") else "auto")
    seconds = time.perf_counter() - begun
    write_totals(order, *(table[name].to_numpy() for name in ("key", "count", "sum")))
    answer(seconds, ["polars"])


if __name__ == "__main__":
    run(received_order())
