"""JobFigures: a running job by figures: metrics, back-pressure, flame graphs. A part of the JobHandle."""

from __future__ import annotations

from typing import Literal

from ...messages import (
    ClusterMetrics,
    FlameGraph,
    JobGraph,
    JobMetrics,
    RequestBackPressure,
    RequestFlameGraph,
    RequestMetrics,
    SubtaskIndex,
    VertexBackPressureReport,
)
from ..api.errors import InvalidSetting
from .async_twin import Blocking, async_twin
from .job_client import JobClient
from .job_future import JobFuture

ANSWER_SECONDS = 30.0
SAMPLE_SECONDS = 60.0
"""Samples take five seconds."""
FlameKind = Literal["full", "on_cpu", "off_cpu"]
FLAME_KINDS: tuple[FlameKind, ...] = ("full", "on_cpu", "off_cpu")


class JobFigures(Blocking):
    """Base of the JobHandle."""

    _client: JobClient
    _graph: JobGraph

    def metrics(self, timeout: float = ANSWER_SECONDS) -> JobMetrics:
        """All figures of the job, its vertices and their subtasks, by name: as of the last heartbeats, with rates over
        the last seconds. `docs/metrics.md` lists the names.
        """
        answer = self._client.ask(RequestMetrics(self._graph.job_id))
        snapshot: ClusterMetrics = JobFuture(answer, f"the metrics of job {self._graph.name!r}").result(timeout=timeout)
        found: JobMetrics = snapshot.jobs[0]
        return found

    metrics_async = async_twin(metrics)

    def back_pressure(
        self, vertex: str, *, wait: bool = True, timeout: float = SAMPLE_SECONDS
    ) -> VertexBackPressureReport:
        """How often the tasks behind it hold a vertex back, subtask by subtask, by a hundred looks at each in five
        seconds. `vertex`: its name or id, or an operator's. Figures are good for a minute; with `wait=False` the last
        ones come at once, however old, and new samples are taken for whoever asks later. Raises NotRunning.
        """
        question = RequestBackPressure(self._graph.job_id, vertex, wait)
        answer = self._client.ask(question, timeout_ms=1000 * timeout)
        report: VertexBackPressureReport = JobFuture(answer, f"the back-pressure of {vertex!r}").result(timeout=timeout)
        return report

    back_pressure_async = async_twin(back_pressure)

    def flame_graph(
        self,
        vertex: str,
        *,
        subtask: int | None = None,
        kind: FlameKind = "full",
        wait: bool = True,
        timeout: float = SAMPLE_SECONDS,
    ) -> FlameGraph:
        """What runs in the tasks of a vertex, by the same samples: Python's frames as a tree. `kind`: "on_cpu" while
        they work, "off_cpu" while they wait, "full". Raises NotRunning, and InvalidSetting for another kind.
        """
        check_flame_kind(kind)
        index = SubtaskIndex(-1 if subtask is None else subtask)
        question = RequestFlameGraph(self._graph.job_id, vertex, index, kind, wait)
        answer = self._client.ask(question, timeout_ms=1000 * timeout)
        graph: FlameGraph = JobFuture(answer, f"the flame graph of {vertex!r}").result(timeout=timeout)
        return graph

    flame_graph_async = async_twin(flame_graph)


def check_flame_kind(kind: str) -> None:
    if kind not in FLAME_KINDS:
        raise InvalidSetting(f"flame_graph: kind must be one of {', '.join(map(repr, FLAME_KINDS))}, found {kind!r}")
