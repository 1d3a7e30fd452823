"""MetricReporters: who gets a cluster's figures by itself, by configuration: Prometheus, OpenTelemetry.

    metrics.reporter.prom.port         9249; 0: any that is free
    metrics.reporter.prom.host         127.0.0.1
    metrics.reporter.otel.endpoint     http://localhost:4318
    metrics.reporter.otel.interval_ms  10000

Neither runs unless its port, or its endpoint, is set. The names are Flink's where it has one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from ...actors.context import Ref
from ...messages import ClusterMetrics, RequestMetrics
from ..metrics.otlp import INTERVAL_MS, OtlpReporter, WatchedJob
from ..metrics.prometheus import PrometheusReporter
from ..system import ActorFuture
from .job_figures import ANSWER_SECONDS
from .job_future import JobFuture

log = logging.getLogger(__name__)

PROMETHEUS_PORT = "metrics.reporter.prom.port"
PROMETHEUS_HOST = "metrics.reporter.prom.host"
OTEL_ENDPOINT = "metrics.reporter.otel.endpoint"
OTEL_INTERVAL = "metrics.reporter.otel.interval_ms"
REPORTER_KEYS = (PROMETHEUS_PORT, PROMETHEUS_HOST, OTEL_ENDPOINT, OTEL_INTERVAL)
_LOOPBACK = "127.0.0.1"


def reporter_problem(settings: Mapping[str, str]) -> str | None:
    """What is wrong with these settings; None: nothing."""
    port, endpoint = settings.get(PROMETHEUS_PORT), settings.get(OTEL_ENDPOINT)
    interval = settings.get(OTEL_INTERVAL)
    if port is not None and not (port.isascii() and port.isdigit() and int(port) < 65_536):
        return f"{PROMETHEUS_PORT} must be a port from 0 to 65535, found {port!r}"
    if PROMETHEUS_HOST in settings and port is None:
        return f"{PROMETHEUS_HOST} is set, and {PROMETHEUS_PORT} is not: set that, or nothing is served"
    if endpoint is not None and (urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).netloc):
        return f"{OTEL_ENDPOINT} must be a URL such as http://localhost:4318, found {endpoint!r}"
    if interval is not None and endpoint is None:
        return f"{OTEL_INTERVAL} is set, and {OTEL_ENDPOINT} is not: set that, or nothing is sent"
    if interval is not None and not (interval.isascii() and interval.isdigit() and int(interval)):
        return f"{OTEL_INTERVAL} must be a whole number of milliseconds, at least 1, found {interval!r}"
    return None


def asked_for_metrics(job_manager: Ref, timeout: float = ANSWER_SECONDS) -> ClusterMetrics:
    """All figures, as of the last heartbeats. Blocks."""
    answer = cast("ActorFuture[Any]", job_manager.ask(RequestMetrics()))
    found: ClusterMetrics = JobFuture(answer, "the metrics of the cluster").result(timeout=timeout)
    return found


class MetricReporters:
    """Of one cluster, from its start to `close`. Raises MissingExtra, and OSError for a port that is taken."""

    def __init__(self, settings: Mapping[str, str], snapshot: Callable[[], ClusterMetrics]) -> None:
        self.prometheus: PrometheusReporter | None = None
        self._otlp: OtlpReporter | None = None
        port, endpoint = settings.get(PROMETHEUS_PORT), settings.get(OTEL_ENDPOINT)
        if port is not None:
            self.prometheus = PrometheusReporter(snapshot, int(port), settings.get(PROMETHEUS_HOST, _LOOPBACK))
            log.info("metrics for Prometheus: %s", self.prometheus.url)
        if endpoint is not None:
            try:
                self._otlp = OtlpReporter(snapshot, endpoint, float(settings.get(OTEL_INTERVAL, INTERVAL_MS)))
            except BaseException:
                self.close()
                raise

    @property
    def prometheus_url(self) -> str | None:
        return None if self.prometheus is None else self.prometheus.url

    def watch(self, job: WatchedJob) -> None:
        """It has been submitted."""
        if self._otlp is not None:
            self._otlp.watch(job)

    def close(self) -> None:
        if self.prometheus is not None:
            self.prometheus.close()
        if self._otlp is not None:
            self._otlp.close()
