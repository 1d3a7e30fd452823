"""Which subtasks a checkpoint still waits for, as a person knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...messages import VertexId
from ..job_graph import SubtaskKey
from .checkpoint_plan import VertexShape
from .pending_checkpoint import PendingCheckpoint

AWAITED_SHOWN = 3
"""How many are named."""


def awaited(pending: PendingCheckpoint) -> tuple[SubtaskKey, ...]:
    """Those that have not acknowledged, in the order of the job graph: what holds the others up stands before them."""
    return tuple(subtask for attempt_id, subtask in pending.attempts.items() if pending.is_waiting_for(attempt_id))


def names(subtasks: Sequence[SubtaskKey], shapes: Mapping[VertexId, VertexShape]) -> tuple[str, ...]:
    """The first ones, as "map -> sum [3]"."""
    shown = subtasks[:AWAITED_SHOWN]
    return tuple(f"{vertex_name(vertex_id, shapes)} [{index}]" for vertex_id, index in shown)


def awaited_in_words(shown: Sequence[str], number: int) -> str:
    """`shown`: what `names` has made of this number of subtasks."""
    more = f" and {number - len(shown)} more" if number > len(shown) else ""
    return ", ".join(shown) + more


def vertex_name(vertex_id: VertexId, shapes: Mapping[VertexId, VertexShape]) -> str:
    """Its operators; its id where they are not known."""
    shape = shapes.get(vertex_id)
    operators = shape.operators if shape is not None else ()
    return " -> ".join(operator.name for operator in operators) or vertex_id
