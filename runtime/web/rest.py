"""Rest: Flink's REST (v1), endpoint by endpoint, as its command line and dashboard call it. With `/v1` in front or not.

Each handler asks the Desk and hands the answer to a pure function (`flink_*`), which makes the JSON.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from ...messages import (
    JobId,
    RequestBackPressure,
    RequestFlameGraph,
    SubtaskIndex,
    VertexBackPressureReport,
)
from . import flink_checkpoints, flink_jobs, flink_metrics
from .errors import HttpError, JobManagerAway, bad_request
from .http import Request, answer
from .java_throwable import failure_cause
from .jobs import Desk, flink_id
from .orders import Orders
from .routes import Route, listed_in

VERSION = "2.3.0"
"""Flink's, whose API this is: its command line compares."""
Json = dict[str, Any]


class Rest:
    """The endpoints of one app."""

    def __init__(self, desk: Desk, orders: Orders, *, read_only: bool) -> None:
        self._desk = desk
        self._orders = orders
        self._read_only = read_only

    # -- the cluster

    async def config(self, request: Request) -> Json:
        features = {"web-submit": False, "web-cancel": not self._read_only, "web-rescale": False}
        return {
            "refresh-interval": 3000,
            "timezone-name": time.tzname[0],
            "timezone-offset": -time.timezone * 1000,
            "flink-version": VERSION,
            "flink-revision": "understudy",
            "features": features | {"web-history": not self._desk.is_live},
        }

    async def overview(self, request: Request) -> Json:
        workers = flink_metrics.task_managers(await self._desk.running())
        return flink_metrics.overview(await self._desk.summaries(), workers, VERSION)

    async def jobs(self, request: Request) -> Json:
        found = await self._desk.summaries()
        return {"jobs": [{"id": flink_id(each.job_id), "status": each.status.value.upper()} for each in found]}

    async def jobs_overview(self, request: Request) -> Json:
        now_ms = time.time_ns() // 1_000_000
        return {"jobs": [flink_jobs.summary(each, now_ms) for each in await self._desk.summaries()]}

    async def jobs_metrics(self, request: Request) -> list[Json]:
        wanted = listed_in(request, "jobs")
        found = await self._desk.summaries()
        views = [await self._desk.view(each.job_id) for each in found if not wanted or flink_id(each.job_id) in wanted]
        rows = [flink_metrics.of_job(view, await self._desk.metrics_of(view)) for view in views]
        return flink_metrics.aggregated(rows, listed_in(request, "get"), listed_in(request, "agg"))

    # -- one job

    async def job(self, request: Request, job_id: str) -> Json:
        return flink_jobs.job(await self._desk.view(job_id))

    async def plan(self, request: Request, job_id: str) -> Json:
        return {"plan": flink_jobs.plan((await self._desk.view(job_id)).graph)}

    async def job_config(self, request: Request, job_id: str) -> Json:
        view = await self._desk.view(job_id)
        execution: Json = {
            "execution-mode": "PIPELINED",
            "restart-strategy": view.graph.restart.kind.value,
            "job-parallelism": max((each.parallelism for each in view.graph.vertices), default=1),
            "object-reuse-mode": False,
            "user-config": {},
        }
        return {"jid": flink_id(view.graph.job_id), "name": view.graph.name, "execution-config": execution}

    async def exceptions(self, request: Request, job_id: str) -> Json:
        most = request.first("maxExceptions", str(flink_jobs.MAX_EXCEPTIONS))
        if not most.isdecimal():
            raise bad_request(f"maxExceptions: wanted a number, found {most!r:.50}")
        return flink_jobs.exceptions(await self._desk.view(job_id), int(most[:6]))

    async def job_accumulators(self, request: Request, job_id: str) -> Json:
        await self._desk.job_id(job_id)
        return {"job-accumulators": [], "user-task-accumulators": [], "serialized-user-task-accumulators": {}}

    async def job_metrics(self, request: Request, job_id: str) -> list[Json]:
        view = await self._desk.view(job_id)
        return flink_metrics.listed(
            flink_metrics.of_job(view, await self._desk.metrics_of(view)), listed_in(request, "get")
        )

    async def job_status(self, request: Request, job_id: str) -> Json:
        view = await self._desk.view(job_id)
        return {"status": view.summary.status.value.upper()}

    async def execution_result(self, request: Request, job_id: str) -> Json:
        """Of a job that runs only that it does; else how it ended."""
        view = await self._desk.view(job_id)
        status = view.summary.status
        if not status.is_terminal:
            return {"status": {"id": "IN_PROGRESS"}}
        result: Json = {
            "id": flink_id(view.graph.job_id),
            "application-status": {"finished": "SUCCEEDED"}.get(status.value, status.value.upper()),
            "accumulator-results": {},
            "net-runtime": view.summary.ended_ms - view.summary.started_ms,
        }
        if status.value == "failed" and view.failures:
            result["failure-cause"] = failure_cause(flink_jobs.stack_of(view.failures[-1].cause))
        return {"status": {"id": "COMPLETED"}, "job-execution-result": result}

    async def resource_requirements(self, request: Request, job_id: str) -> Json:
        view = await self._desk.view(job_id)
        return {
            each.vertex_id: {"parallelism": {"lowerBound": each.parallelism, "upperBound": each.parallelism}}
            for each in view.graph.vertices
        }

    # -- checkpoints

    async def checkpoints(self, request: Request, job_id: str) -> Json:
        history = await self._desk.checkpoints(job_id)
        return flink_checkpoints.statistics(history, await self._desk.view(job_id))

    async def checkpoint_config(self, request: Request, job_id: str) -> Json:
        return flink_checkpoints.config(await self._desk.view(job_id))

    async def checkpoint(self, request: Request, job_id: str, checkpoint_id: str) -> Json:
        found = flink_checkpoints.by_id(await self._desk.checkpoints(job_id), checkpoint_id)
        return flink_checkpoints.details(await self._desk.view(job_id), found)

    async def checkpoint_subtasks(self, request: Request, job_id: str, checkpoint_id: str, vertex_id: str) -> Json:
        found = flink_checkpoints.by_id(await self._desk.checkpoints(job_id), checkpoint_id)
        vertex = flink_jobs.vertex_of(await self._desk.view(job_id), vertex_id)
        return flink_checkpoints.subtask_details(found, vertex)

    # -- one vertex

    async def vertex(self, request: Request, job_id: str, vertex_id: str) -> Json:
        view = await self._desk.view(job_id)
        return flink_jobs.vertex(view, flink_jobs.vertex_of(view, vertex_id))

    async def subtask(self, request: Request, job_id: str, vertex_id: str, index: str) -> Json:
        view = await self._desk.view(job_id)
        found = flink_jobs.subtask_of(view, flink_jobs.vertex_of(view, vertex_id), index)
        return flink_jobs.subtask_details(view, found)

    async def attempt(self, request: Request, job_id: str, vertex_id: str, index: str, number: str) -> Json:
        view = await self._desk.view(job_id)
        return flink_jobs.attempt(view, flink_jobs.vertex_of(view, vertex_id), index, number)

    async def subtask_times(self, request: Request, job_id: str, vertex_id: str) -> Json:
        view = await self._desk.view(job_id)
        return flink_jobs.subtask_times(view, flink_jobs.vertex_of(view, vertex_id))

    async def vertex_task_managers(self, request: Request, job_id: str, vertex_id: str) -> Json:
        view = await self._desk.view(job_id)
        return flink_jobs.vertex_task_managers(view, flink_jobs.vertex_of(view, vertex_id))

    async def watermarks(self, request: Request, job_id: str, vertex_id: str) -> list[Json]:
        view = await self._desk.view(job_id)
        return flink_jobs.watermarks(view, flink_jobs.vertex_of(view, vertex_id))

    async def vertex_accumulators(self, request: Request, job_id: str, vertex_id: str) -> Json:
        vertex = flink_jobs.vertex_of(await self._desk.view(job_id), vertex_id)
        return {"id": vertex.vertex_id, "user-accumulators": []}

    async def subtask_accumulators(self, request: Request, job_id: str, vertex_id: str) -> Json:
        view = await self._desk.view(job_id)
        details = flink_jobs.vertex(view, flink_jobs.vertex_of(view, vertex_id))
        shown = ("subtask", "attempt", "endpoint")
        rows = [{name: each[name] for name in shown} for each in details["subtasks"]]
        return {
            "id": details["id"],
            "parallelism": details["parallelism"],
            "subtasks": [row | {"user-accumulators": []} for row in rows],
        }

    async def attempt_accumulators(
        self, request: Request, job_id: str, vertex_id: str, index: str, number: str
    ) -> Json:
        found = await self.attempt(request, job_id, vertex_id, index, number)
        return {"subtask": found["subtask"], "attempt": found["attempt"], "id": vertex_id, "user-accumulators": []}

    async def vertex_metrics(self, request: Request, job_id: str, vertex_id: str) -> list[Json]:
        view = await self._desk.view(job_id)
        vertex = flink_jobs.vertex_of(view, vertex_id)
        found = flink_metrics.of_subtasks(view, vertex, await self._desk.metrics_of(view))
        return flink_metrics.of_vertex(found, listed_in(request, "get"))

    async def subtask_metrics(self, request: Request, job_id: str, vertex_id: str, index: str) -> list[Json]:
        view = await self._desk.view(job_id)
        vertex = flink_jobs.vertex_of(view, vertex_id)
        each = flink_jobs.subtask_of(view, vertex, index)
        found = flink_metrics.of_subtasks(view, vertex, await self._desk.metrics_of(view))
        return flink_metrics.listed(found.get(each.subtask_index, {}), listed_in(request, "get"))

    async def all_subtask_metrics(self, request: Request, job_id: str, vertex_id: str) -> list[Json]:
        view = await self._desk.view(job_id)
        vertex = flink_jobs.vertex_of(view, vertex_id)
        found = flink_metrics.of_subtasks(view, vertex, await self._desk.metrics_of(view))
        wanted = _ranges(request.first("subtasks"), vertex.parallelism)
        rows = [values for index, values in found.items() if wanted is None or index in wanted]
        return flink_metrics.aggregated(rows, listed_in(request, "get"), listed_in(request, "agg"))

    async def back_pressure(self, request: Request, job_id: str, vertex_id: str) -> Json:
        """By samples where the JobManager takes some, else by what subtasks measure themselves."""
        view = await self._desk.view(job_id)
        vertex = flink_jobs.vertex_of(view, vertex_id)
        if self._desk.is_live and not view.summary.status.is_terminal:
            try:
                report = await self._desk.ask(RequestBackPressure(view.graph.job_id, vertex.vertex_id))
            except JobManagerAway:
                raise
            except HttpError:
                report = None
            if isinstance(report, VertexBackPressureReport) and report.level:
                return flink_metrics.back_pressure(report)
        return flink_metrics.back_pressure_of_view(view, vertex)

    async def flame_graph(self, request: Request, job_id: str, vertex_id: str) -> Json:
        view = await self._desk.view(job_id)
        vertex = flink_jobs.vertex_of(view, vertex_id)
        kind, index = request.first("type", "full").lower(), request.first("subtaskindex", "-1")
        if kind not in ("full", "on_cpu", "off_cpu"):
            raise bad_request(f"type: wanted full, on_cpu or off_cpu, found {kind!r:.50}")
        if not index.removeprefix("-").isdecimal():
            raise bad_request(f"subtaskindex: wanted a number, found {index!r:.50}")
        subtask = SubtaskIndex(int(index[:9]))
        return flink_metrics.flame_graph(
            await self._desk.ask(RequestFlameGraph(view.graph.job_id, vertex.vertex_id, subtask, kind))
        )

    # -- orders

    async def cancel(self, request: Request, job_id: str) -> Any:
        mode = request.first("mode", "cancel")
        if mode != "cancel":
            raise bad_request(f"mode: wanted cancel, found {mode!r:.50}: a stop is POST /jobs/:jobid/stop")
        self.may_order()
        await self._orders.cancel(await self._desk.job_id(job_id))
        return answer({}, HTTPStatus.ACCEPTED)

    async def take_checkpoint(self, request: Request, job_id: str) -> Any:
        return await self._ordered(self._orders.checkpoint, request, job_id)

    async def checkpoint_outcome(self, request: Request, job_id: str, trigger: str) -> Json:
        return await self._orders.outcome("checkpoint", trigger, await self._desk.job_id(job_id))

    async def savepoint(self, request: Request, job_id: str) -> Any:
        return await self._ordered(self._orders.savepoint, request, job_id)

    async def stop(self, request: Request, job_id: str) -> Any:
        return await self._ordered(self._orders.stop, request, job_id)

    async def restart(self, request: Request, job_id: str) -> Any:
        return await self._ordered(self._orders.restart, request, job_id)

    async def restart_outcome(self, request: Request, job_id: str, trigger: str) -> Json:
        return await self._orders.outcome("restart", trigger, await self._desk.job_id(job_id))

    async def savepoint_outcome(self, request: Request, job_id: str, trigger: str) -> Json:
        return await self._orders.outcome("savepoint", trigger, await self._desk.job_id(job_id))

    async def dispose(self, request: Request) -> Any:
        self.may_order()
        return _accepted(await self._orders.dispose(await request.json()))

    async def disposal_outcome(self, request: Request, trigger: str) -> Json:
        return await self._orders.outcome("disposal", trigger)

    # -- inside

    async def _ordered(self, order: Callable[[JobId, Json], Awaitable[str]], request: Request, job_id: str) -> Any:
        """What is ordered of a job takes its time: the answer is the order's id."""
        self.may_order()
        wanted = await request.json()
        return _accepted(await order(await self._desk.job_id(job_id), wanted))

    def may_order(self) -> None:
        if self._read_only:
            raise HttpError(HTTPStatus.FORBIDDEN, "this app shows jobs and takes no orders: it was made with read_only")

    # -- all of it

    def routes(self) -> list[Route]:
        job, vertex = "/jobs/:jobid", "/jobs/:jobid/vertices/:vertexid"
        subtask, checkpoint = f"{vertex}/subtasks/:subtaskindex", f"{job}/checkpoints/details/:checkpointid"
        metrics = ("get",)
        gets: dict[str, tuple[Any, ...]] = {
            "/config": (self.config, "Settings of the dashboard"),
            "/overview": (self.overview, "The cluster: TaskManagers, slots and jobs"),
            "/jobs": (self.jobs, "The jobs and their states"),
            "/jobs/overview": (self.jobs_overview, "The jobs, with times and tasks"),
            "/jobs/metrics": (self.jobs_metrics, "Metrics over several jobs", "jobs", "get", "agg"),
            job: (self.job, "One job with its vertices"),
            f"{job}/plan": (self.plan, "Its graph"),
            f"{job}/config": (self.job_config, "Its settings"),
            f"{job}/status": (self.job_status, "Its state"),
            f"{job}/execution-result": (self.execution_result, "How it ended"),
            f"{job}/exceptions": (self.exceptions, "What has failed, newest first", "maxExceptions"),
            f"{job}/accumulators": (self.job_accumulators, "Always empty: there are metrics"),
            f"{job}/metrics": (self.job_metrics, "Metrics of the job as a whole", *metrics),
            f"{job}/resource-requirements": (self.resource_requirements, "The parallelism of each vertex"),
            f"{job}/checkpoints": (self.checkpoints, "Statistics of its checkpoints"),
            f"{job}/checkpoints/config": (self.checkpoint_config, "When it takes checkpoints"),
            checkpoint: (self.checkpoint, "One checkpoint, vertex by vertex"),
            f"{checkpoint}/subtasks/:vertexid": (self.checkpoint_subtasks, "One checkpoint, subtask by subtask"),
            f"{job}/checkpoints/:triggerid": (self.checkpoint_outcome, "What became of a checkpoint"),
            f"{job}/restart/:triggerid": (self.restart_outcome, "What became of a restart: the id of the new job"),
            f"{job}/savepoints/:triggerid": (self.savepoint_outcome, "What became of a savepoint, or of a stop"),
            vertex: (self.vertex, "One vertex with its subtasks"),
            f"{vertex}/subtasktimes": (self.subtask_times, "When its subtasks reached their states"),
            f"{vertex}/taskmanagers": (self.vertex_task_managers, "Its subtasks, by TaskManager"),
            f"{vertex}/watermarks": (self.watermarks, "Input watermarks"),
            f"{vertex}/accumulators": (self.vertex_accumulators, "Always empty"),
            f"{vertex}/backpressure": (self.back_pressure, "How much of their time its subtasks wait for outputs"),
            f"{vertex}/flamegraph": (self.flame_graph, "What its subtasks do, by samples", "type", "subtaskindex"),
            f"{vertex}/metrics": (self.vertex_metrics, "Metrics by subtask", *metrics),
            f"{vertex}/subtasks/accumulators": (self.subtask_accumulators, "Always empty"),
            f"{vertex}/subtasks/metrics": (self.all_subtask_metrics, "Metrics over subtasks", "get", "agg", "subtasks"),
            subtask: (self.subtask, "One subtask, by its current attempt"),
            f"{subtask}/metrics": (self.subtask_metrics, "Metrics of one subtask", *metrics),
            f"{subtask}/attempts/:attempt": (self.attempt, "One of its attempts"),
            f"{subtask}/attempts/:attempt/accumulators": (self.attempt_accumulators, "Always empty"),
            "/savepoint-disposal/:triggerid": (self.disposal_outcome, "What became of a disposal"),
        }
        found = [Route("GET", path, handler, text, tuple(takes)) for path, (handler, text, *takes) in gets.items()]
        flinks = ("formatType", "triggerId")  # there is one format; what Flink's command line says of it is no mistake
        wanted, checkpoint_wanted = ("target-directory", "cancel-job", *flinks), ("checkpointType", "triggerId")
        restart_wanted = ("savepointPath", "allowNonRestoredState", "cancelJob", "triggerId")
        return [
            *found,
            Route("PATCH", job, self.cancel, "Cancel a job", ("mode",)),
            Route("POST", f"{job}/checkpoints", self.take_checkpoint, "Take a checkpoint", checkpoint_wanted),
            Route("POST", f"{job}/savepoints", self.savepoint, "Take a savepoint", wanted),
            Route("POST", f"{job}/restart", self.restart, "Start it again from a savepoint", restart_wanted),
            Route("POST", f"{job}/stop", self.stop, "Stop with a savepoint", ("targetDirectory", "drain", *flinks)),
            Route("POST", "/savepoint-disposal", self.dispose, "Dispose of a savepoint", ("savepoint-path",)),
        ]


def _accepted(trigger: str) -> Any:
    return answer({"request-id": trigger}, HTTPStatus.ACCEPTED)


def _ranges(text: str, parallelism: int) -> set[int] | None:
    """ "0,2-4" as a set. Raises HttpError."""
    if not text:
        return None
    found: set[int] = set()
    for part in text.split(",")[:parallelism]:
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise bad_request(f"subtasks: wanted as 0,2-4, found {text!r:.100}")
        found.update(range(int(first[:9]), min(int((last or first)[:9]), parallelism) + 1))
    return found
