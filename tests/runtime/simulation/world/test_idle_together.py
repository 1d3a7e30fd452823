"""A source without a split in between: its records are in time, whatever way through several subtasks they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from understudy import FromSplit, Source, StreamEnvironment, monotonous, tumbling
from understudy.runtime.simulation.world.cluster import SimulatedCluster

FILES, ROWS, STEP_MS = 30, 20, 1_000


class Files(Source):
    """One at a time: a batch of ROWS records, and nothing for a while, in which there is no split."""

    bounded = False

    def open(self) -> None:
        self.read, self.due_ms = 0, 0.0

    def current_splits(self) -> Sequence[str]:
        return ()

    def poll(self) -> Any:
        now_ms = self.context.clock.now_ms()
        if self.read == FILES or now_ms < self.due_ms:
            return None
        first, self.due_ms = self.read * ROWS, now_ms + 50
        self.read += 1
        rows = [{"key": n % 7, "at": n * STEP_MS} for n in range(first, first + ROWS)]
        return FromSplit(f"file {self.read}", rows)

    def poll_delay_ms(self) -> float:
        return 10.0

    def offset(self) -> int:
        return self.read

    def seek(self, offset: int) -> None:
        self.read = offset


@pytest.mark.parametrize("seed", range(3))
def test_no_record_is_late_behind_a_map_of_several_subtasks(seed: int) -> None:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    files = env.from_source(Files(), parallelism=1).assign_timestamps("at", monotonous(), parallelism=1)
    windows = files.map(dict).key_by("key").window(tumbling(seconds=10))
    counts = windows.process(lambda key, window, records, out: out.collect(len(list(records))))
    counts.collect(name="counts")
    counts.late.collect(name="late")
    with SimulatedCluster(2, seed=seed) as cluster:
        job = cluster.submit(env)
        cluster.run_for(10_000)
        job.stop()
        job.wait()
        assert job.results("late") == []
        assert sum(job.results("counts")) == FILES * ROWS
