"""`submit(resume="latest")` on real processes: a driver that is killed goes on where it was, and only one at a time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from understudy import (
    AlreadyFinished,
    AlreadyRunning,
    FileSink,
    InvalidSetting,
    JobCanceled,
    JobFailed,
    JobHandle,
    LocalCluster,
    NoReadableCheckpoint,
    StreamEnvironment,
)

from .conftest import MARK, processes_of
from .jobs import WAIT_S, Gate, Witness, counted, counting, environment, eventually, read_output

COUNT = 2_400

SCRIPT = """
import logging, os, sys, threading, time
from understudy import END, FileSink, KeyedOperator, LocalCluster, StreamEnvironment, ValueState
from understudy.runtime.connectors import GeneratorSource

class Numbers(GeneratorSource):
    # Does not end while there is a file of this name.
    waits = False
    def poll(self):
        batch = super().poll()
        self.waits = batch is END and os.path.exists(f"{folder}/held")
        return None if self.waits else batch

    def poll_delay_ms(self):
        return 10.0 if self.waits else super().poll_delay_ms()

class Counting(KeyedOperator):
    seen = ValueState(int, default=0)
    def process(self, record, out):
        self.seen.update(self.seen.value() + 1)
        out.collect({"key": self.key, "number": self.seen.value(), "index": record})

folder = sys.argv[1]
logging.basicConfig(level="INFO", stream=sys.stderr)
env = StreamEnvironment(checkpoint_interval_ms=50, checkpoint_dir=f"{folder}/checkpoints")
numbers = env.from_source(Numbers(lambda index: index, COUNT, 400), name="numbers")
numbers.key_by(lambda index: index % 24).process(Counting, name="count").sink_to(FileSink(f"{folder}/out", "jsonl"))
with LocalCluster(task_managers=2, name_lease_ms=600_000) as cluster:
    job = cluster.submit(env, "counts", resume="latest")
    print("from", job.restored_from and job.restored_from.checkpoint_id, flush=True)
    job.on_event(lambda event: print(type(event).__name__, flush=True))
    job.wait()
print("finished", flush=True)
""".replace("COUNT", str(COUNT))

Start = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Run SCRIPT, always with the same command."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    running: list[subprocess.Popen[str]] = []

    def run() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(path), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


def lines_until(process: subprocess.Popen[str], wanted: str, times: int = 1) -> list[str]:
    """What it says, up to the `times`-th such line."""
    assert process.stdout is not None
    found: list[str] = []
    for line in process.stdout:
        found.append(line.strip())
        if sum(each.startswith(wanted) for each in found) == times:
            return found
    raise AssertionError(f"{found} {process.communicate()[1]}")


def nothing_runs() -> None:
    eventually(lambda: processes_of(os.environ[MARK]) == [], "the end of all processes")


@pytest.mark.chaos
def test_a_driver_that_is_killed_again_and_again_is_exact_in_the_end(
    start: Start, nothing_is_left: Path, tmp_path: Path
) -> None:
    """At any moment: while it starts, before its first checkpoint, between two, in the middle of one."""
    chance, restored = random.Random(14), [0]
    for checkpoints in (1, 0, 3, 2):
        process = start()
        (said,) = lines_until(process, "from")
        restored.append(0 if said == "from None" else int(said.removeprefix("from ")))
        if checkpoints:
            lines_until(process, "CheckpointCompleted", checkpoints)
        time.sleep(chance.uniform(0, 0.05))  # nothing waits for it: it only makes the moment another one
        process.kill()
        process.communicate()
        nothing_runs()
        eventually(lambda: os.listdir(nothing_is_left) == [], "the end of the temporary files")
    assert restored == sorted(restored)
    assert restored[2] > 0, "the second start goes on from the first one's checkpoint"
    process = start()
    _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    assert "job 'counts' (" in errors
    assert ") goes on from checkpoint " in errors
    assert read_output(tmp_path / "out", "jsonl") == counted(COUNT)
    process = start()
    assert process.wait(timeout=WAIT_S) == 1
    assert "AlreadyFinished: job 'counts' has finished" in process.communicate()[1]


@pytest.mark.chaos
def test_of_two_drivers_the_second_is_refused_and_harms_nothing(start: Start, tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.touch()
    first = start()
    lines_until(first, "CheckpointCompleted")
    second = start()
    _, errors = second.communicate(timeout=WAIT_S)
    held.unlink()
    assert second.returncode == 1
    assert "AlreadyRunning: job 'counts' runs already, as job-" in errors
    assert f"process {first.pid} (script.py) on " in errors
    _, errors = first.communicate(timeout=WAIT_S)
    assert first.returncode == 0, errors
    assert read_output(tmp_path / "out", "jsonl") == counted(COUNT)


# ------------------------------------------------------------------------------------------- ends, one after the other


class Service:
    """A job on a cluster, started again and again under one name."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.out = folder / "out"
        self.checkpoints = folder / "checkpoints"

    def env(self, count: int | None = None, gate: Gate | None = None, **settings: object) -> StreamEnvironment:
        env = environment(checkpoint_dir=str(self.checkpoints), **settings)
        counting(env, count, 1000.0, gate=gate).sink_to(FileSink(str(self.out), "jsonl"), name="out")
        return env

    def start(self, count: int | None = None, **settings: object) -> JobHandle:
        return self.cluster.submit(self.env(count, **settings), "service", resume="latest")


