"""Prometheus scrapes a cluster, and OTLP reaches a collector: over real HTTP, read back by their own parsers."""

from __future__ import annotations

import gzip
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from understudy import JobFailed, KeyedOperator, LocalCluster, MissingExtra, StreamEnvironment, fixed_delay
from understudy.messages import (
    ClusterMetrics,
    ExecutionAttemptId,
    JobId,
    JobMetrics,
    JobStatus,
    SubtaskIndex,
    SubtaskMetrics,
    TaskManagerId,
    TaskManagerMetrics,
    VertexId,
    VertexMetrics,
)
from understudy.runtime.clusters.configuration import Configuration, InvalidConfiguration
from understudy.runtime.metrics import otlp, process_figures
from understudy.runtime.metrics.prometheus import PrometheusReporter, exposition
from understudy.runtime.metrics.samples import samples_of

JOB, TM = JobId("job-1"), TaskManagerId("tm-1")
SUBTASK = SubtaskMetrics(
    SubtaskIndex(0),
    ExecutionAttemptId("a"),
    0,
    TM,
    "running",
    {"numRecordsIn": 7.0, "a.b.late": 2.0, "a.late": 3.0, "a.la-te": 4.0},
)
VERTEX = VertexMetrics(VertexId("v"), 'say "hi"', 1, ("a", "a.b"), {"numRecordsIn": 7.0}, (SUBTASK,), {})
RUNNING = JobMetrics(JOB, "orders", JobStatus.RUNNING, 5, {"numRestarts": 1.0}, (VERTEX,))
ENDED = JobMetrics(JobId("job-0"), "orders", JobStatus.FINISHED, 5, {"numRestarts": 9.0}, ())
TASK_MANAGER = TaskManagerMetrics(TM, JOB, 0, "here", 1, 1, 0, {"Status.Process.CPU.Load": 0.5})
SNAPSHOT = ClusterMetrics(5, {"numRunningJobs": 1.0}, (ENDED, RUNNING), (TASK_MANAGER,))


class Failing(KeyedOperator):
    def process(self, record: int, out: Any) -> None:
        if record == 5:
            raise ValueError("five is too many")
        out.collect(record)


class Collector:
    """A small collector: what has come, decoded."""

    def __init__(self) -> None:
        self.metrics: list[Any] = []
        self.spans: list[Any] = []
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                own.take(self.path, body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.has_metrics = threading.Event()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics.extend(metric for scope in resource.scope_metrics for metric in scope.metrics)
            self.has_metrics.set()
        elif path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans.extend(span for scope in resource.scope_spans for span in scope.spans)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def scraped(url: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    with urllib.request.urlopen(url) as response:
        text = response.read().decode()
    families = text_string_to_metric_families(text)
    return {each.name: [(sample.labels, sample.value) for sample in each.samples] for each in families}


def test_samples_have_the_operator_apart_and_leave_out_jobs_that_have_ended() -> None:
    of_operators = [(each.name, each.labels["operator"]) for each in samples_of(SNAPSHOT) if each.scope == "operator"]
    assert of_operators == [("late", "a.b"), ("late", "a"), ("la-te", "a")]
    assert [each.value for each in samples_of(SNAPSHOT) if each.name == "numRestarts"] == [1.0]


def test_a_scrape_takes_a_new_snapshot_and_names_are_flinks() -> None:
    snapshots = iter([SNAPSHOT, ClusterMetrics(6, {"numRunningJobs": 0.0}, (), ())])
    reporter = PrometheusReporter(lambda: next(snapshots), port=0)
    try:
        found = scraped(reporter.url)
        labels = {"job": "orders", "job_id": "job-1", "vertex": 'say "hi"', "subtask": "0"}
        assert found["understudy_task_numRecordsIn"] == [(labels, 7.0)]
        assert found["understudy_operator_late"] == [
            (labels | {"operator": "a.b"}, 2.0),
            (labels | {"operator": "a"}, 3.0),
        ]
        assert found["understudy_operator_la_te"] == [(labels | {"operator": "a"}, 4.0)]
        assert found["understudy_job_numRestarts"] == [({"job": "orders", "job_id": "job-1"}, 1.0)]
        on_tm = {"job_id": "job-1", "task_manager": "tm-1", "host": "here"}
        assert found["understudy_taskmanager_Status_Process_CPU_Load"] == [(on_tm, 0.5)]
        assert found["understudy_jobmanager_numRunningJobs"] == [({}, 1.0)]
        assert scraped(reporter.url)["understudy_jobmanager_numRunningJobs"] == [({}, 0.0)]
    finally:
        reporter.close()
    assert b"understudy_jobmanager_numRunningJobs 1.0" in exposition(SNAPSHOT)


def test_of_names_that_are_one_for_prometheus_the_first_counts() -> None:
    """It takes no scrape that has the same series twice."""
    text = exposition(ClusterMetrics(5, {"a-b": 1.0, "a_b": 2.0, "c": 3.0}, (), ())).decode()
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert samples == ["understudy_jobmanager_a_b 1.0", "understudy_jobmanager_c 3.0"]


def test_the_load_of_a_process_is_that_since_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    at_s, used_s = 10.0, 1.0
    clocks = SimpleNamespace(monotonic=lambda: at_s, process_time=lambda: used_s)
    monkeypatch.setattr(process_figures, "time", clocks)
    figures, loads = process_figures.ProcessFigures(), []
    for passed_s, more_s in ((2.0, 1.0), (4.0, 0.0), (0.0, 0.0), (1.0, 1.0)):
        at_s, used_s = at_s + passed_s, used_s + more_s
        loads.append(figures()["Status.Process.CPU.Load"])
    assert loads == [0.5, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"metrics.reporter.prom.port": "http"}, "must be a port from 0 to 65535, found 'http'"),
        ({"metrics.reporter.prom.port": "70000"}, "must be a port from 0 to 65535, found '70000'"),
        ({"metrics.reporter.prom.host": "0.0.0.0"}, "metrics.reporter.prom.port is not: set that"),
        ({"metrics.reporter.otel.endpoint": "localhost:4318"}, "must be a URL such as http://localhost:4318"),
        ({"metrics.reporter.otel.interval_ms": "5"}, "metrics.reporter.otel.endpoint is not: set that"),
    ],
)
def test_settings_that_cannot_be_say_what_is_wanted(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidConfiguration, match=problem):
        Configuration.of(settings)


