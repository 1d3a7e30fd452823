"""Rest: Flink's REST (v1), endpoint by endpoint, as its command line and dashboard call it. With `/v1` in front or not.

Each handler asks the Desk and hands the answer to a pure function (`flink_*`), which makes the JSON.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from http import HTTPStatus
from typing import Any

from ...messages import (
    JobLogs,
    JobMetrics,
    JobView,
    RequestBackPressure,
    RequestFlameGraph,
    RequestLogs,
    RequestMetrics,
    SubtaskIndex,
    VertexBackPressureReport,
)
from . import flink_checkpoints, flink_jobs, flink_metrics, page_view
from .errors import HttpError, JobManagerAway, bad_request, not_found
from .http import Request, Response, answer
from .jobs import Desk, flink_id
from .orders import Orders
from .routes import Route

VERSION = "2.3.0"
"""Flink's, whose API this is: its command line compares."""
LOG_NAME = "taskmanager.log"
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
        workers = flink_metrics.task_managers(await self._running())
        return flink_metrics.overview(await self._desk.summaries(), workers, VERSION)

    async def jobs(self, request: Request) -> Json:
        found = await self._desk.summaries()
        return {"jobs": [{"id": flink_id(each.job_id), "status": each.status.value.upper()} for each in found]}

    async def jobs_overview(self, request: Request) -> Json:
        now_ms = time.time_ns() // 1_000_000
        return {"jobs": [flink_jobs.summary(each, now_ms) for each in await self._desk.summaries()]}

    async def jobs_metrics(self, request: Request) -> list[Json]:
        wanted = _listed(request, "jobs")
        found = await self._desk.summaries()
        views = [await self._desk.view(each.job_id) for each in found if not wanted or flink_id(each.job_id) in wanted]
        rows = [flink_metrics.of_job(view, await self.metrics_of(view)) for view in views]
        return flink_metrics.aggregated(rows, _listed(request, "get"), _listed(request, "agg"))

    async def nothing_listed(self, request: Request, *_: str) -> Json:
        return {"logs": []}

    async def job_manager_config(self, request: Request, *_: str) -> list[Json]:
        return [{"key": "understudy.pid", "value": str(os.getpid())}]

    async def job_manager_environment(self, request: Request, *_: str) -> Json:
        runtime = {"version": platform.python_version(), "arch": platform.machine(), "options": sys.flags.__repr__()}
        return {"jvm": runtime, "classpath": sys.path}

    async def job_manager_metrics(self, request: Request) -> list[Json]:
        found = await self._desk.summaries()
        workers = flink_metrics.task_managers(await self._running())
        values = {
            "numRegisteredTaskManagers": len(workers),
            "numRunningJobs": sum(not each.status.is_terminal for each in found),
            "taskSlotsTotal": sum(each["slotsNumber"] for each in workers),
            "taskSlotsAvailable": sum(each["freeSlots"] for each in workers),
        }
        return flink_metrics.listed(values, _listed(request, "get"))

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
        return flink_metrics.listed(flink_metrics.of_job(view, await self.metrics_of(view)), _listed(request, "get"))

    async def job_status(self, request: Request, job_id: str) -> Json:
        view = await self._desk.view(job_id)
        return {"status": view.summary.status.value.upper()}

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

    async def vertex_metrics(self, request: Request, job_id: str, vertex_id: str) -> list[Json]:
        view = await self._desk.view(job_id)
        vertex = flink_jobs.vertex_of(view, vertex_id)
        found = flink_metrics.of_subtasks(view, vertex, await self.metrics_of(view))
        return flink_metrics.of_vertex(found, _listed(request, "get"))

    async def subtask_metrics(self, request: Request, job_id: str, vertex_id: str, index: str) -> list[Json]:
        view = await self._desk.view(job_id)
        vertex = flink_jobs.vertex_of(view, vertex_id)
        each = flink_jobs.subtask_of(view, vertex, index)
        found = flink_metrics.of_subtasks(view, vertex, await self.metrics_of(view))
        return flink_metrics.listed(found.get(each.subtask_index, {}), _listed(request, "get"))

    async def all_subtask_metrics(self, request: Request, job_id: str, vertex_id: str) -> list[Json]:
        view = await self._desk.view(job_id)
        vertex = flink_jobs.vertex_of(view, vertex_id)
        found = flink_metrics.of_subtasks(view, vertex, await self.metrics_of(view))
        wanted = _ranges(request.first("subtasks"), vertex.parallelism)
        rows = [values for index, values in found.items() if wanted is None or index in wanted]
        return flink_metrics.aggregated(rows, _listed(request, "get"), _listed(request, "agg"))

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

    # -- TaskManagers

    async def task_managers(self, request: Request) -> Json:
        return {"taskmanagers": flink_metrics.task_managers(await self._running())}

    async def task_manager(self, request: Request, task_manager_id: str) -> Json:
        for each in flink_metrics.task_managers(await self._running()):
            if each["id"] == task_manager_id:
                return each | {"metrics": {}, "allocatedSlots": []}
        raise not_found(f"TaskManager {task_manager_id[:100]!r} not found")

    async def task_manager_metrics(self, request: Request, task_manager_id: str) -> list[Json]:
        await self.task_manager(request, task_manager_id)
        found = await self._cluster_metrics(None)
        values = {each.task_manager_id: each.values for each in found.task_managers} if found is not None else {}
        return flink_metrics.listed(values.get(task_manager_id, {}), _listed(request, "get"))

    async def task_manager_logs(self, request: Request, task_manager_id: str) -> Json:
        text = await self._log_of(task_manager_id)
        return {"logs": [{"name": LOG_NAME, "size": len(text), "mtime": time.time_ns() // 1_000_000}]}

    async def task_manager_log(self, request: Request, task_manager_id: str, name: str = LOG_NAME) -> Response:
        """What it has logged lately; there is no other file, whatever the name says."""
        if name != LOG_NAME:
            raise not_found(f"Log {name[:100]!r} not found: there is {LOG_NAME}")
        return Response(body=await self._log_of(task_manager_id), content_type="text/plain; charset=UTF-8")

    async def _log_of(self, task_manager_id: str) -> bytes:
        for view in await self._running():
            if any(each.task_manager_id == task_manager_id for each in view.task_managers):
                logs: JobLogs = await self._desk.ask(RequestLogs(view.graph.job_id))
                lines = [row for row in page_view.logs(logs) if row["tm"] == task_manager_id]
                return "".join(page_view.log_line(row) for row in lines).encode("utf-8", "replace")
        raise not_found(f"TaskManager {task_manager_id[:100]!r} not found")

    # -- orders

    async def cancel(self, request: Request, job_id: str) -> Any:
        mode = request.first("mode", "cancel")
        if mode != "cancel":
            raise bad_request(f"mode: wanted cancel, found {mode!r:.50}: a stop is POST /jobs/:jobid/stop")
        self.may_order()
        await self._orders.cancel(await self._desk.job_id(job_id))
        return answer({}, HTTPStatus.ACCEPTED)

    async def savepoint(self, request: Request, job_id: str) -> Any:
        self.may_order()
        wanted = await request.json()
        return _accepted(await self._orders.savepoint(await self._desk.job_id(job_id), wanted))

    async def stop(self, request: Request, job_id: str) -> Any:
        self.may_order()
        wanted = await request.json()
        return _accepted(await self._orders.stop(await self._desk.job_id(job_id), wanted))

    async def savepoint_outcome(self, request: Request, job_id: str, trigger: str) -> Json:
        return await self._orders.outcome("savepoint", trigger, await self._desk.job_id(job_id))

    async def dispose(self, request: Request) -> Any:
        self.may_order()
        return _accepted(await self._orders.dispose(await request.json()))

    async def disposal_outcome(self, request: Request, trigger: str) -> Json:
        return await self._orders.outcome("disposal", trigger)

    # -- inside

    def may_order(self) -> None:
        if self._read_only:
            raise HttpError(HTTPStatus.FORBIDDEN, "this app shows jobs and takes no orders: it was made with read_only")

    async def _running(self) -> list[JobView]:
        found = [each for each in await self._desk.summaries() if not each.status.is_terminal]
        return [await self._desk.view(each.job_id) for each in found]

    async def metrics_of(self, view: JobView) -> JobMetrics | None:
        found = await self._cluster_metrics(view)
        return next((each for each in found.jobs if each.job_id == view.graph.job_id), None) if found else None

    async def _cluster_metrics(self, view: JobView | None) -> Any:
        """None where there are none: of a job of the history."""
        if not self._desk.is_live:
            return None
        try:
            return await self._desk.ask(RequestMetrics(None if view is None else view.graph.job_id))
        except JobManagerAway:
            raise
        except HttpError:
            return None

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
            f"{job}/exceptions": (self.exceptions, "What has failed, newest first", "maxExceptions"),
            f"{job}/accumulators": (self.job_accumulators, "Always empty: there are metrics"),
            f"{job}/metrics": (self.job_metrics, "Metrics of the job as a whole", *metrics),
            f"{job}/resource-requirements": (self.resource_requirements, "The parallelism of each vertex"),
            f"{job}/checkpoints": (self.checkpoints, "Statistics of its checkpoints"),
            f"{job}/checkpoints/config": (self.checkpoint_config, "When it takes checkpoints"),
            checkpoint: (self.checkpoint, "One checkpoint, vertex by vertex"),
            f"{checkpoint}/subtasks/:vertexid": (self.checkpoint_subtasks, "One checkpoint, subtask by subtask"),
            f"{job}/savepoints/:triggerid": (self.savepoint_outcome, "What became of a savepoint, or of a stop"),
            f"{job}/jobmanager/config": (self.job_manager_config, "Settings of the JobManager"),
            f"{job}/jobmanager/environment": (self.job_manager_environment, "Its process"),
            vertex: (self.vertex, "One vertex with its subtasks"),
            f"{vertex}/subtasktimes": (self.subtask_times, "When its subtasks reached their states"),
            f"{vertex}/taskmanagers": (self.vertex_task_managers, "The same by TaskManager"),
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
            "/taskmanagers": (self.task_managers, "The TaskManagers of all jobs"),
            "/taskmanagers/:taskmanagerid": (self.task_manager, "One TaskManager"),
            "/taskmanagers/:taskmanagerid/logs": (self.task_manager_logs, "Its logs: one"),
            "/taskmanagers/:taskmanagerid/logs/:filename": (self.task_manager_log, "What it has logged lately"),
            "/taskmanagers/:taskmanagerid/log": (self.task_manager_log, "The same"),
            "/taskmanagers/:taskmanagerid/metrics": (self.task_manager_metrics, "Metrics of its process", *metrics),
            "/jobmanager/config": (self.job_manager_config, "Settings of the JobManager"),
            "/jobmanager/environment": (self.job_manager_environment, "Its process"),
            "/jobmanager/metrics": (self.job_manager_metrics, "Metrics of the JobManager", *metrics),
            "/jobmanager/logs": (self.nothing_listed, "Always empty: its log is that of its process"),
            "/savepoint-disposal/:triggerid": (self.disposal_outcome, "What became of a disposal"),
        }
        found = [Route("GET", path, handler, text, tuple(takes)) for path, (handler, text, *takes) in gets.items()]
        wanted = ("target-directory", "cancel-job", "triggerId")
        return [
            *found,
            Route("PATCH", job, self.cancel, "Cancel a job", ("mode",)),
            Route("POST", f"{job}/savepoints", self.savepoint, "Take a savepoint", wanted),
            Route("POST", f"{job}/stop", self.stop, "Stop with a savepoint", ("targetDirectory", "drain", "triggerId")),
            Route("POST", "/savepoint-disposal", self.dispose, "Dispose of a savepoint", ("savepoint-path",)),
        ]


def _accepted(trigger: str) -> Any:
    return answer({"request-id": trigger}, HTTPStatus.ACCEPTED)


def _listed(request: Request, name: str) -> list[str]:
    """a,b,c; and `name=` as often as wanted."""
    return [part for given in request.query.get(name, []) for part in given.split(",") if part]


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
