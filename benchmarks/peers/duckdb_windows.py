"""DuckDB's side of windows: one query over all rows, which it need not keep up to date. Its results are digested after
the time was taken.

Sliding windows are made of panes, which are repeated once per window; written as rows per window it takes several times
as long. Sessions go by a window function over each key's times.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

from benchmarks.digest import digest
from benchmarks.side import Order, answer, received_order
from benchmarks.timed_data import GAP_MS, SIZE_MS, SLIDE_MS

ROWS = "read_parquet($files)"
PANES = f"SELECT key, time // {{pane}} AS pane, count(*) AS count, sum(value) AS sum FROM {ROWS} GROUP BY ALL"
QUERIES = {
    "tumbling": f"SELECT key, (pane + 1) * {SIZE_MS} AS ends, count, sum::BIGINT AS sum "
    f"FROM ({PANES.format(pane=SIZE_MS)})",
    "sliding": f"SELECT key, (pane + shift + 1) * {SLIDE_MS} AS ends, sum(count)::BIGINT AS count, "
    f"sum(sum)::BIGINT AS sum FROM ({PANES.format(pane=SLIDE_MS)}), range({SIZE_MS // SLIDE_MS}) AS shifts(shift) "
    "GROUP BY ALL",
    "session": f"SELECT key, max(time) + {GAP_MS} AS ends, count(*) AS count, sum(value)::BIGINT AS sum FROM ("
    "SELECT key, value, time, sum(begins) OVER (PARTITION BY key ORDER BY time ROWS UNBOUNDED PRECEDING) AS number "
    f"FROM (SELECT key, value, time, CASE WHEN time - lag(time) OVER (PARTITION BY key ORDER BY time) <= {GAP_MS} "
    f"THEN 0 ELSE 1 END AS begins FROM {ROWS})) GROUP BY key, number",
}


def run(order: Order) -> None:
    duckdb: Any = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"threads": 2})
    files = [str(path) for path in order.data.files]
    begun = time.perf_counter()
    table = connection.execute(QUERIES[order.options["shape"]], {"files": files}).fetchnumpy()
    seconds = time.perf_counter() - begun
    found = digest(*(table[name] for name in ("key", "ends", "count", "sum")))
    answer(seconds, ["duckdb"], outputs=len(table["key"]), digest=f"{found:016x}")


if __name__ == "__main__":
    run(received_order())