def test_without_the_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None: ...

    monkeypatch.setattr(otlp, "find_spec", nothing)
    with pytest.raises(MissingExtra, match=r'the OTLP reporter needs .*: pip install "understudy\[otlp\]"'):
        otlp.OtlpReporter(lambda: SNAPSHOT, "http://localhost:4318")


@pytest.mark.processes
@pytest.mark.usefixtures("forked_templates")
def test_a_cluster_is_scraped_and_sends_spans_with_causes(collector: Collector) -> None:
    """A job that fails twice on a record: restarts with their cause, checkpoints, and its own span."""
    config = {
        "metrics.reporter.prom.port": "0",
        "metrics.reporter.otel.endpoint": collector.endpoint,
        "metrics.reporter.otel.interval_ms": "100",
    }
    env = StreamEnvironment(checkpoint_interval_ms=50, restart_strategy=fixed_delay(attempts=1, delay_ms=0))
    numbers = env.generate(lambda index: index, records_per_second=10, name="numbers")
    numbers.key_by(lambda number: number % 2).process(Failing, name="failing").print()
    with LocalCluster(config=config) as cluster:
        job = cluster.submit(env, "orders")
        job.ready().result(timeout=100)
        assert cluster.prometheus_url is not None
        found = scraped(cluster.prometheus_url)
        assert {labels["job"] for labels, _ in found["understudy_job_numRestarts"]} == {"orders"}
        with pytest.raises(JobFailed):
            job.wait(timeout=100)
        assert collector.has_metrics.wait(timeout=100)
    assert {"understudy.jobmanager.numRunningJobs", "understudy.job.numRestarts"} <= {
        each.name for each in collector.metrics
    }
    named = {span.name: span for span in collector.spans}
    assert {"Job", "Restart", "Checkpoint"} <= set(named)
    job_span, restart = named["Job"], named["Restart"]
    assert job_span.status.message.startswith("ValueError: five is too many (in operator 'failing'")
    (cause, *_) = restart.events
    attributes = {each.key: each.value.string_value for each in cause.attributes}
    assert (attributes["exception.type"], attributes["understudy.operator.name"]) == ("ValueError", "failing")
    assert [link.span_id for link in restart.links] == [job_span.span_id]
    assert restart.trace_id != job_span.trace_id
    assert job_span.start_time_unix_nano < restart.start_time_unix_nano < restart.end_time_unix_nano
