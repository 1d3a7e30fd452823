"""Clusters with a JobManager that others may follow, for tests: settings, elections, and leaders of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from understudy.messages import LeaderSessionId
from understudy.runtime.high_availability.kept_jobs import KeptJobs
from understudy.runtime.high_availability.leadership import Leadership
from understudy.runtime.high_availability.services import HighAvailabilityServices
from understudy.runtime.high_availability.settings import HighAvailabilitySettings
from understudy.runtime.high_availability.storage_epochs import EpochTerm, StorageEpochs
from understudy.runtime.system import CurveKeys

TIMEOUT_MS = 1_000
PATIENT_ZOOKEEPER_MS = 40_000
"""For who waits for no session's end: as long as a server grants, so that a machine that is slow loses no leader."""


def config(folder: Path, quorum: str = "", timeout_ms: int = TIMEOUT_MS) -> dict[str, str]:
    """Of a cluster that nobody else uses: with ZooKeeper at `quorum`, or without."""
    key = folder / f"key-{uuid4().hex}"
    CurveKeys.generate().save(key)
    found = {
        "recovery.mode": "zookeeper" if quorum else "storage",
        "high-availability.storageDir": str(folder / "ha"),
        "high-availability.key-file": str(key),
        "high-availability.cluster-id": f"test-{uuid4().hex[:12]}",
        "high-availability.session-timeout-ms": str(timeout_ms),
    }
    return {**found, "high-availability.zookeeper.quorum": quorum} if quorum else found


class Candidates:
    """Of one cluster, in this process; at the end all resign."""

    def __init__(self, config: dict[str, str], now_s: Callable[[], float] | None = None) -> None:
        self.services = HighAvailabilityServices(HighAvailabilitySettings.of(config))
        self.leaders: list[Leadership] = []

    def win(self) -> Leadership:
        """The next leader: waits until the one before is known to be over."""
        won = self.services.election().campaign(threading.Event())
        assert won is not None
        self.leaders.append(won)
        return won

    def kept(self) -> KeptJobs:
        return self.services.kept_jobs(self.win())

    def close(self) -> None:
        for leader in self.leaders:
            leader.resign()


def followed(candidates: Candidates) -> None:
    """The newest epoch is over for all others, though its leader does not know."""
    epochs = StorageEpochs(candidates.services.storage)
    newest = epochs.newest()
    assert newest is not None
    assert epochs.claim(newest.number + 1, EpochTerm(LeaderSessionId("unknown"), is_over=True))
