"""Operators of a job whose coroutines' results leave as they come: what follows may get them in any order."""

from __future__ import annotations

from collections.abc import Iterable

from ....actors.operators.keyed_operator import KeyedOperator
from ...api.stream_graph import StreamNode


def unordered_calls(nodes: Iterable[StreamNode]) -> list[str]:
    """Their names."""
    return [node.name for node in nodes if _is_unordered(node)]


def _is_unordered(node: StreamNode) -> bool:
    operator = node.operator
    if not getattr(operator, "_is_async", False):
        return False
    settings = operator.async_settings
    ordered = None if settings is None else settings.ordered
    return isinstance(operator, KeyedOperator) if ordered is None else not ordered
