"""Savepoints as a user has them: taken, and restored into a changed program with another parallelism; and refused."""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    CannotRestore,
    CheckpointRequestFailed,
    Count,
    FileSink,
    JobCanceled,
    JobHandle,
    JobStatus,
    KeyedOperator,
    LocalCluster,
    StateDoesNotFit,
    StreamEnvironment,
    Sum,
    ValueState,
)
from understudy.actors.operators.collector import Collector

from .jobs import WAIT_S, Counting, Passing, Witness, counting, environment, read_output

StartCluster = Callable[..., LocalCluster]
RATE = 150.0


@pytest.fixture
def cluster(start_cluster: StartCluster, tmp_path: Path) -> LocalCluster:
    config = {"savepoints.state.backend.fs.dir": str(tmp_path / "savepoints")}
    return start_cluster(3, heartbeat_interval_ms=200, config=config)


class CountingText(Counting):
    """The same state with another type."""

    seen = ValueState(str, default="")  # type: ignore[assignment]


class Remembering(KeyedOperator):
    """Hands on what comes, and has state of its own."""

    last = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.last.update(record["index"])
        out.collect(record)


def env_in(folder: Path, parallelism: int, **settings: Any) -> StreamEnvironment:
    return environment(parallelism=parallelism, checkpoint_dir=str(folder / "checkpoints"), **settings)


def savepoint_of(job: JobHandle, checkpoints: int = 2) -> str:
    """Once records have come through for so many checkpoints."""
    Witness(job).checkpoints(checkpoints)
    return job.trigger_savepoint().result(timeout=WAIT_S)


def canceled(job: JobHandle) -> None:
    job.cancel().result()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


def assert_exact(found: Counter[tuple[int, int, int]], count: int) -> None:
    """Every index once, and each key's numbers without gap; after a rescale they may come in another order."""
    assert Counter(index for _, _, index in found.elements()) == Counter(range(count))
    numbers: dict[int, list[int]] = defaultdict(list)
    for key, number, _ in found.elements():
        numbers[key].append(number)
    assert {key: sorted(each) for key, each in numbers.items()} == {
        key: list(range(1, len(each) + 1)) for key, each in numbers.items()
    }


def test_counts_go_on_exactly_through_changed_programs_and_parallelisms(cluster: LocalCluster, tmp_path: Path) -> None:
    """2 -> 3 -> 1 subtasks. The second program has an operator more in the chain, and one that has another name and the
    uid of the first; the third leaves an operator with state behind."""
    output = tmp_path / "out"
    env = env_in(tmp_path, 2)
    counting(env, None, RATE).sink_to(FileSink(str(output), "jsonl"), name="out")
    first = cluster.submit(env)
    path = savepoint_of(first)
    canceled(first)

    env = env_in(tmp_path, 3)
    source = env.generate(lambda index: index, None, records_per_second=RATE, name="numbers")
    tally = source.key_by(lambda index: index % 24).process(Counting, name="tally").uid("count")
    remembered = tally.process(Passing, name="added").key_by("key").process(Remembering, name="dropped")
    remembered.sink_to(FileSink(str(output), "jsonl"), name="out")
    second = cluster.submit(env, from_savepoint=path)
    witness = Witness(second)
    assert witness.checkpoints(1)[0].checkpoint_id > 2, "ids go on after the savepoint's"
    path = savepoint_of(second)
    canceled(second)

    env = env_in(tmp_path, 1)
    counting(env, 4000, None).sink_to(FileSink(str(output), "jsonl"), name="out")
    with pytest.raises(StateDoesNotFit, match="operator 'dropped'"):
        cluster.submit(env, from_savepoint=path)
    third = cluster.submit(env, from_savepoint=path, allow_non_restored_state=True)
    told = third.submitted
    assert (told.restored_operators, told.left_behind) == (("numbers", "count", "out"), ("dropped",))
    assert third.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert_exact(read_output(output, "jsonl"), 4000)


