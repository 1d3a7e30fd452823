"""Endpoints of Flink's REST (v1) that are not served. Whoever asks gets 404, and the reason."""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import not_found
from .routes import Route

_JARS = "there are no jars: submit a program with `understudy run`, or cluster.submit(env) in Python"
_SCALE = "a running job keeps its parallelism: stop it with a savepoint, and start it from there with another one"
_PROFILER = "there is no profiler of processes: ask for /jobs/:jobid/vertices/:vertexid/flamegraph or a thread-dump"
_JOB_MANAGER = "the JobManager's log is that of its process: look where that writes"
_PRINTED = "what tasks print goes to the process that has submitted the job"
_URL = "there is no log elsewhere: ask for /taskmanagers/:taskmanagerid/log"
_DATASETS = "there are no cached data sets"
_COORDINATOR = "operators have no coordinators: POST /page/:jobid/ask asks an operator"
_APPLICATIONS = "there are no applications: ask for /jobs"

ABSENT: dict[tuple[str, str], str] = {
    ("GET", "/jars"): _JARS,
    ("POST", "/jars/upload"): _JARS,
    ("DELETE", "/jars/:jarid"): _JARS,
    ("GET", "/jars/:jarid/plan"): _JARS,
    ("POST", "/jars/:jarid/plan"): _JARS,
    ("POST", "/jars/:jarid/run"): _JARS,
    ("POST", "/jobs"): _JARS,
    ("GET", "/applications/overview"): _APPLICATIONS,
    ("GET", "/applications/:applicationid"): _APPLICATIONS,
    ("DELETE", "/cluster"): "a cluster is closed by who has started it: cluster.close(), or Ctrl-C",
    ("GET", "/datasets"): _DATASETS,
    ("DELETE", "/datasets/:datasetid"): _DATASETS,
    ("GET", "/datasets/delete/:triggerid"): _DATASETS,
    ("GET", "/jobmanager/log"): _JOB_MANAGER,
    ("GET", "/jobmanager/logs/:filename"): _JOB_MANAGER,
    ("GET", "/jobmanager/stdout"): _JOB_MANAGER,
    ("GET", "/jobmanager/profiler"): _PROFILER,
    ("POST", "/jobmanager/profiler"): _PROFILER,
    ("GET", "/jobmanager/profiler/:filename"): _PROFILER,
    ("GET", "/jobs/:jobid/jobmanager/log-url"): _JOB_MANAGER,
    ("GET", "/jobs/:jobid/taskmanagers/:taskmanagerid/log-url"): _URL,
    ("PATCH", "/jobs/:jobid/clientHeartbeat"): "a job does not end with its client unless its cluster does",
    ("POST", "/jobs/:jobid/coordinators/:operatorid"): _COORDINATOR,
    ("GET", "/jobs/:jobid/vertices/:vertexid/jm-operator-metrics"): _COORDINATOR,
    ("PUT", "/jobs/:jobid/resource-requirements"): _SCALE,
    ("PATCH", "/jobs/:jobid/rescaling"): _SCALE,
    ("GET", "/jobs/:jobid/rescaling/:triggerid"): _SCALE,
    ("GET", "/jobs/:jobid/rescales/overview"): _SCALE,
    ("GET", "/jobs/:jobid/rescales/history"): _SCALE,
    ("GET", "/jobs/:jobid/rescales/details/:rescaleid"): _SCALE,
    ("GET", "/jobs/:jobid/rescales/summary"): _SCALE,
    ("GET", "/jobs/:jobid/rescales/config"): _SCALE,
    ("GET", "/taskmanagers/:taskmanagerid/stdout"): _PRINTED,
    ("GET", "/taskmanagers/:taskmanagerid/profiler"): _PROFILER,
    ("POST", "/taskmanagers/:taskmanagerid/profiler"): _PROFILER,
    ("GET", "/taskmanagers/:taskmanagerid/profiler/:filename"): _PROFILER,
}


def absent_routes() -> list[Route]:
    """To stand behind those that are served."""
    return [_absent(method, path, why) for (method, path), why in ABSENT.items()]


def _absent(method: str, path: str, why: str) -> Route:
    async def refuse(*_: Any) -> NoReturn:
        raise not_found(f"{method} {path} is not served: {why}")

    return Route(method, path, refuse, why)
