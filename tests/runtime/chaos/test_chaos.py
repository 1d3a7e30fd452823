"""Jobs on real processes are exact, live and leave nothing behind, whatever fails. Every run prints its seed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from understudy.runtime.chaos import Counts, Options, ProxiedCluster, ProxiedLocalCluster, Report, run

pytestmark = pytest.mark.chaos

HEARTBEATS = {"heartbeat_interval_ms": 200, "heartbeat_timeout_ms": 5_000}


@contextmanager
def local(_folder: Path, task_managers: int) -> Iterator[ProxiedCluster]:
    with ProxiedLocalCluster(task_managers, **HEARTBEATS) as cluster:
        yield cluster


def torment(counts: Counts, task_managers: int = 2) -> Report:
    """One run on local processes, judged."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    report = run(Options(counts, seed, task_managers=task_managers), local, lambda what, _style: print(what))
    assert report.ok, "\n".join(line for line, _ in report.lines())
    return report


def command(folder: Path, *arguments: str) -> dict[str, Any]:
    """`understudy chaos`, in a process of its own; its report."""
    path = folder / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "chaos", *arguments, "--json", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each.name for each in folder.iterdir()] == ["report.json"]
    report: dict[str, Any] = json.loads(path.read_text())
    return report


@pytest.mark.every_run
def test_kills(tmp_path: Path) -> None:
    report = command(tmp_path, "--kills", "5")
    assert report["faults"] == {"kill": 5}
    assert report["restarts"] >= 1
    assert report["recovery_ms"]["all"]["count"] >= 1, "a kill that comes on top of another is counted apart"


def test_freezes_and_broken_and_slow_links() -> None:
    report = torment(Counts(freezes=2, cuts=3, stalls=1, slow=1))
    assert report.faults == {"freeze": 2, "cut": 3, "stall": 1, "slow": 1}


def test_full_disks() -> None:
    report = torment(Counts(full_disks=2))
    if report.skipped:
        pytest.skip(str(report.skipped))
    assert report.faults == {"full-disk": 2}
    assert report.checkpoints_aborted


@pytest.mark.slow
def test_everything_at_once_on_three_task_managers() -> None:
    torment(Counts(kills=20, freezes=5, cuts=10, stalls=5, slow=5, full_disks=4), task_managers=3)


@pytest.mark.slow
@pytest.mark.spark
def test_on_spark(tmp_path: Path) -> None:
    report = command(tmp_path, "--cluster", "spark", "--kills", "5", "--freezes", "2", "--cuts", "3", "--stalls", "1")
    assert report["faults"] == {"kill": 5, "freeze": 2, "cut": 3, "stall": 1}