def test_a_job_goes_on_while_another_is_started_from_its_savepoint(cluster: LocalCluster, tmp_path: Path) -> None:
    """What the savepoint had pre-committed belongs to the first job's results, and comes once."""
    env = env_in(tmp_path, 2)
    counting(env, None, RATE).collect(name="out")
    first = cluster.submit(env)
    witness = Witness(first)
    path = savepoint_of(first)

    bounded = env_in(tmp_path, 3)
    counting(bounded, 3000, None).collect(name="out")
    second = cluster.submit(bounded, from_savepoint=path)
    second.wait(timeout=WAIT_S)
    witness.checkpoints(2)
    assert (first.status, first.details().restarts) == (JobStatus.RUNNING, 0)
    stopped = first.stop_with_savepoint().result(timeout=WAIT_S)
    first.wait(timeout=WAIT_S)

    third = cluster.submit(bounded, from_savepoint=stopped)
    third.wait(timeout=WAIT_S)
    again = {each["index"] for each in second.results("out")}
    before = [each for each in first.results("out") if each["index"] not in again]
    assert_exact(counts(before + second.results("out")), 3000)
    assert_exact(counts(first.results("out") + third.results("out")), 3000)


def counts(records: list[dict[str, Any]]) -> Counter[tuple[int, int, int]]:
    return Counter((each["key"], each["number"], each["index"]) for each in records)


def test_a_columnar_aggregation_goes_on_with_another_parallelism(cluster: LocalCluster, tmp_path: Path) -> None:
    import pyarrow as pa

    def rows(start: int, count: int) -> pa.RecordBatch:
        numbers = range(start, start + count)
        return pa.record_batch({"key": pa.array([each % 5 for each in numbers]), "n": pa.array(numbers)})

    def build(parallelism: int, count: int | None) -> StreamEnvironment:
        env = env_in(tmp_path, parallelism, batch_rows=16)
        rate = None if count else RATE
        source = env.generate(rows, count, records_per_second=rate, name="rows")
        source.key_by("key").aggregate(rows=Count(), total=Sum("n"), emit="end", name="sums").collect(name="out")
        return env

    first = cluster.submit(build(3, None))
    path = savepoint_of(first)
    canceled(first)
    second = cluster.submit(build(2, 3000), from_savepoint=path)
    second.wait(timeout=WAIT_S)
    assert {tuple(row) for row in second.results("out")} == {(key, 600, sum(range(key, 3000, 5))) for key in range(5)}


