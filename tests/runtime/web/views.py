"""Views of jobs that never ran, as large as a test wants, and a JobManager's side that answers with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from understudy.messages import (
    AskOperator,
    CancelJob,
    CancelWithSavepoint,
    CheckpointConfig,
    CheckpointHistory,
    CheckpointId,
    CheckpointNotTaken,
    CheckpointStatistics,
    CheckpointTaken,
    ClusterMetrics,
    DisposeSavepoint,
    DisposeSavepointFailure,
    DisposeSavepointSuccess,
    ExecutionState,
    FailureAt,
    FailureCause,
    FailureKind,
    FlameGraph,
    JobDetails,
    JobEdge,
    JobGraph,
    JobList,
    JobLogs,
    JobMetrics,
    JobStatus,
    JobSubmitted,
    JobSummary,
    JobVertex,
    JobView,
    KeyGroups,
    KeyGroupSize,
    ListJobs,
    LoggedRecord,
    LogRecords,
    OperatorAnswer,
    OperatorDescription,
    OperatorKeyGroups,
    Partitioning,
    RequestCheckpoint,
    RequestCheckpointStatistics,
    RequestFlameGraph,
    RequestJobView,
    RequestKeyGroups,
    RequestLogs,
    RequestMetrics,
    RequestThreadDump,
    RestartJob,
    RestartStrategyConfig,
    RestartStrategyKind,
    SampledFrame,
    SavepointView,
    SnapshotMetrics,
    StateDescription,
    StopWithSavepoint,
    SubtaskMetrics,
    SubtaskStatistics,
    SubtaskView,
    TaskEventTime,
    TaskManagerMetrics,
    TaskManagerView,
    TaskMetrics,
    ThreadDump,
    ThreadStack,
    TimelineMark,
    TimelineSample,
    TriggerSavepoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
    VertexMetrics,
)
from understudy.runtime.clusters.watermark_explanation import explain_all
from understudy.runtime.web.errors import HttpError, JobManagerAway

HEX = "0123456789abcdef0123456789abcdef"
JOB = f"job-{HEX}"
START_MS = 1_795_380_000_000
TRACEBACK = 'Traceback:\n  File "job.py", line 3, in price\n    raise ValueError'
HOSTILE = "<img src=x onerror=alert(1)><script>alert('x')</script>\"'`&amp;"


def job_graph(vertices: int, parallelism: int, name: str = "orders", job_id: str = JOB) -> JobGraph:
    """A pipeline that forks: vertex i feeds i + 1, and every third one also i + 2."""
    made = [
        JobVertex(
            f"v{i}",
            f"step-{i}",
            parallelism,
            128,
            (
                OperatorDescription(
                    f"v{i}",
                    f"step-{i}",
                    "source" if i == 0 else "sink" if i == vertices - 1 else "operator",
                    (StateDescription("seen", "ValueState"),) if i else (),
                ),
            ),
        )
        for i in range(vertices)
    ]
    edges = [JobEdge(f"v{i}", f"v{i + 1}", Partitioning.HASH) for i in range(vertices - 1)]
    edges += [JobEdge(f"v{i}", f"v{i + 2}", Partitioning.REBALANCE) for i in range(0, vertices - 2, 3)]
    return JobGraph(
        job_id,
        name,
        tuple(made),
        tuple(edges),
        CheckpointConfig("/checkpoints", interval_ms=1000),
        RestartStrategyConfig(RestartStrategyKind.FIXED_DELAY),
    )


def job_view(
    vertices: int = 3,
    parallelism: int = 2,
    *,
    status: JobStatus = JobStatus.RUNNING,
    name: str = "orders",
    job_id: str = JOB,
    slow_vertex: int | None = 1,
    seconds: int = 60,
) -> JobView:
    """A job that has run for a minute, with a failure in the middle; one vertex is busy, those before it wait."""
    graph, at_ms = job_graph(vertices, parallelism, name, job_id), START_MS + 1000 * seconds
    subtasks, tasks = [], []
    state = ExecutionState.RUNNING if not status.is_terminal else ExecutionState.CANCELED
    for v, vertex in enumerate(graph.vertices):
        for i in range(parallelism):
            busy, waits = (0.97, 0.0) if v == slow_vertex else (0.1, 0.8 if slow_vertex and v < slow_vertex else 0.0)
            attempt = f"attempt-{v}-{i}"
            host = f"tm-{i % 2}"
            subtasks.append(
                SubtaskView(
                    vertex.vertex_id, i, attempt, 1, state, host, i, START_MS, START_MS + 10, START_MS + 20,
                    at_ms if status.is_terminal else 0, 1000.0 + 10 * i, 990.0, busy, waits,
                )
            )  # fmt: skip
            time = TaskEventTime(at_ms - 1500, at_ms - 1500, 200, 1500, False, False, 3)
            tasks.append(
                TaskMetrics(attempt, vertex.vertex_id, vertex.name, i, 60_000, 59_000, 600, 40, 900, "running", time)
            )
    failure = FailureCause(
        "UserCodeError", "operator 'step-1' raised at record 17", "", name, "step-1", "step-1", 1, 0, 17,
        task_manager="tm-1", kind=FailureKind.USER_CODE,
        cause=FailureCause("ValueError", HOSTILE, TRACEBACK),
    )  # fmt: skip
    ended_ms = at_ms if status.is_terminal else 0
    summary = JobSummary(
        job_id, name, status, START_MS, ended_ms, 1, len(subtasks) if not ended_ms else 0, len(subtasks)
    )
    details = JobDetails(
        job_id, name, status, 1, (failure,), 5, 5, f"/checkpoints/{job_id}/chk-5/_metadata", tuple(tasks)
    )
    statuses = {"created": START_MS, "restarting": START_MS + 30_000, "running": START_MS + 31_000, status.value: at_ms}
    marks = [TimelineMark(START_MS + 1000 * n, "checkpoint", "1 KiB", 40 + n, n) for n in range(1, seconds, 5)]
    marks += [
        TimelineMark(START_MS + 30_000, "failure", f"ValueError: {HOSTILE}"),
        TimelineMark(START_MS + 30_000, "status", "restarting"),
        TimelineMark(START_MS + 31_000, "status", "running"),
        TimelineMark(START_MS + 45_000, "savepoint", "2 KiB", 80, 99),
    ]
    samples = [
        TimelineSample(START_MS + 1000 * n, 2000.0 if n != 30 else 0.0, 1900.0 if n != 30 else 0.0, 0.97, 0.8, 1500)
        for n in range(seconds)
    ]
    workers = [
        TaskManagerView(f"tm-{i}", i, "127.0.0.1", 100 + i, parallelism, "tcp://127.0.0.1:1/x",
                        f"tcp://127.0.0.1:{4000 + i}", START_MS, at_ms - 300)
        for i in range(2)
    ]  # fmt: skip
    return JobView(
        at_ms, summary, details, graph, tuple(subtasks), (), tuple(workers), statuses,
        (FailureAt(START_MS + 30_000, failure),), tuple(samples), tuple(sorted(marks, key=lambda each: each.at_ms)),
        (SavepointView(f"/savepoints/{HOSTILE}", 2, START_MS + 45_000),),
    )  # fmt: skip


def history_of(view: JobView, checkpoints: int = 3) -> CheckpointHistory:
    """The last checkpoints, newest first; the newest is under way, one has failed, one is a savepoint."""
    kinds = [("checkpoint", "in_progress"), ("savepoint", "completed"), ("checkpoint", "failed")]
    found = []
    for n in range(checkpoints):
        kind, status = kinds[n] if n < len(kinds) else ("checkpoint", "completed")
        rows = [
            SubtaskStatistics(
                each.vertex_id,
                each.subtask_index,
                20 + place if place else 400,
                1024,
                SnapshotMetrics(0.4, 6.0, 3.0, 128),
            )
            for place, each in enumerate(view.subtasks)
            if status == "completed" or place % 2
        ]
        number = checkpoints - n
        found.append(
            CheckpointStatistics(
                number, kind, status, START_MS + 1000 * number, 400, 1024 * len(rows), len(view.subtasks),
                "task_failed: step-1" if status == "failed" else "",
                f"{view.summary.job_id}/chk-{number}/_metadata" if status == "completed" else "", tuple(rows),
            )
        )  # fmt: skip
    return CheckpointHistory(view.graph.job_id, checkpoints, checkpoints - 2, 1, 1, tuple(found))


def in_a_loop(view: JobView) -> JobView:
    """With an edge from the last vertex back to the second."""
    vertices, edges = view.graph.vertices, view.graph.edges
    back = JobEdge(vertices[-1].vertex_id, vertices[1].vertex_id, Partitioning.REBALANCE, 1, feedback=True)
    return replace(view, graph=replace(view.graph, edges=(*edges, back)))


def flames(job_id: str, vertex: str) -> FlameGraph:
    """Three quarters of a hundred samples work, two thirds of them in a function with a script in its name."""
    frames = (
        SampledFrame(-1, "(works)", "", 0, "state", 75),
        SampledFrame(0, HOSTILE, "job.py", 3, "user", 50),
        SampledFrame(1, "dumps", "json/__init__.py", 183, "library", 20),
        SampledFrame(0, "Output.flush", "output.py", 9, "understudy", 25),
        SampledFrame(-1, "(waits for input)", "", 0, "state", 25),
    )
    return FlameGraph(job_id, vertex, vertex, START_MS + 57_000, 100, frames)


def state_sizes(view: JobView) -> JobMetrics:
    """Each operator's last subtask holds nine times what the others do."""
    vertices = []
    for vertex in view.graph.vertices:
        rows = tuple(
            SubtaskMetrics(
                index, f"{vertex.vertex_id}-{index}", 1, "tm-0", "running",
                {f"{vertex.name}.stateSize": 9000.0 if index == vertex.parallelism - 1 else 1000.0,
                 f"{vertex.name}.stateEntries": 10.0},
            )
            for index in range(vertex.parallelism)
        )  # fmt: skip
        vertices.append(VertexMetrics(vertex.vertex_id, vertex.name, vertex.parallelism, (vertex.name,), {}, rows, {}))
    return JobMetrics(view.graph.job_id, view.summary.name, view.summary.status, START_MS, {}, tuple(vertices))


