"""Processes: the endpoints of Flink's REST (v1) that are about TaskManagers and the JobManager, not about a job."""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any

from ...messages import JobLogs, RequestLogs, RequestThreadDump, TaskManagerId, ThreadDump
from . import flink_metrics, page_view
from .errors import not_found
from .http import Request, Response
from .jobs import Desk
from .routes import Route, listed_in

LOG_NAME = "taskmanager.log"
Json = dict[str, Any]


class Processes:
    """Those of one app."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # -- the JobManager

    async def config(self, request: Request, *_: str) -> list[Json]:
        return [{"key": "understudy.pid", "value": str(os.getpid())}]

    async def environment(self, request: Request, *_: str) -> Json:
        runtime = {"version": platform.python_version(), "arch": platform.machine(), "options": sys.flags.__repr__()}
        return {"jvm": runtime, "classpath": sys.path}

    async def metrics(self, request: Request) -> list[Json]:
        found = await self._desk.summaries()
        workers = flink_metrics.task_managers(await self._desk.running())
        values = {
            "numRegisteredTaskManagers": len(workers),
            "numRunningJobs": sum(not each.status.is_terminal for each in found),
            "taskSlotsTotal": sum(each["slotsNumber"] for each in workers),
            "taskSlotsAvailable": sum(each["freeSlots"] for each in workers),
        }
        return flink_metrics.listed(values, listed_in(request, "get"))

    async def logs(self, request: Request) -> Json:
        return {"logs": []}

    async def threads(self, request: Request) -> Json:
        return _threads(await self._desk.ask(RequestThreadDump()))

    # -- TaskManagers

    async def workers(self, request: Request) -> Json:
        return {"taskmanagers": flink_metrics.task_managers(await self._desk.running())}

    async def worker(self, request: Request, task_manager_id: str) -> Json:
        return await self._found(task_manager_id) | {"metrics": {}, "allocatedSlots": []}

    async def worker_metrics(self, request: Request, task_manager_id: str) -> list[Json]:
        await self._found(task_manager_id)
        return flink_metrics.listed((await self._figures()).get(task_manager_id, {}), listed_in(request, "get"))

    async def all_worker_metrics(self, request: Request) -> list[Json]:
        wanted = listed_in(request, "taskmanagers")
        rows = [values for each, values in (await self._figures()).items() if not wanted or each in wanted]
        return flink_metrics.aggregated(rows, listed_in(request, "get"), listed_in(request, "agg"))

    async def worker_logs(self, request: Request, task_manager_id: str) -> Json:
        text = await self._log_of(task_manager_id)
        return {"logs": [{"name": LOG_NAME, "size": len(text), "mtime": time.time_ns() // 1_000_000}]}

    async def worker_log(self, request: Request, task_manager_id: str, name: str = LOG_NAME) -> Response:
        """What it has logged lately; there is no other file, whatever the name says."""
        if name != LOG_NAME:
            raise not_found(f"Log {name[:100]!r} not found: there is {LOG_NAME}")
        return Response(body=await self._log_of(task_manager_id), content_type="text/plain; charset=UTF-8")

    async def worker_threads(self, request: Request, task_manager_id: str) -> Json:
        await self._found(task_manager_id)
        return _threads(await self._desk.ask(RequestThreadDump(TaskManagerId(task_manager_id))))

    # -- inside

    async def _found(self, task_manager_id: str) -> Json:
        for each in flink_metrics.task_managers(await self._desk.running()):
            if each["id"] == task_manager_id:
                return each
        raise not_found(f"TaskManager {task_manager_id[:100]!r} not found: it has ended, or was never there")

    async def _figures(self) -> dict[str, dict[str, float]]:
        found = await self._desk.cluster_metrics()
        return {each.task_manager_id: each.values for each in found.task_managers} if found is not None else {}

    async def _log_of(self, task_manager_id: str) -> bytes:
        for view in await self._desk.running():
            if any(each.task_manager_id == task_manager_id for each in view.task_managers):
                logs: JobLogs = await self._desk.ask(RequestLogs(view.graph.job_id))
                lines = [row for row in page_view.logs(logs) if row["tm"] == task_manager_id]
                return "".join(page_view.log_line(row) for row in lines).encode("utf-8", "replace")
        raise not_found(f"TaskManager {task_manager_id[:100]!r} not found: it has ended, or was never there")

    def routes(self) -> list[Route]:
        one, metrics = "/taskmanagers/:taskmanagerid", ("get",)
        gets: dict[str, tuple[Any, ...]] = {
            "/taskmanagers": (self.workers, "The TaskManagers of all jobs"),
            "/taskmanagers/metrics": (
                self.all_worker_metrics,
                "Metrics over TaskManagers",
                "get",
                "agg",
                "taskmanagers",
            ),
            one: (self.worker, "One TaskManager"),
            f"{one}/logs": (self.worker_logs, "Its logs: one"),
            f"{one}/logs/:filename": (self.worker_log, "What it has logged lately"),
            f"{one}/log": (self.worker_log, "What it has logged lately"),
            f"{one}/metrics": (self.worker_metrics, "Metrics of its process", *metrics),
            f"{one}/thread-dump": (self.worker_threads, "What each of its threads does now"),
            "/jobmanager/config": (self.config, "Settings of the JobManager"),
            "/jobmanager/environment": (self.environment, "The process that serves this"),
            "/jobmanager/metrics": (self.metrics, "Metrics of the JobManager", *metrics),
            "/jobmanager/logs": (self.logs, "Always empty: its log is that of its process"),
            "/jobmanager/thread-dump": (self.threads, "What each thread of the JobManager does now"),
            "/jobs/:jobid/jobmanager/config": (self.config, "Settings of the JobManager"),
            "/jobs/:jobid/jobmanager/environment": (self.environment, "The process that serves this"),
        }
        return [Route("GET", path, handler, text, tuple(takes)) for path, (handler, text, *takes) in gets.items()]


def _threads(dump: ThreadDump) -> Json:
    """Flink: ThreadDumpInfo."""
    return {
        "threadInfos": [
            {"threadName": each.name, "stringifiedThreadInfo": f'"{each.name}"\n{each.stack}'} for each in dump.threads
        ]
    }
