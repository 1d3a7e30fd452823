"""DuckDB: the query over the same files, once. The time is the query's alone, after the import."""

from __future__ import annotations

import importlib
import time
from typing import Any

from benchmarks.side import Order, answer, received_order, write_totals

QUERY = "SELECT key, count(*) AS count, sum(value)::BIGINT AS sum FROM read_parquet($files) GROUP BY key"


def run(order: Order) -> None:
    duckdb: Any = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"threads": 2})
    files = [str(path) for path in order.data.files]
    begun = time.perf_counter()
    table = connection.execute(QUERY, {"files": files}).fetchnumpy()
    seconds = time.perf_counter() - begun
    write_totals(order, table["key"], table["count"], table["sum"])
    answer(seconds, ["duckdb"])


if __name__ == "__main__":
    run(received_order())
