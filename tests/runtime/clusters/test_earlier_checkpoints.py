"""A program that is started again without `resume` starts from the beginning, and its log says what it could go on
from.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from understudy import JobHandle, LocalCluster, StreamEnvironment
from understudy.messages import JobId

from .jobs import eventually

SAID = "starts from the beginning, and"


def built(folder: Path, step: str = "doubled", **settings: Any) -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_interval_ms=50, checkpoint_dir=str(folder), **settings)
    numbers = env.generate(lambda index: index, records_per_second=1_000, name="numbers")
    numbers.map(lambda number: 2 * number, name=step).print()
    return env


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder with a checkpoint of a job that was canceled."""
    folder = tmp_path / "checkpoints"
    with LocalCluster(1) as cluster:
        job = cluster.submit(built(folder, retain_checkpoints="on_cancellation"), "doubling")
        eventually(lambda: job.details().completed_checkpoints > 0, "a checkpoint")
        job.cancel()
    return folder


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if SAID in record.getMessage()]


def test_the_log_says_what_it_could_go_on_from_and_how(left: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LocalCluster(1) as cluster:
        cluster.submit(built(left), "doubling").cancel()
        (said,) = warnings_of(caplog)
        assert re.match(
            rf"job 'doubling' {SAID} {left} has a checkpoint with the same operators, taken \d+ s ago", said
        )
        assert 'submit with resume="latest" (--resume latest), from the first run on' in said
        (path,) = re.findall(r"from_savepoint='(.*?)' ", said)
        job = cluster.submit(built(left), "doubling", from_savepoint=path)
        assert job.restored_from is not None
        job.cancel()
        assert len(warnings_of(caplog)) == 1


def test_a_job_that_goes_on_says_that_its_collect_holds_nothing_of_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its results began in the middle, and only the documentation said why."""

    def submitted(cluster: LocalCluster) -> JobHandle:
        env = StreamEnvironment(checkpoint_interval_ms=50, checkpoint_dir=str(tmp_path))
        env.generate(lambda index: index, records_per_second=1_000).collect(name="all numbers")
        return cluster.submit(env, "collecting", resume="latest")

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if "collects as" in each.getMessage()]

    with LocalCluster(1) as cluster:
        job = submitted(cluster)
        eventually(lambda: job.details().completed_checkpoints > 0, "a checkpoint")
        job.cancel()
        assert said() == []
        submitted(cluster).cancel()
    (text,) = said()
    assert re.match(r"job 'collecting' goes on from checkpoint \d+: what it collects as 'all numbers' holds what", text)


def test_nothing_is_said_of_what_it_cannot_go_on_from(left: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LocalCluster(1) as cluster:
        cluster.submit(built(left, "another step"), "doubling").cancel()
        for metadata in left.glob("job-*/chk-*/_metadata"):
            os.truncate(metadata, 10)
        cluster.submit(built(left), "doubling").cancel()
        for metadata in left.glob("job-*/chk-*/_metadata"):
            metadata.unlink()
        cluster.submit(built(left), "doubling").cancel()
    assert warnings_of(caplog) == []


def test_nor_of_jobs_of_the_same_cluster_nor_of_one_that_is_resumed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with LocalCluster(2) as cluster:
        first = cluster.submit(built(tmp_path), "one")
        eventually(lambda: first.details().completed_checkpoints > 0, "a checkpoint")
        cluster.submit(built(tmp_path), "another").cancel()
        first.cancel()
    with LocalCluster(1) as cluster:
        cluster.submit(built(tmp_path), "one", resume="latest").cancel()
    assert warnings_of(caplog) == []


def test_nor_of_one_that_runs_in_another_cluster_and_only_of_that_one(
    left: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`understudy run` names all that run on this machine, whatever they are called."""
    (of_left,) = left.glob("job-*")
    with LocalCluster(1) as cluster:
        for running in ("job-elsewhere", of_left.name):
            translation = cluster.translate(built(left), "doubling")
            cluster.submit_translated(translation, jobs_elsewhere=[JobId(running)]).cancel()
            assert len(warnings_of(caplog)) == 1
