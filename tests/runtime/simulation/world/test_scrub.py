"""JobScrub in the simulator: damaged files of retained checkpoints are found and replaced, and nothing else is said."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from understudy import Collector, KeyedOperator, ValueState
from understudy.messages import JobStatus
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.simulation.world.cluster import SimulatedCluster
from understudy.runtime.simulation.world.faults import (
    JOB_MANAGER,
    FailingStorage,
    Fault,
    KillProcess,
    RottenFile,
    SlowFiles,
)

RECORDS = 200
EXPECTED = sorted((number % 3, number // 3 + 1) for number in range(RECORDS))


class Counting(KeyedOperator):
    """Its state is large enough for files of its own."""

    count = ValueState(int, default=0)
    filling = ValueState(str, default="")

    def process(self, record: int, out: Collector) -> None:
        self.count.update(self.count.value() + 1)
        self.filling.update(f"{record:03}" * 10_000)
        out.collect((self.key, self.count.value()))


def counting(scrub_interval_ms: int | None, **options: Any) -> StreamEnvironment:
    """Runs for 50 s."""
    env = StreamEnvironment(
        parallelism=2, **{"checkpoint_interval_ms": 10_000, **options}, scrub_interval_ms=scrub_interval_ms
    )
    numbers = env.from_collection(range(RECORDS), records_per_second=4.0, parallelism=1).key_by(lambda each: each % 3)
    numbers.process(Counting).collect(name="out")
    return env


@contextmanager
def running(env: StreamEnvironment, *faults: Fault) -> Iterator[SimulatedCluster]:
    with SimulatedCluster(2, seed=1, faults=faults, heartbeat_timeout_ms=6_000) as cluster:
        cluster.submit(env)
        yield cluster


def end_of(cluster: SimulatedCluster) -> None:
    cluster.run_for(120_000)
    assert cluster._handles[0].status is JobStatus.FINISHED
    assert sorted(cluster._handles[0].results("out")) == EXPECTED


def damage(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "damaged" in each.getMessage()]


def values(cluster: SimulatedCluster) -> dict[str, float]:
    return dict(cluster._handles[0].metrics().values)


@pytest.mark.parametrize("incremental", [False, True])
@pytest.mark.parametrize("flips", [False, True])
def test_damage_of_the_newest_checkpoint_is_named_and_a_full_one_takes_its_place(
    caplog: pytest.LogCaptureFixture, flips: bool, incremental: bool
) -> None:
    """The only checkpoint is spoilt at 11 s; the next one would come at 20 s; a task dies at 15 s."""
    env = counting(500, incremental_checkpoints=incremental)
    with running(env, RottenFile(11_000, flips=flips), KillProcess(15_000, who=0)) as cluster:
        cluster.run_for(14_000)
        found, whole = damage(caplog)
        assert "checkpoint 1 is damaged: " in found
        assert found.endswith("a full checkpoint is taken now, which uses none of their files")
        assert whole.endswith("checkpoint 2 is full, and uses no damaged file")
        assert values(cluster)["numberOfDamagedCheckpoints"] == 1
        end_of(cluster)
        (failure,) = cluster._handles[0].details().failures
        assert "was lost" in str(failure), "the kill alone"
        assert len(damage(caplog)) == 2


def test_without_it_the_same_costs_the_job_its_checkpoint() -> None:
    """So that the test above can fail."""
    with running(counting(None), RottenFile(11_000), KillProcess(15_000, who=0)) as cluster:
        cluster.run_for(30_000)
        assert "CorruptState" in str(cluster._handles[0].details().failures)


def test_a_file_that_is_gone_is_damage_too(caplog: pytest.LogCaptureFixture) -> None:
    with running(counting(500)) as cluster:
        cluster.run_for(11_000)
        newest = cluster.newest_checkpoint_file()
        assert newest is not None
        cluster.disk.lose(newest)
        cluster.run_for(3_000)
        assert newest in damage(caplog)[0]
        end_of(cluster)


def test_a_checkpoint_that_misses_files_of_earlier_ones_has_a_full_one_taken(caplog: pytest.LogCaptureFixture) -> None:
    """Without rounds. Checkpoints 1 and 2 are there, 3 comes at 30 s, and a task dies at 35 s."""

    def key(number: int) -> int:
        """Most keys come early, so that later checkpoints use files of the first one."""
        return number % 20 if number < 40 else 0

    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=10_000, incremental_checkpoints=True)
    numbers = env.from_collection(range(RECORDS), records_per_second=4.0)
    numbers.key_by(key).process(Counting).collect(name="out")
    with SimulatedCluster(1, seed=1, faults=(KillProcess(35_000, who=0),), heartbeat_timeout_ms=6_000) as cluster:
        job = cluster.submit(env)
        cluster.run_for(25_000)
        for path in [path for path, _ in cluster.disk.files() if "/shared/" in path]:
            cluster.disk.lose(path)
        cluster.run_for(7_000)
        (gone,) = [text for text in caplog.messages if "somebody has removed them" in text]
        assert gone.endswith("a full checkpoint is taken now, which uses none of them")
        assert damage(caplog)[0].endswith("checkpoint 4 is full, and uses no damaged file")
        cluster.run_for(120_000)
        assert job.status is JobStatus.FINISHED
        (failure,) = job.details().failures
        assert "was lost" in str(failure), "the kill alone"
        counts = Counter(map(key, range(RECORDS)))
        assert sorted(job.results("out")) == sorted(
            (key, number + 1) for key, count in counts.items() for number in range(count)
        )


def test_checkpoints_that_are_subsumed_while_it_reads_are_no_damage(caplog: pytest.LogCaptureFixture) -> None:
    """Each of its reads takes longer than a checkpoint lives."""
    env = counting(1, checkpoint_interval_ms=300, retained_checkpoints=2, incremental_checkpoints=True)
    with running(env, SlowFiles(1_000, 40_000, JOB_MANAGER, extra_ms=700)) as cluster:
        end_of(cluster)
        assert values(cluster)["numberOfCompletedCheckpoints"] > 20
        assert values(cluster)["numberOfDamagedCheckpoints"] == 0
    assert not damage(caplog)


def test_storage_that_does_not_answer_is_no_damage_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with running(counting(500), FailingStorage(12_000, 5_000, probability=1.0)) as cluster:
        end_of(cluster)
    assert not damage(caplog)
    (unread,) = [each for each in caplog.records if "the scrub cannot read" in each.getMessage()]
    assert unread.levelno == logging.WARNING


def test_an_older_checkpoint_that_is_damaged_needs_no_new_one(caplog: pytest.LogCaptureFixture) -> None:
    with running(counting(500, retained_checkpoints=2)) as cluster:
        cluster.run_for(15_000)
        older = cluster.newest_checkpoint_file()
        assert older is not None
        cluster.run_for(10_000)
        cluster.disk.rot(older, 7)
        cluster.run_for(2_000)
        (found,) = damage(caplog)
        assert "checkpoint 1 is damaged" in found
        assert found.endswith("checkpoint 2, which is newer, does not use this file")
        assert values(cluster)["numberOfCompletedCheckpoints"] == 2
        end_of(cluster)
