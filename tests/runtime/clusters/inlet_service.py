"""A service that sends numbers into its job until it is killed: it writes down each number that was acknowledged.

Arguments: the folder of its files; the checkpoint to go on from, or nothing.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TextIO

from understudy import FileSink, LocalCluster, StreamEnvironment

LAST = 500


async def serve(folder: Path, checkpoint: str | None, acknowledged: TextIO) -> None:
    env = StreamEnvironment(
        checkpoint_interval_ms=300, checkpoint_dir=str(folder / "checkpoints"), retain_checkpoints="on_cancellation"
    )
    env.from_inlet("numbers").map(lambda number: {"number": number}).sink_to(FileSink(str(folder / "out"), "jsonl"))
    async with LocalCluster(task_managers=1) as cluster:
        job = await cluster.submit_async(env, from_savepoint=checkpoint)
        inlet = job.inlet("numbers", sender="service")
        last = await inlet.last_number()
        print(f"goes on after {last}", flush=True)
        for number in range(last + 1, LAST + 1):
            await inlet.send(number)
            print(number, file=acknowledged, flush=True)
        await job.stop()
        await job


if __name__ == "__main__":
    with open(f"{sys.argv[1]}/acknowledged", "a") as file:
        asyncio.run(serve(Path(sys.argv[1]), sys.argv[2] if sys.argv[2:] else None, file))
