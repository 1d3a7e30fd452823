"""Jobs of these tests on real TaskManagers, and the rows that they must leave."""

from __future__ import annotations

import random
from typing import Any

from understudy import JobHandle, StreamEnvironment, fixed_delay

from ...clusters.jobs import Witness, eventually

SEED = random.randrange(2**32)
"""Printed when a test fails."""


def environment(**settings: Any) -> StreamEnvironment:
    chosen = {"checkpoint_interval_ms": 100, "restart_strategy": fixed_delay(attempts=200, delay_ms=50)} | settings
    return StreamEnvironment(**chosen)


class Killer:
    """Kills TaskManagers of a job, at moments that chance decides."""

    def __init__(self, job: JobHandle) -> None:
        self.chance = random.Random(SEED)
        print(f"seed {SEED}")
        self._witness = Witness(job)

    def kill(self, times: int = 1) -> None:
        for _ in range(times):
            self._witness.checkpoints(self.chance.randint(0, 2))
            eventually(lambda: self.chance.random() < 0.3)  # up to some tens of milliseconds later
            self._witness.kill(self.chance.choice(list(self._witness.pids(1).values())))

    def checkpoints(self, number: int) -> None:
        self._witness.checkpoints(number)
