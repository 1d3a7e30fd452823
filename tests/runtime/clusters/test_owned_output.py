"""Two jobs that live and one output folder: where both are known the second is refused, else it takes the folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, JobFailed, JobHandle, JobStatus, LocalCluster, OutputInUse, StreamEnvironment

from .jobs import WAIT_S, Gate, Witness, counted, counting, environment, read_output

StartCluster = Callable[..., LocalCluster]
COUNT, RATE = 2000, 1000.0


class Place:
    def __init__(self, folder: Path) -> None:
        self.out, self.folder, self.gate = folder / "out", folder, Gate(folder)

    def env(self, out: Path | None = None, **settings: Any) -> StreamEnvironment:
        env = environment(checkpoint_dir=str(self.folder / "checkpoints"), **settings)
        counts = counting(env, COUNT, RATE, gate=self.gate)
        counts.sink_to(FileSink(str(out or self.out), "jsonl"), name="out")
        return env


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.chaos
def test_a_job_that_would_write_where_another_writes_is_refused_at_submit(
    start_cluster: StartCluster, place: Place
) -> None:
    cluster = start_cluster(4)
    first = cluster.submit(place.env(), "first")
    Witness(first).checkpoints(1)
    savepoint = first.trigger_savepoint().result(timeout=WAIT_S)
    said = rf"job 'second' is not started: its sink 'out' writes to /.*/out, .* 'first' \({first.job_id}\), which has"
    for origin in (None, savepoint):
        with pytest.raises(OutputInUse, match=said):
            cluster.submit(place.env(), "second", from_savepoint=origin)
    other = cluster.submit(place.env(place.folder / "other"), "other", from_savepoint=savepoint)
    assert other.submitted.relatives == (f"'first' ({first.job_id}, running)",)
    assert first.submitted.relatives == ()
    place.gate.open()
    assert first.wait(timeout=WAIT_S).status is other.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert read_output(place.out, "jsonl") == counted(COUNT)
    again = cluster.submit(place.env(place.folder / "again"), "again")
    assert again.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    after = cluster.submit(place.env(), "after")
    assert after.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert read_output(place.out, "jsonl") == counted(COUNT) + counted(COUNT)


@pytest.mark.chaos
def test_of_two_that_are_started_from_one_savepoint_at_once_one_is_refused(
    start_cluster: StartCluster, place: Place
) -> None:
    cluster = start_cluster(4)
    first = cluster.submit(place.env(), "first")
    Witness(first).checkpoints(1)
    savepoint = first.stop_with_savepoint().result(timeout=WAIT_S)
    first.wait(timeout=WAIT_S)

    async def both() -> list[JobHandle | BaseException]:
        tries = (cluster.submit_async(place.env(), name, from_savepoint=savepoint) for name in ("second", "third"))
        return await asyncio.gather(*tries, return_exceptions=True)

    results = asyncio.run(both())
    (refusal,) = (each for each in results if isinstance(each, BaseException))
    (job,) = (each for each in results if isinstance(each, JobHandle))
    assert isinstance(refusal, OutputInUse)
    place.gate.open()
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert read_output(place.out, "jsonl") == counted(COUNT)


@pytest.mark.chaos
def test_in_another_cluster_the_newer_job_takes_the_folder_and_the_older_one_fails_once(
    start_cluster: StartCluster, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The older one has no checkpoint before it ends, so all that comes after the savepoint is the newer one's."""
    first = start_cluster(2).submit(place.env(), "first")
    witness = Witness(first)
    witness.checkpoints(1)
    savepoint = first.stop_with_savepoint().result(timeout=WAIT_S)
    first.wait(timeout=WAIT_S)
    older = start_cluster(2).submit(place.env(checkpoint_interval_ms=600_000), "older", from_savepoint=savepoint)
    older.ready().result(timeout=WAIT_S)
    caplog.clear()
    newer = start_cluster(2).submit(place.env(), "newer", from_savepoint=savepoint)
    assert (
        f"belongs to another job, whose process runs now: job {older.job_id} (sink 'out') has begun to write there"
        in caplog.text
    )
    newer.ready().result(timeout=WAIT_S)
    place.gate.open()
    with pytest.raises(JobFailed, match=rf"failed once.*belongs to another job now: job {newer.job_id}"):
        older.wait(timeout=WAIT_S)
    assert newer.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert read_output(place.out, "jsonl") == counted(COUNT)
