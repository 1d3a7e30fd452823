"""Parallelisms: a user's program with another parallelism, and which of its operators keep the one that they have.

What the program says of one operator stays: it may have a reason. Operators without a parallelism of their own go along
with the environment's, but a source that does not define `rescale` cannot.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

from ....actors.operators.source import Source, can_rescale
from ...api.environment import StreamEnvironment
from ...api.stream_graph import StreamGraph, StreamNode


def with_parallelism(env: StreamEnvironment, parallelism: int, was: int) -> StreamEnvironment:
    """A copy of the environment; what cannot be rescaled has the parallelism that it `was`."""
    copied = copy.copy(env)
    copied.parallelism = parallelism
    made: dict[int, StreamNode] = {}
    for node in env.graph.nodes:
        inputs = tuple(replace(edge, source=made[edge.source.position]) for edge in node.inputs)
        fixed = was if _cannot_rescale(node) and node.parallelism is None else node.parallelism
        made[node.position] = replace(node, inputs=inputs, parallelism=fixed)
    for node in env.graph.nodes:
        back = tuple(replace(edge, source=made[edge.source.position]) for edge in node.feedback)
        made[node.position].feedback = back
    copied.graph = StreamGraph(list(made.values()))
    return copied


def candidates(was: int, most: int) -> tuple[int, ...]:
    """Fewer and more, and some that do not divide each other."""
    return tuple(sorted({each for each in (1, was - 1, was + 1, 3) if each not in (0, was) and each <= most}))


def that_keep_theirs(env: StreamEnvironment) -> Iterator[str]:
    """Which operators keep their parallelism, and why."""
    for node in env.graph.nodes:
        if node.parallelism is not None:
            yield f"{node.name!r} has a parallelism of its own, {node.parallelism}"
        elif _cannot_rescale(node):
            yield f"source {node.name!r} ({type(node.operator).__name__}) does not define rescale"


def _cannot_rescale(node: StreamNode) -> bool:
    return isinstance(node.operator, Source) and not can_rescale(node.operator)
