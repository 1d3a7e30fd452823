"""JobWatch: what users see of one running job: its figures, its back-pressure by samples, its flame graphs.

A part of the ManagedJob, on the JobManager's dispatcher. It reads the JobMaster's machines and changes none of them. It
is the shell of VertexSamples: sends its orders, keeps its timers, and answers those who wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeAlias

import pykka

from ...messages import (
    CheckpointId,
    ExecutionState,
    FlameGraph,
    Heartbeat,
    JobGraph,
    JobMetrics,
    JobStatus,
    JobStatusChanged,
    JobVertex,
    LeaderSessionMessage,
    RequestBackPressure,
    RequestFlameGraph,
    RequestThreadDump,
    StackTraceSample,
    SubtaskIndex,
    SubtaskMetrics,
    TaskManagerId,
    VertexBackPressureReport,
    VertexId,
    VertexMetrics,
)
from ..ask_errors import NoSuchVertex, NotRunning
from ..context import ActorContext
from ..jobs.back_pressure import BackPressureAnswer
from ..jobs.execution import Execution
from ..jobs.job_master import JobMaster
from ..jobs.metric_book import MetricBook
from ..jobs.metric_sums import of_subtasks
from ..jobs.vertex_samples import Ratios, SamplesEffect, SamplesOverdue, TriggerSample, VertexSamples
from .job_workers import Worker
from .recent_logs import RecentLogs
from .storage_answers import ForJob

SNAPSHOT_MS = 1_000
"""So long a snapshot is good: more who ask get the same one."""

DUMP_MS = 10_000
"""So long a TaskManager has to describe its threads."""

WatchEvent: TypeAlias = StackTraceSample | SamplesOverdue
Asked: TypeAlias = RequestBackPressure | RequestFlameGraph


class JobWatch:
    """`workers`: the TaskManagers that there are now."""

    def __init__(
        self,
        context: ActorContext,
        envelope: Callable[[Any], LeaderSessionMessage],
        graph: JobGraph,
        master: JobMaster,
        workers: Mapping[TaskManagerId, Worker],
        told_status: Callable[[], str],
        damaged: Collection[CheckpointId],
    ) -> None:
        """`damaged`: all checkpoints that were ever found to be."""
        self._context = context
        self._envelope = envelope
        self._graph = graph
        self._master = master
        self._workers = workers
        self._told_status = told_status
        self._damaged = damaged
        self.book = MetricBook()
        self.logs = RecentLogs(graph.job_id, graph.name)
        self._samples = VertexSamples(graph.job_id)
        self._waiting: dict[VertexId, list[Callable[[], None]]] = {}
        self._snapshot: tuple[float, JobMetrics] | None = None
        self._in_status = dict.fromkeys(JobStatus, 0.0)
        self._status_since = context.clock.now_ms()

    # -- what happens to the job

    def heard(self, task_manager_id: TaskManagerId, beat: Heartbeat) -> None:
        self.book.heard(task_manager_id, beat)

    def status_changed(self, changed: JobStatusChanged) -> None:
        now_ms = self._context.clock.now_ms()
        self._in_status[changed.previous] += now_ms - self._status_since
        self._status_since = now_ms
        self.book.keep(each.attempt_id for each in self._master.graph.executions())
        if changed.status.is_terminal:
            self._carry_out(self._samples.job_ended(now_ms))

    def on(self, event: WatchEvent) -> None:
        now_ms, wall_ms = self._context.clock.now_ms(), self._context.clock.wall_ms()
        if isinstance(event, StackTraceSample):
            self._carry_out(self._samples.heard(event, now_ms, wall_ms))
        else:
            self._carry_out(self._samples.overdue(event, now_ms, wall_ms))

    # -- questions

    def ask(self, question: Asked) -> Any:
        """The answer, or the future of it. Raises NotRunning for a vertex that there is not, or that does not run where
        samples are wanted.
        """
        vertex = self._vertex(question.vertex)
        answer, effects = self._samples.request(vertex, self._executions(vertex), self._context.clock.now_ms())
        self._carry_out(effects)
        is_under_way = self._samples.is_under_way(vertex.vertex_id)
        if question.is_to_wait and answer.is_outdated and is_under_way:
            promise: pykka.Future[Any] = self._context.promise()
            self._waiting.setdefault(vertex.vertex_id, []).append(partial(self._keep, promise, question, vertex))
            return promise
        if question.is_to_wait and answer.figures is None:
            raise NotRunning(vertex.name, f"none of its tasks runs; the job is {self._told_status()}")
        return self._answer(question, vertex, answer)

    def dump(self, question: RequestThreadDump) -> pykka.Future[Any]:
        """The future of the threads of one of the job's TaskManagers."""
        assert question.task_manager_id is not None
        worker = self._workers[question.task_manager_id]
        return worker.ref.ask(self._envelope(question), timeout_ms=DUMP_MS)

    def metrics(self) -> JobMetrics:
        """All figures, at most SNAPSHOT_MS old."""
        now_ms = self._context.clock.now_ms()
        if self._snapshot is None or now_ms - self._snapshot[0] >= SNAPSHOT_MS or self._master.status.is_terminal:
            self._snapshot = now_ms, self._metrics(now_ms)
        return self._snapshot[1]

    # -- inside: samples

    def _keep(self, promise: pykka.Future[Any], question: Asked, vertex: JobVertex) -> None:
        """The promise: answer now, with what is known."""
        answer, effects = self._samples.request(vertex, self._executions(vertex), self._context.clock.now_ms())
        self._carry_out(effects)
        promise.set(self._answer(question, vertex, answer))

    def _answer(
        self, question: Asked, vertex: JobVertex, answer: BackPressureAnswer
    ) -> VertexBackPressureReport | FlameGraph:
        if isinstance(question, RequestFlameGraph):
            return self._samples.flame_graph(vertex, question)
        clock = self._context.clock
        return self._samples.report(vertex, answer, self._ratios(vertex), clock.now_ms(), clock.wall_ms())

    def _ratios(self, vertex: JobVertex) -> Ratios:
        found: Ratios = {}
        for execution in self._executions(vertex):
            values, _ = self.book.values(execution.attempt_id)
            if "idleTimeMsPerSecond" in values:
                idle, busy = values["idleTimeMsPerSecond"] / 1000, values["busyTimeMsPerSecond"] / 1000
                found[execution.subtask_index] = idle, busy
        return found

    def _carry_out(self, effects: list[SamplesEffect]) -> None:
        for effect in effects:
            if isinstance(effect, TriggerSample):
                if (worker := self._workers.get(effect.task_manager_id)) is not None:
                    worker.ref.tell(self._envelope(effect.message))
            elif isinstance(effect, SamplesOverdue):
                self._context.schedule(effect.after_ms, ForJob(self._graph.job_id, effect))
            else:
                for answer in self._waiting.pop(effect.vertex_id, ()):
                    answer()

    # -- inside: the snapshot

    def _metrics(self, now_ms: float) -> JobMetrics:
        executions: dict[VertexId, list[Execution]] = {vertex.vertex_id: [] for vertex in self._graph.vertices}
        for execution in self._master.graph.executions():
            executions[execution.vertex_id].append(execution)
        return JobMetrics(
            job_id=self._graph.job_id,
            name=self._graph.name,
            status=self._master.status,
            timestamp_ms=self._context.clock.wall_ms(),
            values=self._values(now_ms),
            vertices=tuple(self._vertex_metrics(each, executions[each.vertex_id]) for each in self._graph.vertices),
        )

    def _vertex_metrics(self, vertex: JobVertex, executions: list[Execution]) -> VertexMetrics:
        subtasks: list[SubtaskMetrics] = []
        kinds: dict[str, str] = {}
        for execution in executions:
            values, own = self.book.values(execution.attempt_id)
            kinds |= own
            subtasks.append(_subtask(execution, values))
        return VertexMetrics(
            vertex.vertex_id,
            vertex.name,
            vertex.parallelism,
            tuple(each.name for each in vertex.operators),
            of_subtasks([each.values for each in subtasks], kinds),
            tuple(subtasks),
            kinds,
        )

    def _values(self, now_ms: float) -> dict[str, float]:
        """Of the job: its restarts, where its time went, its checkpoints."""
        times = dict(self._in_status)
        if not self._master.status.is_terminal:
            times[self._master.status] += now_ms - self._status_since
        history = self._master.report.checkpoint_history(now_ms)
        values = {
            "numRestarts": float(self._master.restarts),
            "runningTime": times[JobStatus.RUNNING],
            "restartingTime": times[JobStatus.RESTARTING],
            "initializingTime": times[JobStatus.CREATED],
            "uptime": times[JobStatus.RUNNING],
            "numberOfCompletedCheckpoints": float(history.completed),
            "numberOfFailedCheckpoints": float(history.failed),
            "numberOfDamagedCheckpoints": float(len(self._damaged)),
            "numberOfInProgressCheckpoints": float(history.triggered - history.completed - history.failed),
            "totalNumberOfCheckpoints": float(history.triggered),
        }
        last = next((each for each in history.checkpoints if each.status == "completed"), None)
        if last is not None:
            values["lastCompletedCheckpointId"] = float(last.checkpoint_id)
            values["lastCheckpointDuration"] = float(last.duration_ms)
            values["lastCheckpointSize"] = float(last.state_size_bytes)
            values["lastCheckpointCompletedTimestamp"] = float(last.timestamp_ms + last.duration_ms)
            alignments = (each.metrics.alignment_ms for each in last.subtasks)
            values["lastCheckpointAlignment"] = max(alignments, default=0.0)
        executions = self._master.graph.executions()
        values["numRunningTasks"] = float(sum(each.state is ExecutionState.RUNNING for each in executions))
        return values

    def _executions(self, vertex: JobVertex) -> tuple[Execution, ...]:
        return self._master.graph.executions([vertex.vertex_id])

    def _vertex(self, wanted: str) -> JobVertex:
        for vertex in self._graph.vertices:
            names = [name for each in vertex.operators for name in (each.name, each.operator_id)]
            if wanted in (vertex.vertex_id, vertex.name, *names):
                return vertex
        known = ", ".join(repr(each.name) for each in self._graph.vertices)
        raise NoSuchVertex(wanted, self._graph.name, known)


def _subtask(execution: Execution, values: dict[str, float]) -> SubtaskMetrics:
    return SubtaskMetrics(
        SubtaskIndex(execution.subtask_index),
        execution.attempt_id,
        execution.number,
        execution.task_manager_id or TaskManagerId(""),
        execution.state.value,
        values,
    )