def test_what_cannot_be_restored_is_told_at_submit_and_touches_nothing_that_runs(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    env = env_in(tmp_path, 2)
    counting(env, None, RATE).collect(name="out")
    running = cluster.submit(env, "running")
    witness = Witness(running)
    path = savepoint_of(running)
    history = running.checkpoint_history().checkpoints  # it forgets the older ones
    of_savepoint = next(each.checkpoint_id for each in history if each.kind == "savepoint")
    disposed = savepoint_of(running, checkpoints=1)
    cluster.dispose_savepoint(disposed)
    truncated = f"{path}-truncated"
    Path(truncated).write_bytes(Path(path).read_bytes()[:-3])
    outside = shutil.copy(path, tmp_path / "elsewhere")

    def refused(path: str, match: str, env: StreamEnvironment = env, error: type[Exception] = CannotRestore) -> None:
        with pytest.raises(error, match=match):
            cluster.submit(env, "refused", from_savepoint=path)

    refused(f"{path}-not", "missing savepoint")
    refused(disposed, "missing savepoint: it has been disposed of")
    refused(truncated, "corrupt state")
    refused(str(outside), "is outside of the savepoint directory")
    refused("jobmanager://savepoints/x", "kept in files here")
    refused("/somewhere/_metadata", "is outside of the checkpoint directory")

    other = env_in(tmp_path, 2)
    other.generate(lambda index: index, 10, name="numbers").collect(name="out")
    refused(path, "operator 'count' .* has state that no operator", other, StateDoesNotFit)
    retyped = env_in(tmp_path, 2)
    counting(retyped, 10, None, CountingText).collect(name="out")
    refused(path, "state 'seen' of operator 'count' does not fit: int does not become str", retyped, StateDoesNotFit)
    regrouped = env_in(tmp_path, 2, max_parallelism=64)
    counting(regrouped, 10, None).collect(name="out")
    refused(path, r"set StreamEnvironment\(max_parallelism=128\)", regrouped, StateDoesNotFit)

    metadata = tmp_path / "checkpoints" / running.job_id / f"chk-{of_savepoint}" / "_metadata"
    size = metadata.stat().st_size
    os.truncate(metadata, size - 1)
    refused(path, "corrupt state")

    witness.checkpoints(1)
    assert (running.status, running.details().restarts) == (JobStatus.RUNNING, 0)
    canceled(running)


def state_files(folder: Path, name: str, job: JobHandle) -> list[Path]:
    return sorted((folder / job.job_id).rglob(name), key=lambda path: int(path.parent.name.removeprefix("chk-")))


def test_a_job_starts_from_a_retained_checkpoint_of_another(cluster: LocalCluster, tmp_path: Path) -> None:
    """And keeps it from being deleted until it has one of its own."""
    env = env_in(tmp_path, 2, retained_checkpoints=1000, checkpoint_interval_ms=300)
    counting(env, None, RATE).collect(name="out")
    first = cluster.submit(env)
    path = Witness(first).checkpoints(2)[-1].path
    bounded = env_in(tmp_path, 2)
    counting(bounded, 2000, None).collect(name="out")
    second = cluster.submit(bounded, from_savepoint=path)
    assert second.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    found = second.results("out")
    assert [each for each in found if each["number"] == 1] == []
    assert len({each["index"] for each in found}) == len(found) < 2000
    canceled(first)


def test_a_job_that_fails_before_its_first_checkpoint_restores_from_the_savepoint_again(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """The second job has another checkpoint directory and state backend; the state lies in files of the first."""
    env = env_in(tmp_path, 2)
    counting(env, None, RATE, FailsOnce.at(None)).collect(name="out")
    first = cluster.submit(env)
    path = savepoint_of(first)
    assert len(state_files(tmp_path / "checkpoints", "count-*", first)) >= 2
    canceled(first)

    env = env_in(tmp_path / "other", 3, checkpoint_interval_ms=None, state_backend="memory")
    counting(env, 2000, 500.0, FailsOnce.at(tmp_path / "failed")).collect(name="out")
    second = cluster.submit(env, from_savepoint=path)
    details = second.wait(timeout=WAIT_S)
    assert (details.status, details.restarts) == (JobStatus.FINISHED, 1)
    assert_exact(counts(first.results("out") + second.results("out")), 2000)


class FailsOnce(Counting):
    """Raises on the hundredth record of the first attempt that has so many. Its state is too large for a message."""

    ballast = ValueState(bytes)
    mark: str | None
    taken = 0

    @classmethod
    def at(cls, mark: Path | None) -> FailsOnce:
        made = cls()
        made.mark = str(mark) if mark else None
        return made

    def process(self, record: int, out: Collector) -> None:
        self.taken += 1
        if self.mark and self.taken == 100 and not os.path.exists(self.mark):
            Path(self.mark).touch()
            raise ValueError("for once")
        if self.ballast.value() is None:
            self.ballast.update(os.urandom(4096))
        super().process(record, out)


def test_nothing_comes_after_a_drained_savepoint(cluster: LocalCluster, tmp_path: Path) -> None:
    """Its data has ended for good: a job that is started from it emits nothing, and finishes."""
    env = env_in(tmp_path, 2)
    source = env.generate(lambda index: {"key": index % 3, "n": 1}, None, records_per_second=RATE, name="rows")
    source.key_by("key").aggregate(rows=Count(), emit="end", name="sums").collect(name="out")
    first = cluster.submit(env)
    Witness(first).checkpoints(2)
    path = first.stop_with_savepoint(drain=True).result(timeout=WAIT_S)
    assert first.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert len(first.results("out")) == 3
    second = cluster.submit(env, from_savepoint=path)
    assert second.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert second.results("out") == []


def test_a_checkpoint_is_taken_when_somebody_asks_and_the_job_restores_from_it(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """Its job has no interval: nothing is committed, and nothing could be restored, before somebody asks."""
    env = env_in(tmp_path, 2, checkpoint_interval_ms=None)
    counting(env, None, RATE).collect(name="out")
    job = cluster.submit(env, name="asked")
    job.ready().result(timeout=WAIT_S)
    first = job.trigger_checkpoint().result(timeout=WAIT_S)
    together = [job.trigger_checkpoint(full=True) for _ in range(3)]
    later = [each.result(timeout=WAIT_S) for each in together]
    assert all(each.checkpoint_id > first.checkpoint_id for each in later)
    newest = later[-1]
    assert Path(newest.path, "_metadata").exists()
    assert Path(newest.path) == tmp_path / "checkpoints" / job.job_id / f"chk-{newest.checkpoint_id}"
    assert job.details().completed_checkpoints == len({each.checkpoint_id for each in [first, *later]})
    canceled(job)
    with pytest.raises(CheckpointRequestFailed, match="the job is canceled"):
        job.trigger_checkpoint().result(timeout=WAIT_S)
