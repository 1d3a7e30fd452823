"""The leader is killed in the middle of something, on real processes: its understudy goes on, exactly, and whoever had
asked for something knows what came of it. The same moments in thousands: runtime/simulation/histories/led_history.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

from tests.free_port import free_port
from understudy import FileSink, JobHandle, SavepointFailed, StandaloneCluster, StreamEnvironment
from understudy.messages import CheckpointCompleted, CheckpointId, JobStatus
from understudy.runtime.high_availability.kept_jobs import IDS_AHEAD

from ...prepared import Command
from ..clusters import jobs
from ..clusters.jobs import Counting, Gate, Witness, counted, counting, read_output
from .conftest import WAIT_S, Shell
from .yard import SUCCESSION, Yard

COUNT = 3_000
PATIENT = SUCCESSION | {"high-availability.session-timeout-ms": "2000"}
"""So that on a machine that is slow no leader steps down by itself."""


class Brake:
    """Holds tasks at a place, as long as the test wants it."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._count = 0

    def hold(self, place: str) -> None:
        """Whoever comes there from now on; who stands there already goes on."""
        self._count += 1
        self._held(place).unlink(missing_ok=True)
        draft = Path(self._folder, "draft")
        draft.write_text(str(self._count))
        draft.rename(Path(self._folder, f"hold-{place}"))

    def release(self, place: str) -> None:
        Path(self._folder, f"hold-{place}").unlink()

    def holds(self, place: str) -> bool:
        """Whether some task stands there."""
        return self._held(place).exists() and self._held(place).read_text() == str(self._count)

    def passed(self, place: str) -> None:
        """In a task."""
        found = self._word(place)
        while found and self._word(place) == found:
            self._held(place).write_text(found)
            time.sleep(0.01)

    def _held(self, place: str) -> Path:
        return Path(self._folder, f"held-{place}")

    def _word(self, place: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return Path(self._folder, f"hold-{place}").read_text()
        return ""


class Braked(Counting):
    """Counts, and stands still at the places of its brake."""

    def __init__(self, brake: Brake) -> None:
        self.brake = brake

    def open(self) -> None:
        self.brake.passed("open")

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self.brake.passed("checkpoint")

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        self.brake.passed(f"commit-{checkpoint_id}")


class Succession:
    """JobManagers one after the other, always with one that waits, and a TaskManager process."""

    def __init__(self, yard: Yard) -> None:
        self.yard, self._count = yard, 0
        self.leader, self.worker = self._start(), yard.start("taskmanager", *self._flags())
        yard.until_registered(self.worker)
        self.standby = self._start()

    @staticmethod
    def _flags() -> list[str]:
        return [part for key, value in PATIENT.items() for part in ("-D", f"{key}={value}")]

    def _start(self) -> Command:
        self._count += 1
        self._leads = "JobManager at tcp://127.0.0.1:"
        if self._count == 1:
            return self.yard.start("jobmanager", *self._flags())
        port = free_port()
        self._leads = f"JobManager at tcp://127.0.0.1:{port}, process"
        other = ("-D", f"jobmanager.port={port}", "-D", f"run.dir={self.yard.folder / f'run-{self._count}'}")
        return self.yard.shell.start("jobmanager", *self._flags(), *other)

    def kill(self) -> None:
        """The leader; who waited leads, and another one waits."""
        os.kill(self.leader.pid, signal.SIGKILL)
        self.yard.until(
            lambda: self._leads in self.logs(), "the next leader"
        )  # before another one may lead in its place
        self.leader, self.standby = self.standby, self._start()

    def logs(self) -> str:
        """Of all JobManagers."""
        return "".join(path.read_text() for path in (self.yard.folder / "log").iterdir())


class Stage:
    """The cluster, and a counting job whose tasks stand still where the test wants it."""

    def __init__(self, yard: Yard, succession: Succession, cluster: StandaloneCluster) -> None:
        self.yard, self.succession, self.cluster = yard, succession, cluster
        self.folder = yard.folder
        self.brake, self.gate = Brake(self.folder), Gate(self.folder)

    def begin(self, records_per_second: float) -> JobHandle:
        self.job = self.cluster.submit(self.environment(records_per_second), "numbers")
        self.witness = Witness(self.job)
        self.witness.checkpoints(2)
        return self.job

    def environment(self, records_per_second: float | None) -> StreamEnvironment:
        env: StreamEnvironment = self.yard.environment()
        out = FileSink(str(self.folder / "out"), "jsonl")
        counting(env, COUNT, records_per_second, Braked(self.brake), gate=self.gate).sink_to(out, name="out")
        return env

    def until_held(self, place: str) -> None:
        self.yard.until(lambda: self.brake.holds(place), f"a task that stands at {place!r}")

    def statistics(self) -> set[tuple[str, str]]:
        return {(each.kind, each.status) for each in self.job.checkpoint_history().checkpoints}

    def until_a_savepoint_is_under_way(self) -> CheckpointId:
        """Tasks that stand at a checkpoint are let on to the next one, until it is a savepoint's."""
        while True:
            for each in self.job.checkpoint_history().checkpoints:
                if (each.kind, each.status) == ("savepoint", "in_progress"):
                    return each.checkpoint_id
            self.brake.hold("checkpoint")
            self.until_held("checkpoint")

    def logs(self) -> str:
        return self.succession.logs()

    def announced(self) -> list[int]:
        """The ids of checkpoints, in the order in which they were, by whichever leader."""
        return [event.checkpoint_id for event in self.witness.of(CheckpointCompleted)]

    def until_it_goes_on(self) -> None:
        """The next leader takes checkpoints. It has adopted the job as it ran, or restored the newest checkpoint that
        was announced.
        """
        newest = max(self.announced())
        self.witness.wait(lambda: max(self.announced()) > newest, "a checkpoint of the next leader")
        restored = self.job.checkpoint_history().restored_checkpoint_id
        assert restored >= newest or (not restored and "goes on under this JobManager" in self.logs())
        announced = self.announced()
        assert len(set(announced)) == len(announced)
        leaders = [each // IDS_AHEAD for each in announced]  # a savepoint waits for no checkpoint of its leader
        assert leaders == sorted(leaders)


@pytest.fixture
def stage(shell: Shell) -> Iterator[Stage]:
    here = sys.modules[__name__]
    for module in (jobs, here):
        cloudpickle.register_pickle_by_value(module)
    yard = Yard(shell)
    succession = Succession(yard)
    with StandaloneCluster(yard.file, flags=PATIENT) as cluster:
        yield Stage(yard, succession, cluster)
    for module in (jobs, here):
        cloudpickle.unregister_pickle_by_value(module)


def test_a_leader_dies_with_a_checkpoint_pending_a_savepoint_under_way_and_in_a_restart(stage: Stage) -> None:
    brake, job = stage.brake, stage.begin(200.0)
    brake.hold("checkpoint")
    stage.until_held("checkpoint")
    assert ("checkpoint", "in_progress") in stage.statistics()
    stage.succession.kill()
    brake.release("checkpoint")
    stage.until_it_goes_on()

    brake.hold("checkpoint")
    stage.until_held("checkpoint")
    savepoint = job.trigger_savepoint()
    brake.hold("checkpoint")
    stage.until_held("checkpoint")
    assert ("savepoint", "in_progress") in stage.statistics()
    stage.succession.kill()
    brake.release("checkpoint")
    with pytest.raises(SavepointFailed, match="TriggerSavepoint: the JobManager went away before it answered"):
        savepoint.result(WAIT_S)
    stage.until_it_goes_on()
    assert Path(job.trigger_savepoint().result(WAIT_S)).exists()

    brake.hold("open")
    restarts = stage.witness.statuses().count(JobStatus.RESTARTING)
    stage.witness.kill(stage.witness.pids(1)[0])
    stage.witness.status(JobStatus.RESTARTING, restarts + 1)
    stage.until_held("open")
    stage.succession.kill()
    brake.release("open")
    stage.until_it_goes_on()
    stage.gate.open()
    job.wait(WAIT_S)
    assert read_output(stage.folder / "out", "jsonl") == counted(COUNT)


def test_a_stop_that_was_not_stored_is_none_and_one_that_was_is_completed_by_the_next_leader(stage: Stage) -> None:
    """What is then started from the savepoint gives the rest, and nothing twice."""
    brake, job = stage.brake, stage.begin(20.0)  # far from its end, however long the test takes
    brake.hold("checkpoint")
    stage.until_held("checkpoint")
    stop = job.stop_with_savepoint()
    brake.hold("checkpoint")
    stage.until_held("checkpoint")
    stage.succession.kill()
    brake.release("checkpoint")
    with pytest.raises(SavepointFailed, match="StopWithSavepoint: the JobManager went away before it answered"):
        stop.result(WAIT_S)
    stage.until_it_goes_on()
    assert not job.status.is_terminal
    assert "job 'numbers' is taken over; its newest checkpoint is" in stage.logs()

    brake.hold("checkpoint")
    stage.until_held("checkpoint")
    stop = job.stop_with_savepoint()
    commit = f"commit-{stage.until_a_savepoint_is_under_way()}"  # not an earlier one, whose commit stands in its way
    brake.hold(commit)
    brake.release("checkpoint")
    path = stop.result(WAIT_S)
    stage.succession.kill()
    brake.release(commit)
    job.wait(WAIT_S)
    assert f"job 'numbers' is taken over: it was stopped with savepoint {path}, commits what" in stage.logs()
    before = read_output(stage.folder / "out", "jsonl")
    assert before < counted(COUNT)
    stage.gate.open()
    stage.cluster.submit(stage.environment(None), "the rest", from_savepoint=path).wait(WAIT_S)
    assert read_output(stage.folder / "out", "jsonl") == counted(COUNT)


@pytest.mark.slow
def test_no_task_restarts_in_ten_takeovers(stage: Stage) -> None:
    """And the output is exact."""
    job = stage.begin(100.0)
    running = {task.attempt_id for task in job.details().tasks}
    for _ in range(10):
        stage.succession.kill()
        stage.until_it_goes_on()
        stage.yard.until(lambda: {task.attempt_id for task in job.details().tasks} == running, "the same attempts")
        assert job.details().restarts == 0
    stage.gate.open()
    job.wait(WAIT_S)
    assert read_output(stage.folder / "out", "jsonl") == counted(COUNT)
