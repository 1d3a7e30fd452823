"""Flink SQL (Java): a query of Nexmark over the same rows as blocks of columns, which costs it less than Parquet.

The job runs in one process: its two slots exchange rows without a network. The same query over fewer rows warms the
process up before. The time runs from the first read to the end of the last sink's input, of files to the job's end.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.nexmark.flink_sql import statements
from benchmarks.side import Order, answer, received_order

from . import java_side


def run(order: Order) -> None:
    pyflink: Any = importlib.import_module("pyflink")
    home, options = Path(pyflink.__file__).parent, order.options
    out = order.out / "measured"
    arguments = []
    for data, folder in ((Path(options["warm_up"]), order.out / "warm-up"), (order.data.folder, out)):
        folder.mkdir()
        script = folder.with_suffix(".sql")
        script.write_text("\n;\n".join(statements(options["query"], data / "raw", folder, len(options["compared"]))))
        arguments += [str(script), str(folder)]
    java_side.run("Nexmark", arguments, home, Path(options["cache"]))
    if options["writes_files"]:
        (out / "files").rename(order.out / "files")
    else:
        for part in out.glob("answer-*"):
            part.rename(order.out / part.name)
    began_s, ended_s = (moment(list(out.glob(f"{name}-*"))) for name, moment in (("started", _first), ("ended", _last)))
    answer(ended_s - began_s, ["apache-flink"], began_s=began_s, ended_s=ended_s)


def _first(notes: list[Path]) -> float:
    return min(int(note.read_text()) for note in notes) / 1000


def _last(notes: list[Path]) -> float:
    return max(int(note.read_text()) for note in notes) / 1000


if __name__ == "__main__":
    run(received_order())
