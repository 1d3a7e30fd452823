"""The generator of Nexmark alone, in one process: how many events it makes per processor second, with texts or
without.

Its answer is the digest of all numbers of all streams, taken outside of the time.
"""

from __future__ import annotations

import time

from benchmarks.nexmark.answers import EMPTY, digest_of, row_words, write_answer
from benchmarks.nexmark.dataset import GROUP_ROWS
from benchmarks.nexmark.model import STREAMS, Model, Stream, number_columns
from benchmarks.side import Order, answer, received_order

from . import job


def run(order: Order) -> None:
    model, texts = Model(**order.options["model"]), order.options["texts"]
    wanted = {stream: None if texts else number_columns(stream) for stream in STREAMS}
    for stream in STREAMS:
        model.batch(stream, 0, 1, wanted[stream])  # makes the pools of texts
    seconds, total = 0.0, EMPTY
    for stream in STREAMS:
        for start, rows in parts(model, stream):
            begun = time.process_time()
            batch = model.batch(stream, start, rows, wanted[stream])
            seconds += time.process_time() - begun
            total += digest_of(row_words(batch, number_columns(stream)))
    write_answer(order.out, total)
    answer(seconds, job.PACKAGES)


def parts(model: Model, stream: Stream) -> list[tuple[int, int]]:
    """Start and number of rows of each batch."""
    rows = model.rows(stream)
    return [(start, min(GROUP_ROWS, rows - start)) for start in range(0, rows, GROUP_ROWS)]


if __name__ == "__main__":
    run(received_order())
