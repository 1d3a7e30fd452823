"""PyFlink's async functions: each record waits in `AsyncDataStream.unordered_wait`, and a keyed function behind it
counts. How long its checkpoints took stands in the JVM's log.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
from pathlib import Path
from typing import Any

from benchmarks.side import Order, answer, elapsed, noted_span, read_digests, received_order

from . import java_side
from .pyflink import DIGESTS, ROWS, tables_of

TOOK = re.compile(r"Completed checkpoint \d+ for job \w+ \((\d+) bytes, checkpointDuration=(\d+) ms")


def run(order: Order) -> None:
    pyflink: Any = importlib.import_module("pyflink")
    os.environ["FLINK_LOG_DIR"] = str(order.out)
    jar = java_side.jar(Path(pyflink.__file__).parent, Path(order.options["cache"]))
    tables = tables_of(order, jar, {"parallelism.default": "1", "taskmanager.numberOfTaskSlots": "1"})
    out = order.out / "measured"
    out.mkdir()
    tables.execute_sql(ROWS.format(path=Path(order.options["pairs"]).as_uri(), out=out))
    tables.execute_sql(DIGESTS.format(out=out))
    common: Any = importlib.import_module("pyflink.common")
    streaming: Any = importlib.import_module("pyflink.datastream")
    long = common.Types.LONG()
    waited = streaming.AsyncDataStream.unordered_wait(
        tables.to_data_stream(tables.from_path("numbers")),
        _waiting(order.options["wait_ms"] / 1000),
        common.Time.milliseconds(0),
        order.options["in_flight"],
        common.Types.ROW_NAMED(["key", "value"], [long] * 2),
    )
    results = waited.key_by(lambda row: row[0], key_type=long).process(
        _counting(), output_type=common.Types.ROW_NAMED(["key", "count", "change", "maximum"], [long] * 4)
    )
    tables.from_data_stream(results).execute_insert("digests").wait()
    more = {**noted_span(out), **read_digests(out)}
    answer(elapsed(out), ["apache-flink"], checkpoints=_checkpoints(order.out), **more)


def _waiting(wait_s: float) -> Any:
    """An instance; the classes are made here because their bases are not there in other environments."""
    datastream: Any = importlib.import_module("pyflink.datastream")

    class Waiting(datastream.AsyncFunction):  # type: ignore[misc]
        async def async_invoke(self, row: Any) -> list[Any]:
            await asyncio.sleep(wait_s)
            return [row]

    return Waiting()


def _counting() -> Any:
    datastream: Any = importlib.import_module("pyflink.datastream")
    state: Any = importlib.import_module("pyflink.datastream.state")
    common: Any = importlib.import_module("pyflink.common")

    class Counting(datastream.KeyedProcessFunction):  # type: ignore[misc]
        """Each record's number within its key."""

        def open(self, context: Any) -> None:
            self.seen = context.get_state(state.ValueStateDescriptor("seen", common.Types.LONG()))

        def process_element(self, row: Any, context: Any) -> Any:
            number = (self.seen.value() or 0) + 1
            self.seen.update(number)
            yield common.Row(row[0], number, row[1], 0)

    return Counting()


def _checkpoints(folder: Path) -> dict[str, Any] | str:
    """From the JVM's log."""
    found = [match for path in folder.glob("*.log") for match in TOOK.findall(path.read_text(errors="replace"))]
    if not found:
        return "not in the log"
    sizes, took_ms = ([int(each[at]) for each in found] for at in (0, 1))
    return {"count": len(found), "longest_ms": max(took_ms), "largest_bytes": max(sizes)}


if __name__ == "__main__":
    run(received_order())
