"""A cluster with a predecessor: what it goes on with, what it refuses, and what it asks storage for again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from understudy import CannotTakeOver, InvalidSetting, LocalCluster, StreamEnvironment
from understudy.messages import JobId
from understudy.runtime.clusters.leading import OneOfSeveral
from understudy.runtime.high_availability.kept_jobs import TakenOver
from understudy.runtime.high_availability.settings import HighAvailabilitySettings
from understudy.runtime.high_availability.submissions import StoredProgram
from understudy.state import CheckpointStorage
from understudy.state.errors import AlreadyFinished, UnreachableRoot

from ...contracts.high_availability import submitted
from ..high_availability.clusters import config

PROGRAM = StoredProgram(b"code")


class Leaders:
    """Of one cluster, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.config = config(folder)
        self._newest: OneOfSeveral | None = None

    def next(self) -> OneOfSeveral:
        if self._newest is not None:
            self._newest.end()
        self._newest = OneOfSeveral(HighAvailabilitySettings.of(self.config))
        self._newest.begin()
        return self._newest


@pytest.fixture
def leaders(tmp_path: Path) -> Iterator[Leaders]:
    made = Leaders(tmp_path)
    yield made
    made.next().end()


def keep(leader: OneOfSeveral, name: str) -> None:
    leader._jobs.offer(JobId(name), PROGRAM)
    leader._jobs.add_job(submitted(name))


def test_jobs_that_were_left_are_started_once_and_known_by_their_names(leaders: Leaders) -> None:
    first = leaders.next()
    keep(first, "one")
    keep(first, "other")
    second, started = leaders.next(), list[TakenOver]()
    second.inherited(started.append)
    assert {each.submitted.graph.job_id: each.program for each in started} == {"one": PROGRAM, "other": PROGRAM}
    assert [second.job_of(name) for name in ("one", "one", "never")] == ["one", None, None]


def test_one_that_cannot_go_on_is_refused_by_its_name_and_harms_no_other(leaders: Leaders) -> None:
    first = leaders.next()
    keep(first, "one")
    keep(first, "other")
    second = leaders.next()

    def start(left: TakenOver) -> None:
        if left.submitted.graph.name == "one":
            raise RuntimeError("its checkpoints are gone")

    second.inherited(start)
    with pytest.raises(CannotTakeOver, match=r"job 'one' .* cannot go on: its checkpoints are gone"):
        second.job_of("one")
    assert second.job_of("other") == "other"


def test_one_that_had_finished_leaves_its_name_free(leaders: Leaders, caplog: pytest.LogCaptureFixture) -> None:
    keep(leaders.next(), "one")
    second = leaders.next()

    def start(left: TakenOver) -> None:
        raise AlreadyFinished("job 'one' has finished")

    with caplog.at_level(logging.INFO, "understudy.job"):
        second.inherited(start)
    assert second.job_of("one") is None
    assert "job 'one' has finished" in caplog.messages


def test_one_whose_program_was_not_signed_is_refused_too_and_left(leaders: Leaders) -> None:
    first = leaders.next()
    keep(first, "one")
    storage = CheckpointStorage(f"{leaders.config['high-availability.storageDir']}/{first._settings.cluster_id}")
    storage.write_sealed("submissions/one", bytes(100))
    for _ in range(2):
        second, started = leaders.next(), list[TakenOver]()
        second.inherited(started.append)
        assert started == []
        with pytest.raises(CannotTakeOver, match=r"was not signed with this cluster's key.*after removing"):
            second.job_of("one")


def test_storage_that_does_not_answer_is_asked_again(leaders: Leaders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.runtime.clusters.leading.AGAIN_SECONDS", 0.0)
    keep(leaders.next(), "one")
    second, tries = leaders.next(), list[TakenOver]()

    def start(left: TakenOver) -> None:
        tries.append(left)
        if len(tries) < 4:
            raise UnreachableRoot("/mnt/shared")

    second.inherited(start)
    assert len(tries) == 4
    assert second.job_of("one") == "one"


def test_a_candidate_that_is_closed_leads_no_more(leaders: Leaders) -> None:
    leaders.next()
    waiting = OneOfSeveral(HighAvailabilitySettings.of(leaders.config))
    waiting.end()
    with pytest.raises(RuntimeError, match="was closed before it came to lead"):
        waiting.begin()


def test_a_job_without_a_folder_that_outlives_its_process_is_refused(leaders: Leaders) -> None:
    env = StreamEnvironment()
    env.from_collection([1]).print()
    with LocalCluster(config=leaders.config) as cluster, pytest.raises(InvalidSetting, match="has no checkpoint_dir"):
        cluster.submit(env, "job")


def test_a_job_that_is_handed_over_has_not_ended(tmp_path: Path) -> None:
    """Its JobManager gives up the job's name, so that the next one has it at once."""
    env = StreamEnvironment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=100)
    env.generate(lambda index: index, records_per_second=50).collect(name="numbers")
    settings = config(tmp_path)
    with LocalCluster(1, config=settings) as first:
        job = first.submit(env, name="service", resume="latest")
        first.hand_over()
    with LocalCluster(1, config=settings) as second:
        assert second.submit(env, name="service", resume="latest").job_id == job.job_id
