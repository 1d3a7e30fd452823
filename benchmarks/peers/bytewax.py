"""Bytewax: two worker processes, recovery on, an epoch (so a snapshot) every second.

keyed-aggregate adds each file's rows up per key in Arrow before it distributes them, as Bytewax itself works on Python
objects. stateful-function is called per record (`stateful_map`) or with the records that a batch has of a key
(`stateful_batch`). The time runs from the first read to the end of the last sink.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.side import (
    TOTALS_FILE,
    Order,
    answer,
    elapsed,
    in_processes,
    read_digests,
    received_order,
)

from . import bytewax_flows, bytewax_windows

WORKERS = 2


def run(order: Order) -> None:
    recovery: Any = importlib.import_module("bytewax.recovery")
    folder, out = order.out / "recovery", order.out / "measured"
    folder.mkdir()
    out.mkdir()
    recovery.init_db_dir(folder, WORKERS)
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(WORKERS)]
    in_processes(_work, [(order, out, folder, addresses, index) for index in range(WORKERS)])
    more = {}
    if order.workload == "keyed-aggregate":
        totals = [np.fromfile(path, dtype="<i8") for path in out.glob("totals-*")]
        np.concatenate(totals).tofile(order.out / TOTALS_FILE)
    else:
        more = read_digests(out)
    answer(elapsed(out), ["bytewax", "pyarrow"], **more)


def _work(order: Order, out: Path, folder: Path, addresses: list[str], index: int) -> None:
    testing: Any = importlib.import_module("bytewax.testing")
    recovery: Any = importlib.import_module("bytewax.recovery")
    flows = {**bytewax_flows.FLOWS, "windows": bytewax_windows.windows}
    flow = flows[order.workload](order.data, out, order.options.get("shape") or order.options["call"])
    testing.cluster_main(
        flow,
        addresses,
        index,
        epoch_interval=timedelta(seconds=1),
        recovery_config=recovery.RecoveryConfig(folder, backup_interval=timedelta(0)),
        worker_count_per_proc=1,
    )


def _free_ports(count: int) -> Iterator[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    yield from ports


if __name__ == "__main__":
    run(received_order())
