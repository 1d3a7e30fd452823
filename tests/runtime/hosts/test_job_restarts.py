"""JobRestarts on the stored code of hosts: whose code is kept and deleted, and who may be restarted beside whom."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pykka
import pytest

from understudy.actors.errors import NotRestartable
from understudy.actors.job_manager import job_restarts
from understudy.actors.job_manager.job_programs import KEPT_PROGRAMS
from understudy.actors.job_manager.job_restarts import JobRestarts
from understudy.actors.job_manager.managed_job import ManagedJob
from understudy.messages import (
    CheckpointConfig,
    JobGraph,
    JobId,
    JobStatus,
    JobSubmitted,
    RestartJob,
    RestartStrategyConfig,
    RestartStrategyKind,
    SubmitJob,
)
from understudy.runtime.hosts.host_programs import HostPrograms
from understudy.runtime.hosts.programs import Programs, ShippedProgram
from understudy.runtime.system import CurveKeys
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.savepoint_store import HeapSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints


class Line:
    """The JobManager around it: everything that it starts is there at once. It also is the ActorContext."""

    def __init__(self, folder: Path) -> None:
        self.checkpoints = str(folder / "checkpoints")
        self.random = random.Random(7)
        self.stored = Programs(str(folder), CurveKeys.generate())
        self.programs = HostPrograms(self.stored)
        self.jobs: dict[JobId, Any] = {}
        self.submitted: dict[JobId, SubmitJob] = {}
        savepoints = Savepoints(HeapSavepointStore(), CheckpointStorage)
        self.restarts = JobRestarts(
            cast(Any, self),
            self.programs,
            savepoints,
            cast("dict[JobId, ManagedJob]", self.jobs),
            self.submit,
            lambda work: work.work(),
        )

    def run_blocking(self, function: Callable[..., Any], *arguments: Any) -> pykka.Future[Any]:
        done: pykka.Future[Any] = pykka.ThreadingFuture()
        try:
            done.set(function(*arguments))
        except Exception as error:  # noqa: BLE001
            done.set_exception((type(error), error, error.__traceback__))
        return done

    def pipe_to_self(self, future: pykka.Future[Any], success: Any, failure: Any) -> None:
        try:
            event = success(future.get(timeout=5))
        except Exception as error:  # noqa: BLE001
            event = failure(error)
        self.restarts.on(event)

    def promise(self) -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def begin(self, name: str) -> JobId:
        job_id = JobId(name)
        graph = JobGraph(
            job_id, name, (), (), CheckpointConfig(self.checkpoints), RestartStrategyConfig(RestartStrategyKind.NONE)
        )
        self.submit(SubmitJob(graph, 1, 1, program=self.stored.store(job_id, ShippedProgram(b"code"))))
        return job_id

    def submit(self, submitted: SubmitJob) -> pykka.Future[Any]:
        job_id = submitted.graph.job_id
        self.submitted[job_id] = submitted
        self.jobs[job_id] = SimpleNamespace(status=JobStatus.RUNNING, cancel=lambda: self.end(job_id))
        self.restarts.begun(submitted)
        there: pykka.Future[Any] = pykka.ThreadingFuture()
        there.set(JobSubmitted(job_id))
        return there

    def end(self, job_id: JobId) -> None:
        self.jobs[job_id].status = JobStatus.CANCELED
        self.restarts.ended(job_id)

    def restart(self, job_id: JobId, path: str = "savepoint") -> Any:
        return self.restarts.restart(RestartJob(job_id, path, cancel=True), self.jobs[job_id]).get(timeout=5)


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


def test_a_refused_restart_leaves_the_running_job_its_code(line: Line) -> None:
    running = line.begin("job-a")
    with pytest.raises(Exception, match="savepoint"):
        line.restart(running, "jobmanager://savepoints/gone")
    for number in range(KEPT_PROGRAMS + 1):
        line.end(line.begin(f"job-{number}"))
    line.programs.close()
    program = line.submitted[running].program
    assert program is not None
    assert line.stored.load(running, program).program == b"code"


def test_of_one_line_one_job_runs(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_restarts, "find_origin", lambda *_, **__: SimpleNamespace(savepoint_path="savepoint"))
    first = line.begin("job-a")
    second = line.restart(first).job_id
    line.end(second)
    third = line.restart(first).job_id
    with pytest.raises(NotRestartable, match=f"job {third} goes on in its place"):
        line.restart(second)
    line.end(third)
    assert line.jobs[line.restart(second).job_id].status is JobStatus.RUNNING


def test_a_later_job_of_a_line_is_not_restarted_while_its_first_one_is(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = SimpleNamespace(savepoint_path="savepoint")
    monkeypatch.setattr(job_restarts, "find_origin", lambda *_, **__: origin)
    first = line.begin("job-a")
    second = line.restart(first).job_id
    line.end(second)
    refused = []

    def meanwhile(*_: Any, **__: Any) -> Any:
        with pytest.raises(NotRestartable, match=f"job {first}, which runs the same program, is just being restarted"):
            line.restart(second)
        refused.append(second)
        return origin

    monkeypatch.setattr(job_restarts, "find_origin", meanwhile)
    line.restart(first)
    assert refused == [second]


def test_a_savepoint_is_needed_under_its_own_path_while_the_job_before_it_is_cancelled(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        job_restarts, "find_origin", lambda *_, **__: SimpleNamespace(savepoint_path="/savepoints/savepoint-1")
    )
    running = line.begin("job-a")
    line.jobs[running].cancel = lambda: None  # it takes its time
    answer = line.restarts.restart(RestartJob(running, "savepoint-1", cancel=True), line.jobs[running])
    assert "just being restarted from it" in line.restarts.needs("savepoint-1")
    assert "just being restarted from it" in line.restarts.needs("/savepoints/savepoint-1")
    line.end(running)
    assert line.jobs[answer.get(timeout=5).job_id].status is JobStatus.RUNNING
    assert line.restarts.needs("/savepoints/savepoint-1") == ""