class AnsweringJobs:
    """In place of a JobManager: answers with the views it was given, and keeps the orders that it gets."""

    def __init__(self, *views: JobView) -> None:
        self.views = {each.graph.job_id: each for each in views}
        self.histories = {each.graph.job_id: history_of(each) for each in views}
        self.orders: list[Any] = []
        self.questions = 0
        self.away = False
        self.answers: asyncio.Event | None = None
        """Until then it answers nothing."""
        self.refusal = ""
        """Why no checkpoint is taken."""

    def ask(self, message: Any, timeout_ms: float | None = None) -> Awaitable[Any]:
        return self._answer(message)

    def explain(self, report: Any) -> Iterable[Any]:
        return explain_all(report)

    async def _answer(self, message: Any) -> Any:
        self.questions += 1
        if self.answers is not None:
            await self.answers.wait()
        if self.away:
            raise JobManagerAway("no JobManager answers at tcp://127.0.0.1:1: does it still run?")
        match message:
            case ListJobs():
                return JobList(tuple(each.summary for each in self.views.values()))
            case RequestJobView(job_id, after_ms) if job_id in self.views:
                view = self.views[job_id]
                samples = tuple(each for each in view.samples if each.at_ms > after_ms)
                return replace(view, samples=samples, marks=tuple(each for each in view.marks if each.at_ms > after_ms))
            case RequestJobView(job_id):
                raise HttpError(HTTPStatus.NOT_FOUND, f"no job {job_id!r} here; known: none")
            case RequestCheckpointStatistics(job_id) if job_id in self.views:
                return self.histories[job_id]
            case TriggerSavepoint() | StopWithSavepoint() | CancelWithSavepoint():
                self.orders.append(message)
                if message.target_directory and ".." in message.target_directory:
                    return TriggerSavepointFailure(message.job_id, f"{message.target_directory} is not below the root")
                return TriggerSavepointSuccess(message.job_id, "/savepoints/savepoint-1")
            case RequestCheckpoint():
                self.orders.append(message)
                if self.refusal:
                    return CheckpointNotTaken(message.job_id, self.refusal)
                return CheckpointTaken(message.job_id, CheckpointId(7), "/checkpoints/chk-7")
            case DisposeSavepoint(path):
                self.orders.append(message)
                view = self.views[JOB]
                if path.startswith("/etc"):
                    return DisposeSavepointFailure(f"{path} is not below the root")
                kept = tuple(each for each in view.savepoints if each.path != path)
                self.views[JOB] = replace(view, savepoints=kept)
                return DisposeSavepointSuccess(path)
            case RestartJob(job_id, path):
                self.orders.append(message)
                if path.startswith("/etc"):
                    raise HttpError(HTTPStatus.BAD_REQUEST, f"{path} is in none of the savepoint directories")
                new = job_view(job_id=f"job-{HEX[::-1]}")
                self.views[new.graph.job_id] = new
                old = replace(self.views[job_id].details, restarted_as=new.graph.job_id)
                self.views[job_id] = replace(self.views[job_id], details=old)
                return JobSubmitted(new.graph.job_id)
            case RequestLogs(job_id):
                record = LoggedRecord("prices", 30, START_MS / 1000, HOSTILE, operator="step-1", subtask_index=0)
                return JobLogs(job_id, (LogRecords("tm-0", job_id, "orders", 100, (record,)),), 1)
            case RequestKeyGroups(job_id):
                largest = (KeyGroupSize(17, 0, 41_000), KeyGroupSize(90, 1, 9_000), KeyGroupSize(3, 0, 5_000))
                return KeyGroups(job_id, CheckpointId(2), (OperatorKeyGroups("v1", 128, 20, 100_000, largest),))
            case RequestFlameGraph(job_id, vertex):
                return flames(job_id, vertex)
            case RequestMetrics(job_id) if job_id is not None:
                return ClusterMetrics(START_MS, {}, (state_sizes(self.views[job_id]),), ())
            case RequestMetrics():
                rows = (TaskManagerMetrics(f"tm-{i}", JOB, i, "h", 100, 2, 0, {"load": 1.0 + i}) for i in range(2))
                return ClusterMetrics(START_MS, {}, (), tuple(rows))
            case RequestThreadDump():
                return ThreadDump((ThreadStack(f"slot of {message.task_manager_id} {HOSTILE}", TRACEBACK),))
            case AskOperator() if message.plain_question == "fail":
                raise HttpError(HTTPStatus.BAD_REQUEST, f"on_receive raised ValueError: {HOSTILE}")
            case AskOperator():
                self.orders.append(message)
                return OperatorAnswer({"name": HOSTILE, 3: (1, 2)})
            case CancelJob(job_id):
                self.orders.append(message)
                return self.views[job_id].details
            case _:
                raise HttpError(HTTPStatus.BAD_REQUEST, f"{type(message).__name__} is not understood here")
