"""A TaskManager that freezes (SIGSTOP, a long pause, a cut cable) is taken for dead, and stays so if it wakes."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from understudy import FileSink, JobStatus, LocalCluster
from understudy.runtime.clusters.local_launcher import LocalLauncher

from .jobs import KEYS, WAIT_S, Gate, Mark, Witness, all_names, counted, counting, environment, eventually, read_output

HEARTBEATS = {"heartbeat_interval_ms": 200, "heartbeat_timeout_ms": 5_000}
"""Long enough for a process that a busy machine keeps waiting."""

StartCluster = Callable[..., LocalCluster]


@pytest.mark.chaos
def test_a_frozen_task_manager_is_killed_and_replaced_and_the_result_is_exact(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    env, out, gate = environment(), tmp_path / "out", Gate(tmp_path)
    counting(env, 3000, 2000, gate=gate).sink_to(FileSink(str(out), "jsonl"))
    job = start_cluster(**HEARTBEATS).submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    pid = witness.pids(2)[1]
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: not psutil.pid_exists(pid), "the end of the frozen process")
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert read_output(out, "jsonl") == counted(3000)
    assert all_names(out) == set()


class Freezing(FileSink):
    """Stops its own process at one point of its work, once, and goes on there when it is woken."""

    def __init__(self, path: str, point: str, mark: Mark) -> None:
        super().__init__(path, "jsonl")
        self.point, self.mark = point, mark

    def _reached(self, point: str, after: int) -> bool:
        """Whether it froze here, and goes on."""
        if point == self.point and after >= 3 and self.context.attempt_number == 0 and self.mark.take():
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # this thread is the first to stop
            return True
        return False

    def process_batch(self, batch: Any, out: Any) -> None:
        self._reached("with-an-open-transaction", self._begun)
        froze = self._reached("with-a-barrier-behind-the-record", self._begun)
        super().process_batch(batch, out)
        if froze:  # the barrier waited in its channel, and comes before the word that all is over
            super().on_checkpoint(self._checkpoint_id + 1)

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self._reached("before-it-pre-commits", checkpoint_id)
        super().on_checkpoint(checkpoint_id)
        self._reached("after-it-has-pre-committed", checkpoint_id)

    def on_checkpoint_complete(self, checkpoint_id: Any) -> None:
        self._reached("before-it-commits", checkpoint_id)
        super().on_checkpoint_complete(checkpoint_id)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.parametrize(
    "point",
    [
        "with-an-open-transaction",
        "with-a-barrier-behind-the-record",
        "before-it-pre-commits",
        "after-it-has-pre-committed",
        "before-it-commits",
    ],
)
def test_a_zombie_that_wakes_commits_nothing_and_leaves_nothing(
    start_cluster: StartCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Nobody can kill it, as if its machine were cut off; the job goes on without it, then it wakes and goes on too.

    It ends before the job does: what a zombie writes later, nobody is left to remove.
    """
    monkeypatch.setattr(LocalLauncher, "kill", lambda *_: None)
    mark, out = Mark(tmp_path, "frozen"), tmp_path / "out"
    env = environment(parallelism=2)
    counting(env, None, 1500).sink_to(Freezing(str(out), point, mark))
    job = start_cluster(3, **HEARTBEATS).submit(env)
    witness = Witness(job)
    zombie = mark.wait()
    witness.status(JobStatus.RUNNING, times=2)
    witness.checkpoints(2)
    os.kill(zombie, signal.SIGCONT)
    eventually(lambda: not psutil.pid_exists(zombie), "the zombie to find out and end")
    job.stop()
    assert job.wait(timeout=WAIT_S).restarts == 1
    found = read_output(out, "jsonl")
    last = Counter(key for key, _, _ in found)
    assert len(last) == KEYS
    assert found == Counter((key, n + 1, n * KEYS + key) for key, count in last.items() for n in range(count))
    assert all_names(out) == set()
