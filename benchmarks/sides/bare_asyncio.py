"""The limit of `async`: an asyncio program with a task per record and a semaphore, a counter per key in a dict, and
nothing that would outlast it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.data import FILE_ROWS, read
from benchmarks.digest import combined, digest_of_rows
from benchmarks.side import Order, answer, received_order


async def count(order: Order) -> tuple[int, int]:
    """How many outputs there were, and their digest."""
    wait_s, room = order.options["wait_ms"] / 1000, asyncio.Semaphore(order.options["in_flight"])
    seen: dict[int, int] = {}
    outputs: list[tuple[int, int, int, int]] = []
    digests = [0]
    number_of_outputs = 0

    async def process(key: int, value: int) -> None:
        await asyncio.sleep(wait_s)
        seen[key] = number = seen.get(key, 0) + 1
        outputs.append((key, number, value, 0))
        room.release()

    running: set[Any] = set()
    for keys, values in read(order.data.files):
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            await room.acquire()
            task = asyncio.create_task(process(key, value))
            running.add(task)  # the loop alone would forget them
            task.add_done_callback(running.discard)
            if len(outputs) >= FILE_ROWS:
                digests.append(digest_of_rows(outputs))
                number_of_outputs += len(outputs)
                outputs.clear()
    while running:
        await asyncio.wait(running)
    return number_of_outputs + len(outputs), combined([*digests, digest_of_rows(outputs)])


def run(order: Order) -> None:
    began_s = time.time()
    outputs, found = asyncio.run(count(order))
    ended_s = time.time()
    span = {"began_s": began_s, "ended_s": ended_s}
    answer(ended_s - began_s, ["numpy", "pyarrow"], **span, outputs=outputs, digest=f"{found:016x}")


if __name__ == "__main__":
    run(received_order())
