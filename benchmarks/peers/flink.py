"""Flink's Java engine: keyed-aggregate in SQL, stateful-function as a DataStream with the function in Java.

Both read by Flink's own file source: by its Parquet format, or the same rows as raw pairs. The job
runs in one process: its two slots exchange rows without a network. A smaller job of the same kind warms the process up
before. The time runs from the first read to the end of the last sink's input.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.side import TOTALS_FILE, Order, answer, elapsed, read_digests, received_order

from . import java_side

MAIN_CLASSES = {"keyed-aggregate": "KeyedAggregate", "stateful-function": "StatefulFunction"}


def run(order: Order) -> None:
    pyflink: Any = importlib.import_module("pyflink")
    home = Path(pyflink.__file__).parent
    warm_up, out = order.out / "warm-up", order.out / "measured"
    arguments = [order.options["format"]]
    for rows, folder in ((order.options["warm_up"], warm_up), (order.options["input"], out)):
        folder.mkdir()
        arguments += [str(rows), str(folder)]
    java_side.run(MAIN_CLASSES[order.workload], arguments, home, Path(order.options["cache"]))
    more = {}
    if order.workload == "keyed-aggregate":
        totals = [np.fromfile(path, dtype="<i8") for path in out.glob("totals-*")]
        np.concatenate(totals).tofile(order.out / TOTALS_FILE)
    else:
        more = read_digests(out)
    answer(elapsed(out), ["apache-flink"], **more)


if __name__ == "__main__":
    run(received_order())
