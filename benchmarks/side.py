"""What a side of a comparison is told, and how it answers. Needs NumPy only, as it is imported in every peer's
environment too.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .data import Dataset
from .digest import combined

TOTALS_FILE = "totals.bin"


@dataclass(frozen=True)
class Order:
    """One run. `out`: an empty folder for whatever the side writes. `options`: the workload's own."""

    workload: str
    data: Dataset
    out: Path
    options: dict[str, Any] = field(default_factory=dict)

    def to_argument(self) -> str:
        return json.dumps(
            {
                "workload": self.workload,
                "data": [str(self.data.folder), self.data.rows, self.data.keys],
                "out": str(self.out),
                "options": self.options,
            }
        )


def received_order() -> Order:
    """The order that this process was started with: its one argument."""
    told = json.loads(sys.argv[1])
    folder, rows, keys = told["data"]
    return Order(told["workload"], Dataset(Path(folder), rows, keys), Path(told["out"]), told["options"])


def answer(seconds: float, packages: Iterable[str], **more: Any) -> None:
    """Say how long it took without start-up, the versions used, and whatever the workload's check needs."""
    versions = {name: metadata.version(name) for name in packages}
    print(json.dumps({"seconds": seconds, "versions": versions, **more}), flush=True)


def write_totals(order: Order, keys: Any, counts: Any, sums: Any) -> None:
    """The answer of keyed-aggregate, in any order of the keys."""
    columns = [np.asarray(column, dtype="<i8") for column in (keys, counts, sums)]
    np.column_stack(columns).tofile(order.out / TOTALS_FILE)


def read_totals(out: Path) -> Any:
    """Rows of key, count, sum, by ascending key."""
    found = np.fromfile(out / TOTALS_FILE, dtype="<i8").reshape(-1, 3)
    return found[np.argsort(found[:, 0], kind="stable")]


def note(out: Path, moment: str, name: str) -> None:
    """Note that now is the moment "started" or "ended" of the part `name` of a side."""
    (out / f"{moment}-{name}").write_text(str(int(time.time() * 1000)))


def elapsed(out: Path) -> float:
    """Seconds from the first note of a start to the last note of an end."""
    span = noted_span(out)
    return span["ended_s"] - span["began_s"]


def noted_span(out: Path) -> dict[str, float]:
    """Both, for whoever measures what processes took in between."""
    started, ended = ([int(path.read_text()) for path in out.glob(f"{moment}-*")] for moment in ("started", "ended"))
    return {"began_s": min(started) / 1000, "ended_s": max(ended) / 1000}


def read_digests(out: Path) -> dict[str, Any]:
    """The answer of stateful-function, from files of parts that hold a number of rows and a digest."""
    parts = [path.read_text().split() for path in out.glob("digest-*")]
    digest = combined(int(part[1]) for part in parts)
    return {"outputs": sum(int(part[0]) for part in parts), "digest": f"{digest:016x}"}


def in_processes(work: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> None:
    """Call it in a process for each of these, all at once. Raises RuntimeError when one of them fails."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=each) for each in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise RuntimeError(f"a worker ended with exit code {worker.exitcode}")
