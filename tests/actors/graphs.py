"""Small JobGraphs for tests: `graph(vertex("a"), vertex("b"), edges=[("a", "b", Partitioning.HASH)])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from understudy.messages import (
    CheckpointConfig,
    JobEdge,
    JobGraph,
    JobId,
    JobVertex,
    OperatorDescription,
    OperatorId,
    Partitioning,
    RestartStrategyConfig,
    RestartStrategyKind,
    VertexId,
)


def operator(name: str, kind: str = "operator", **fields: Any) -> OperatorDescription:
    return OperatorDescription(OperatorId(f"op-{name}"), name, kind, **fields)


def vertex(name: str, parallelism: int = 1, kind: str = "operator", **fields: Any) -> JobVertex:
    settings: dict[str, Any] = {"max_parallelism": 128, "operators": (operator(name, kind),), **fields}
    return JobVertex(VertexId(name), name, parallelism, **settings)


def source(name: str, parallelism: int = 1, **fields: Any) -> JobVertex:
    return vertex(name, parallelism, "source", **fields)


def edge(source: str, target: str, partitioning: Partitioning = Partitioning.HASH, **fields: Any) -> JobEdge:
    return JobEdge(VertexId(source), VertexId(target), partitioning, **fields)


def graph(*vertices: JobVertex, edges: Sequence[JobEdge] = ()) -> JobGraph:
    return JobGraph(
        JobId("job"),
        "test job",
        vertices,
        tuple(edges),
        CheckpointConfig("memory://checkpoints"),
        RestartStrategyConfig(RestartStrategyKind.NONE),
    )
