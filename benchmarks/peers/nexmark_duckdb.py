"""DuckDB: a query of Nexmark over the same files, once. The time is the query's alone; its answer stays in memory."""

from __future__ import annotations

import time

from benchmarks.nexmark import oracle
from benchmarks.nexmark.answers import digest_of_table, write_answer
from benchmarks.side import Order, answer, received_order


def run(order: Order) -> None:
    connection = oracle.connect(order.data.folder)
    began_s = time.time()
    table = oracle.answer_of(connection, order.options["query"], order.options["compared"])
    ended_s = time.time()
    write_answer(order.out, digest_of_table(table, order.options["compared"]))
    answer(ended_s - began_s, ["duckdb"], began_s=began_s, ended_s=ended_s)


if __name__ == "__main__":
    run(received_order())
