"""OtlpReporter: a cluster's figures, and spans of its jobs, sent to an OpenTelemetry collector by OTLP over HTTP.

    with LocalCluster(config={"metrics.reporter.otel.endpoint": "http://localhost:4318"}) as cluster: ...

Figures go every `interval_ms`, as gauges `understudy.task.numRecordsIn` with Flink's names. Each checkpoint, savepoint
and restart is a trace of its own, linked to the span of its job, which ends with the job: traces that last for months
are of no use to anybody. A collector that is not there costs a warning of the SDK's and what could not be sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from ...messages import CheckpointHistory, ClusterMetrics, JobId
from ...messages.failures import raised
from ..connectors.errors import MissingExtra, require
from .job_spans import JobSpan, JobSpans
from .samples import samples_of

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData

log = logging.getLogger(__name__)

INTERVAL_MS = 10_000
_EXTRA = "otlp"
_BY = "the OTLP reporter"
_SCOPE = "understudy"


class WatchedJob(Protocol):
    """What is needed of a job's handle."""

    @property
    def job_id(self) -> JobId: ...

    @property
    def name(self) -> str: ...

    def on_event(self, callback: Callable[[Any], None]) -> None: ...

    def checkpoint_history(self, timeout: float = ...) -> CheckpointHistory: ...


class OtlpReporter:
    """From its making to `close`, which sends what is left. Raises MissingExtra."""

    def __init__(self, snapshot: Callable[[], ClusterMetrics], endpoint: str, interval_ms: float = INTERVAL_MS) -> None:
        _check_installed()
        base = endpoint.rstrip("/")
        self._snapshot = snapshot
        self._interval_s = interval_ms / 1000
        self._resource = _sdk("resources").Resource.create({"service.name": "understudy"})
        self._metrics = _exporter("metric_exporter").OTLPMetricExporter(f"{base}/v1/metrics")
        self._tracers = _Tracers(f"{base}/v1/traces", self._resource)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="understudy-otlp", daemon=True)
        self._thread.start()

    def watch(self, job: WatchedJob) -> None:
        """Send spans of this job from now on."""
        self._tracers.watch(job)

    def close(self) -> None:
        """Idempotent."""
        if not self._closed.is_set():
            self._closed.set()
            self._thread.join()
            self._tracers.close()
            self._metrics.shutdown()

    def _run(self) -> None:
        while not self._closed.wait(self._interval_s):
            self._send()

    def _send(self) -> None:
        try:
            self._metrics.export(metrics_data(self._snapshot(), self._resource))
        except Exception as error:  # noqa: BLE001  (the thread goes on: the next snapshot may come through)
            log.warning("figures could not be sent by OTLP: %s: %s", type(error).__name__, error)


class _Tracers:
    """Spans of jobs. Events come on threads of the jobs' own."""

    def __init__(self, endpoint: str, resource: Any) -> None:
        self._api = require("opentelemetry.trace", extra=_EXTRA, wanted_by=_BY)
        self._provider = _sdk("trace").TracerProvider(resource=resource)
        exporter = _exporter("trace_exporter").OTLPSpanExporter(endpoint)
        self._provider.add_span_processor(_sdk("trace.export").BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(_SCOPE)
        self._lock = threading.Lock()
        self._jobs: dict[JobId, tuple[JobSpans, Any]] = {}
        """With the span of each, which is open."""

    def watch(self, job: WatchedJob) -> None:
        started_ms = round(time.time() * 1000)
        spans = JobSpans(job.job_id, job.name, started_ms, lambda: job.checkpoint_history(timeout=5.0))
        open_span = self._start("Job", started_ms, ())
        with self._lock:
            self._jobs[job.job_id] = spans, open_span
        job.on_event(lambda event: self._take(job.job_id, spans, event))

    def _take(self, job_id: JobId, spans: JobSpans, event: Any) -> None:
        found = spans.on(event)
        with self._lock:
            if job_id in self._jobs:
                self._record(job_id, found)

    def close(self) -> None:
        now_ms = round(time.time() * 1000)
        with self._lock:
            for job_id, (spans, _) in list(self._jobs.items()):
                self._record(job_id, spans.cut_off(now_ms))
        self._provider.shutdown()

    def _record(self, job_id: JobId, found: list[JobSpan]) -> None:
        _, of_job = self._jobs[job_id]
        for each in found:
            if each.name == "Job":
                del self._jobs[job_id]
                self._end(of_job, each)
            else:
                link = self._api.Link(of_job.get_span_context())
                self._end(self._start(each.name, each.start_ms, (link,)), each)

    def _start(self, name: str, start_ms: int, links: tuple[Any, ...]) -> Any:
        root = require("opentelemetry.context", extra=_EXTRA, wanted_by=_BY).Context()
        return self._tracer.start_span(name, context=root, links=links, start_time=start_ms * 1_000_000)

    def _end(self, span: Any, found: JobSpan) -> None:
        span.set_attributes(found.attributes)
        for at_ms, cause in found.causes:
            error = raised(cause)
            what = {"exception.type": error.error_type, "exception.message": error.error_message}
            if error.traceback:
                what["exception.stacktrace"] = error.traceback
            where = {"understudy.operator.name": cause.operator_name, "understudy.vertex.name": cause.vertex_name}
            span.add_event("exception", what | where, timestamp=at_ms * 1_000_000)
        code = self._api.StatusCode.ERROR if found.error else self._api.StatusCode.OK
        span.set_status(self._api.Status(code, found.error or None))
        span.end(end_time=found.end_ms * 1_000_000)


def metrics_data(metrics: ClusterMetrics, resource: Any) -> MetricsData:
    """A snapshot in the SDK's form."""
    export = _sdk("metrics.export")
    points: dict[str, list[Any]] = {}
    at_ns = metrics.timestamp_ms * 1_000_000
    for scope, name, labels, value in samples_of(metrics):
        named = points.setdefault(f"understudy.{scope}.{name}", [])
        named.append(export.NumberDataPoint(labels, 0, at_ns, value))
    made = [export.Metric(name, "", "", export.Gauge(named)) for name, named in points.items()]
    scope_of = _sdk("util.instrumentation").InstrumentationScope(_SCOPE)
    of_scope = export.ScopeMetrics(scope_of, made, "")
    data: MetricsData = export.MetricsData([export.ResourceMetrics(resource, [of_scope], "")])
    return data


def _check_installed() -> None:
    """The package of the API alone, which others bring along, is not enough."""
    try:
        found = find_spec("opentelemetry.exporter.otlp.proto.http") and find_spec("opentelemetry.sdk")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise MissingExtra("opentelemetry-exporter-otlp-proto-http", _EXTRA, _BY)


def _sdk(module: str) -> Any:
    return require(f"opentelemetry.sdk.{module}", extra=_EXTRA, wanted_by=_BY)


def _exporter(module: str) -> Any:
    return require(f"opentelemetry.exporter.otlp.proto.http.{module}", extra=_EXTRA, wanted_by=_BY)
