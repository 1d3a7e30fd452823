"""Committed output is exact to the record whatever is killed. Flink: the end-to-end tests with random task kills."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from understudy import FileSink, JobStatus, LocalCluster
from understudy.messages import CheckpointCompleted, FirstBatchProcessed
from understudy.runtime.connectors import GeneratorSource

from .jobs import (
    WAIT_S,
    Counting,
    Gate,
    Mark,
    Reader,
    Witness,
    all_names,
    counted,
    counting,
    counts_of,
    environment,
    eventually,
    kill,
    read_output,
    read_records,
    template_of,
    visible_files,
)

pytestmark = pytest.mark.every_run

COUNT, RATE = 3000, 1500
StartCluster = Callable[..., LocalCluster]
SLOW = pytest.mark.slow


@pytest.mark.chaos
@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_files_are_exact_and_whole_at_every_moment_when_a_task_manager_is_killed(
    shared_cluster: LocalCluster, tmp_path: Path, format: str
) -> None:
    chance, gate = _chance(), Gate(tmp_path)
    env, out = environment(), tmp_path / "out"
    counting(env, COUNT, RATE, gate=gate).sink_to(FileSink(str(out), format))
    with Reader(out, format, counted(COUNT)) as reader:
        job = shared_cluster.submit(env)
        witness = Witness(job)
        witness.checkpoints(chance.randint(1, 5))
        time.sleep(chance.uniform(0, 0.05))
        witness.kill(chance.choice(list(witness.pids(2).values())))
        gate.open()
        details = job.wait(timeout=WAIT_S)
    assert details.restarts == 1
    assert read_output(out, format) == counted(COUNT)
    assert reader.problems == []
    assert reader.reads
    assert all_names(out) == set()


@pytest.mark.chaos
def test_collected_records_are_exact_when_a_task_manager_is_killed(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    env, gate = environment(), Gate(tmp_path)
    counting(env, COUNT, RATE, gate=gate).collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    witness.kill(witness.pids(2)[1])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert counts_of(job.results("all")) == counted(COUNT)


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_files_are_exact_after_several_kills(start_cluster: StartCluster, tmp_path: Path, format: str) -> None:
    chance, gate = _chance(), Gate(tmp_path)
    env, out = environment(), tmp_path / "out"
    counting(env, 12_000, 3000, gate=gate).sink_to(FileSink(str(out), format))
    with Reader(out, format, counted(12_000)) as reader:
        job = start_cluster(3).submit(env)
        witness = Witness(job)
        for _ in range(5):
            witness.checkpoints(chance.randint(0, 4))
            time.sleep(chance.uniform(0, 0.1))
            witness.kill(chance.choice(list(witness.pids(1).values())))
        gate.open()
        details = job.wait(timeout=WAIT_S)
    assert details.restarts >= 1
    assert read_output(out, format) == counted(12_000)
    assert reader.problems == []
    assert all_names(out) == set()


@pytest.mark.chaos
def test_output_is_exact_when_all_task_managers_are_killed_at_once(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    env, out, gate = environment(), tmp_path / "out", Gate(tmp_path)
    counting(env, COUNT, RATE, gate=gate).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    for pid in witness.pids(2).values():
        kill(pid)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert read_output(out, "jsonl") == counted(COUNT)
    assert all_names(out) == set()


@pytest.mark.slow
@pytest.mark.chaos
def test_output_is_exact_when_a_kill_comes_before_the_first_checkpoint(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    env, out, gate = environment(checkpoint_interval_ms=3_600_000), tmp_path / "out", Gate(tmp_path)
    counting(env, COUNT, RATE, gate=gate).sink_to(FileSink(str(out), "parquet"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.wait(lambda: len(witness.of(FirstBatchProcessed)) >= 4, "all tasks to be at work")
    witness.kill(witness.pids(2)[0])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert read_output(out, "parquet") == counted(COUNT)
    assert all_names(out) == set()


@pytest.mark.chaos
def test_output_is_exact_when_a_task_manager_dies_in_the_middle_of_a_checkpoint(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    """One task has taken its snapshot and is killed before another one has."""
    mark = Mark(tmp_path, "in-checkpoint")

    class Halting(Counting):
        def on_checkpoint(self, checkpoint_id: int) -> None:
            if checkpoint_id >= 3 and mark.take():
                time.sleep(600)  # until it is killed

    env, out, gate = environment(), tmp_path / "out", Gate(tmp_path)
    counting(env, COUNT, RATE, Halting, gate=gate).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    kill(mark.wait())
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert read_output(out, "jsonl") == counted(COUNT)
    assert all_names(out) == set()


@pytest.mark.chaos
def test_output_is_exact_when_the_recovery_is_killed_too(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    mark = Mark(tmp_path, "in-recovery")

    class Halting(Counting):
        def open(self) -> None:
            if self.context.restored and mark.take():
                time.sleep(600)  # until it is killed

    env, out, gate = environment(), tmp_path / "out", Gate(tmp_path)
    counting(env, COUNT, RATE, Halting, gate=gate).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    witness.kill(witness.pids(2)[0])
    kill(mark.wait())
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 2
    assert read_output(out, "jsonl") == counted(COUNT)
    assert all_names(out) == set()


class HaltingCommit(FileSink):
    """Halts before (or after) it commits what the final checkpoint covers, once."""

    def __init__(self, path: str, mark: Mark, after: bool) -> None:
        super().__init__(path, "jsonl")
        self.mark, self.after, self.ended = mark, after, False

    def on_end(self, out: Any) -> None:
        super().on_end(out)
        self.ended = True

    def on_checkpoint_complete(self, checkpoint_id: Any) -> None:
        if not self.after:
            self._halt()
        super().on_checkpoint_complete(checkpoint_id)
        if self.after:
            self._halt()

    def _halt(self) -> None:
        if self.ended and self.context.attempt_number == 0 and self.mark.take():
            time.sleep(600)  # until it is killed


@pytest.mark.chaos
@pytest.mark.parametrize("after", [False, True], ids=["before-its-commit", "after-its-commit"])
def test_output_is_exact_when_a_sink_dies_after_the_final_checkpoint(
    shared_cluster: LocalCluster, tmp_path: Path, after: bool
) -> None:
    """The rest of the job may have finished by then."""
    mark, out = Mark(tmp_path, "final"), tmp_path / "out"
    env = environment()
    counting(env, 500, None).sink_to(HaltingCommit(str(out), mark, after))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    pid = mark.wait()
    witness.wait(lambda: [event for event in witness.of(CheckpointCompleted) if event.final], "the final checkpoint")
    kill(pid)
    details = job.wait(timeout=WAIT_S)
    assert details.status is JobStatus.FINISHED
    assert read_output(out, "jsonl") == counted(500)
    assert all_names(out) == set()


@pytest.mark.chaos
def test_a_pipeline_that_has_finished_is_left_alone_when_the_one_beside_it_dies(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """Two pipelines of one job; the sink of one halts at the end, while the other finishes."""
    mark, out, beside = Mark(tmp_path, "final"), tmp_path / "out", tmp_path / "beside"
    env = environment(parallelism=2)
    counting(env, 500, None).sink_to(HaltingCommit(str(out), mark, after=False))
    source = GeneratorSource(lambda index: {"index": index}, 300)
    env.from_source(source, slot_sharing_group="beside").sink_to(FileSink(str(beside), "jsonl"))
    job = start_cluster(4).submit(env)
    pid = mark.wait()
    eventually(lambda: sum(len(read_records(path, "jsonl")) for path in visible_files(beside)) == 300)
    kill(pid)
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert read_output(out, "jsonl") == counted(500)
    assert sum(len(read_records(path, "jsonl")) for path in visible_files(beside)) == 300
    assert all_names(out) == all_names(beside) == set()


@pytest.mark.chaos
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"checkpoint_interval_ms": 10, "max_concurrent_checkpoints": 3}, id="concurrent"),
        pytest.param({"checkpoint_interval_ms": 10, "min_pause_ms": 100}, id="with-a-pause", marks=SLOW),
        pytest.param(
            {"checkpoint_interval_ms": 20, "checkpoint_timeout_ms": 15, "tolerable_checkpoint_failures": 100_000},
            id="that-expire",
            marks=SLOW,
        ),
        pytest.param({"checkpoint_interval_ms": None}, id="final-only", marks=SLOW),
        pytest.param({"state_backend": "filesystem", "retained_checkpoints": 3}, id="files"),
    ],
)
def test_output_is_exact_whatever_the_checkpoints_are(
    shared_cluster: LocalCluster, tmp_path: Path, settings: dict[str, Any]
) -> None:
    env, out, gate = environment(**settings), tmp_path / "out", Gate(tmp_path)
    counting(env, COUNT, RATE, gate=gate).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    for _ in range(2):
        witness.wait(lambda: len(witness.of(FirstBatchProcessed)) >= 4, "all tasks to be at work")
        time.sleep(_chance().uniform(0, 0.2))
        witness.kill(witness.pids(2)[0])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts >= 1
    assert read_output(out, "jsonl") == counted(COUNT)
    assert all_names(out) == set()


@pytest.mark.chaos
def test_output_is_exact_when_kills_come_at_the_news_of_the_final_checkpoint(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    env, out = environment(), tmp_path / "out"
    counting(env, 500, None).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)

    def on_event(event: Any) -> None:
        if isinstance(event, CheckpointCompleted) and event.final:
            witness.kill(witness.pids(1)[0])

    job.on_event(on_event)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert read_output(out, "jsonl") == counted(500)
    assert all_names(out) == set()


@pytest.mark.chaos
def test_output_is_exact_when_the_template_process_is_killed(start_cluster: StartCluster, tmp_path: Path) -> None:
    """All TaskManagers die with it; the cluster starts another template and goes on, again and again."""
    env, out, gate = environment(), tmp_path / "out", Gate(tmp_path)
    counting(env, COUNT, 2000, gate=gate).sink_to(FileSink(str(out), "jsonl"))
    job = start_cluster().submit(env)
    witness = Witness(job)
    for _ in range(2):
        pids = witness.pids(2)
        witness.checkpoints(2)
        template_of(pids[0]).kill()
        for pid in pids.values():
            eventually(lambda pid=pid: not psutil.pid_exists(pid), f"the end of {pid}")
        witness.wait(lambda pids=pids: not set(witness.pids(0).values()) & set(pids.values()), "the news of it")
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts >= 2
    assert read_output(out, "jsonl") == counted(COUNT)
    assert all_names(out) == set()


def _chance() -> random.Random:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)