@pytest.fixture
def service(shared_cluster: LocalCluster, tmp_path: Path) -> Service:
    return Service(shared_cluster, tmp_path)


def ended(job: JobHandle) -> JobHandle:
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
    return job


def test_a_fresh_start_says_so(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "understudy.job"):
        job = service.start()
    assert job.restored_from is None
    assert (
        f"job 'service' ({job.job_id}) starts from the beginning: no checkpoint of it is in {service.checkpoints}"
        in caplog.text
    )
    ended(job)


def test_a_canceled_job_goes_on_from_its_newest_checkpoint(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    first = service.start()
    Witness(first).checkpoints(2)
    ended(first)
    with caplog.at_level("INFO", "understudy.job"):
        second = service.start()
    found = second.restored_from
    assert found is not None
    assert found.job_id == first.job_id
    assert found.path == str(service.checkpoints / f"{first.job_id}/chk-{found.checkpoint_id}/_metadata")
    assert f"goes on from checkpoint {found.checkpoint_id} of {first.job_id}, taken " in caplog.text
    ended(second)


def test_a_job_that_was_stopped_with_a_savepoint_goes_on_from_it(service: Service) -> None:
    first = service.start()
    Witness(first).checkpoints(1)
    first.stop_with_savepoint().result(timeout=WAIT_S)
    first.wait(timeout=WAIT_S)
    done = len(read_output(service.out, "jsonl"))
    second = service.start(done + 500)
    assert second.restored_from is not None
    second.wait(timeout=WAIT_S)
    assert read_output(service.out, "jsonl") == counted(done + 500)


@pytest.mark.parametrize("drained", [False, True])
def test_a_finished_or_drained_job_is_not_run_again(service: Service, drained: bool) -> None:
    if drained:
        job = service.start()
        Witness(job).checkpoints(1)
        job.stop_with_savepoint(drain=True).result(timeout=WAIT_S)
    else:
        job = service.start(100)
    job.wait(timeout=WAIT_S)
    with pytest.raises(AlreadyFinished):
        service.start()


def test_a_job_that_failed_goes_on_once_it_is_mended(service: Service) -> None:
    env = environment(checkpoint_dir=str(service.checkpoints), max_same_failures=1)

    def broken(record: dict[str, int]) -> dict[str, int]:
        if record["index"] == 700:
            raise ValueError("a bug")
        return record

    counting(env, 1000, 1000.0).map(broken).sink_to(FileSink(str(service.out), "jsonl"), name="out")
    with pytest.raises(JobFailed):
        service.cluster.submit(env, "service", resume="latest").wait(timeout=WAIT_S)
    mended = service.start(1000)
    mended.wait(timeout=WAIT_S)
    assert read_output(service.out, "jsonl") == counted(1000)


def test_a_running_job_is_not_resumed_by_the_same_cluster_either(service: Service) -> None:
    job = service.start()
    with pytest.raises(AlreadyRunning, match=f"process {os.getpid()} "):
        service.start()
    ended(job)


# ------------------------------------------------------------------------------------------ checkpoints that are spoilt


def stored_by(job: JobHandle, service: Service) -> list[Path]:
    found = (service.checkpoints / job.job_id).glob("chk-*/_metadata")
    return sorted(found, key=lambda path: int(path.parent.name.removeprefix("chk-")))


def test_a_spoilt_checkpoint_is_passed_over_and_named(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    first = service.start(retained_checkpoints=3)
    Witness(first).checkpoints(4)
    ended(first)
    *_, older, newest = stored_by(first, service)
    newest.write_bytes(newest.read_bytes()[:-1])
    second = service.start()
    assert second.restored_from is not None
    assert second.restored_from.path == str(older)
    assert f"checkpoint {newest} cannot be used: " in caplog.text
    ended(second)


def test_a_checkpoint_without_its_metadata_is_none(service: Service) -> None:
    first = service.start(retained_checkpoints=3)
    Witness(first).checkpoints(4)
    ended(first)
    *_, older, newest = stored_by(first, service)
    newest.unlink()
    second = service.start()
    assert second.restored_from is not None
    assert second.restored_from.path == str(older)
    ended(second)


@pytest.mark.parametrize("how", ["rotten", "gone"])
def test_when_no_checkpoint_can_be_read_the_job_does_not_begin_anew(service: Service, how: str) -> None:
    first = service.start()
    Witness(first).checkpoints(2)
    ended(first)
    for path in stored_by(first, service):
        if how == "rotten":
            path.write_bytes(b"rotten")
        else:
            path.unlink()
    with pytest.raises(NoReadableCheckpoint, match=first.job_id):
        service.start()
    with pytest.raises(NoReadableCheckpoint):
        service.start()


def test_what_another_name_has_left_is_not_taken(service: Service) -> None:
    first = service.cluster.submit(service.env(), "another", resume="latest")
    Witness(first).checkpoints(1)
    ended(first)
    second = service.start()
    assert second.restored_from is None
    ended(second)


def test_from_a_savepoint_the_first_time_and_then_from_the_newest(service: Service) -> None:
    plain = service.cluster.submit(service.env(), "plain")
    plain.ready().result(timeout=WAIT_S)
    savepoint = plain.stop_with_savepoint().result(timeout=WAIT_S)
    plain.wait(timeout=WAIT_S)

    def start() -> JobHandle:
        return service.cluster.submit(service.env(), "service", from_savepoint=savepoint, resume="latest")

    first = start()
    assert first.restored_from is not None
    assert first.restored_from.path == savepoint
    Witness(first).checkpoints(1)
    ended(first)
    second = start()
    assert second.restored_from is not None
    assert second.restored_from.job_id == first.job_id
    ended(second)


def test_back_to_a_savepoint_once_and_then_from_the_newest(service: Service) -> None:
    """As after a value was mended in it, or a new program that has done harm."""
    first = service.start()
    first.ready().result(timeout=WAIT_S)
    savepoint = first.stop_with_savepoint().result(timeout=WAIT_S)
    first.wait(timeout=WAIT_S)
    newer = service.start()
    Witness(newer).checkpoints(1)
    ended(newer)
    back = service.cluster.submit(service.env(), "service", from_savepoint=savepoint, resume="savepoint")
    assert back.restored_from is not None
    assert back.restored_from.path == savepoint
    with pytest.raises(AlreadyRunning):
        service.start()
    Witness(back).checkpoints(1)
    ended(back)
    again = service.cluster.submit(service.env(), "service", from_savepoint=savepoint, resume="savepoint")
    assert again.restored_from is not None
    assert again.restored_from.job_id == back.job_id, "the same command, as of a supervisor"
    Witness(again).checkpoints(1)
    ended(again)
    after = service.start()
    assert after.restored_from is not None
    assert after.restored_from.job_id == again.job_id
    ended(after)


def test_what_contradicts_itself_is_refused(service: Service) -> None:
    with pytest.raises(InvalidSetting, match="resume='savepoint': name the savepoint in from_savepoint"):
        service.cluster.submit(service.env(), "service", resume="savepoint")
    with pytest.raises(InvalidSetting, match="contradict"):
        service.start(retain_checkpoints="never")
    with pytest.raises(InvalidSetting, match="wanted one of latest, savepoint, found"):
        service.cluster.submit(service.env(), "service", resume="newest")
    env = environment()
    counting(env, 1, None).print()
    with pytest.raises(InvalidSetting, match="no checkpoint_dir"):
        service.cluster.submit(env, "service", resume="latest")
