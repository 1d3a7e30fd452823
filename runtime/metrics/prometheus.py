"""Prometheus: a cluster's figures in its text format, and a small HTTP server for it in the JobManager's process.

    understudy_task_numRecordsIn{job="orders", job_id="job-…", vertex="count", subtask="0"} 1200.0

Each scrape asks for a new snapshot: nothing is kept between two. All are gauges, as Flink's reporter has it: a counter
of an attempt begins at 0 again with the next one, and `rate()` knows that. A name is Flink's or the user's, with `_`
for each character that Prometheus does not allow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...messages import ClusterMetrics
from ..connectors.errors import require
from .samples import samples_of
from .scrape_server import ScrapeServer

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_]")
_EXTRA = "prometheus"


class PrometheusReporter:
    """Serves `http://host:port/metrics` from `start` to `close`. Port 0: any that is free; `port` says which.

    Raises MissingExtra, and OSError for a port that is taken.
    """

    def __init__(self, snapshot: Callable[[], ClusterMetrics], port: int = 9249, host: str = "127.0.0.1") -> None:
        self._client = require("prometheus_client", extra=_EXTRA, wanted_by="the Prometheus reporter")
        self._registry = self._client.CollectorRegistry()
        self._registry.register(_Collector(snapshot))
        self._server = ScrapeServer(self._client.make_wsgi_app(self._registry), port, host)
        self.host = host
        self.port = self._server.port

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/metrics"

    def close(self) -> None:
        """Idempotent. A scrape that is under way ends first."""
        self._server.close()


def exposition(metrics: ClusterMetrics) -> bytes:
    """A snapshot in the text format, for whoever serves it. Raises MissingExtra."""
    client = require("prometheus_client", extra=_EXTRA, wanted_by="the text format of Prometheus")
    registry = client.CollectorRegistry()
    registry.register(_Collector(lambda: metrics))
    text: bytes = client.generate_latest(registry)
    return text


class _Collector:
    """As prometheus_client wants it: asked with each scrape."""

    def __init__(self, snapshot: Callable[[], ClusterMetrics]) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterator[Any]:
        """Nothing: or each registration would take a snapshot."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        from prometheus_client.core import GaugeMetricFamily

        families: dict[str, GaugeMetricFamily] = {}
        seen: set[tuple[str, tuple[str, ...]]] = set()
        for scope, name, labels, value in samples_of(self._snapshot()):
            full = f"understudy_{scope}_{_NOT_ALLOWED.sub('_', name)}"
            key = full, tuple(labels.values())
            if key in seen:  # of two names that differ only in what is not allowed, the first
                continue
            seen.add(key)
            family = families.get(full)
            if family is None:
                family = families[full] = GaugeMetricFamily(full, f"{name} of Understudy", labels=list(labels))
            family.add_metric(list(labels.values()), value)
        return iter(families.values())
