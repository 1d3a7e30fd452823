"""Flink's Java engine: windows in SQL, by its window functions with a local and a global phase; timers as a DataStream.

In raw pairs value and time share a number, and computed columns take both apart. Otherwise as in flink.py.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.data import VALUES
from benchmarks.side import Order, answer, elapsed, noted_span, read_digests, received_order
from benchmarks.timed_data import DELAY_MS, GAP_MS, SIZE_MS, SLIDE_MS, START_MS

from . import java_side

MAIN_CLASSES = {"windows": "Windows", "timers": "Timers"}


def run(order: Order) -> None:
    pyflink: Any = importlib.import_module("pyflink")
    home = Path(pyflink.__file__).parent
    warm_up, out = order.out / "warm-up", order.out / "measured"
    numbers = (VALUES, START_MS, DELAY_MS, SIZE_MS, SLIDE_MS, GAP_MS)
    arguments = [order.options["format"], order.options["shape"], *map(str, numbers)]
    for rows, folder in ((order.options["warm_up"], warm_up), (order.options["input"], out)):
        folder.mkdir()
        arguments += [str(rows), str(folder)]
    java_side.run(MAIN_CLASSES[order.workload], arguments, home, Path(order.options["cache"]))
    answer(elapsed(out), ["apache-flink"], **noted_span(out), **read_digests(out))


if __name__ == "__main__":
    run(received_order())
