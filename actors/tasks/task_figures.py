"""Figures of a task's parts for its heartbeats: channels, state, and what its operators measure.

Read from the TaskManager's thread, while the task works: plain reads, and nothing that looks through state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...messages import OperatorFigures
from ..operators.operator import Operator
from .task_setup import TaskParts
from .task_state import TaskState


@dataclass(frozen=True, slots=True)
class ReadGauges:
    """TaskManager -> Task, in its own process: ask the functions of gauges, for the next heartbeat."""


def figures_of(parts: TaskParts) -> dict[str, Any]:
    """As fields of TaskMetrics."""
    inputs = [each.channel for each in parts.gate.channels]
    outputs = parts.outputs.channels
    return {
        "records_out": parts.outputs.records_out,
        "input_bytes": sum([each.bytes_passed for each in inputs]),
        "output_bytes": sum([each.bytes_passed for each in outputs]),
        "input_usage": max([each.usage for each in inputs], default=0.0),
        "output_usage": max([each.usage for each in outputs], default=0.0),
        "alignment_ms": parts.gate.alignment.last_ms,
        "operators": tuple(_operator(each, parts.state) for each in parts.chain.operators),
        "user": tuple(
            metric
            for each in parts.chain.operators
            for metric in each.context.metrics.reported(each.context.operator_id, each.context.name)
        ),
    }


def _operator(operator: Operator, state: TaskState) -> OperatorFigures:
    context, calls = operator.context, operator._calls
    snapshotted = state.sizes.get(context.operator_id)
    return OperatorFigures(
        operator_id=context.operator_id,
        operator=context.name,
        late_records=operator.late_records,
        in_flight=None if calls is None else calls.in_flight,
        state_entries=None if snapshotted is None else snapshotted.entries,
        state_size_bytes=None if snapshotted is None else snapshotted.size_bytes,
    )
