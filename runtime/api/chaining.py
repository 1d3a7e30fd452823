"""Which operators run as one task, and how many subtasks each has.

Flink: StreamingJobGraphGenerator.isChainable. Two operators are chained when the edge between them forwards, they have
one parallelism and one slot sharing group, the consumer has no other input and the producer no other output. One with
coroutines begins a chain: what it cannot take yet waits in its channels, and barriers reach it there (FLINK-13063).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...actors.flow.key_selector import KeySelector
from ...messages import Partitioning
from .errors import ClusterTooSmall, InvalidProgram
from .stream_graph import StreamEdge, StreamNode


@dataclass(frozen=True, slots=True)
class Size:
    """How many subtasks; for a DataFrame source also the first of the TaskManagers that run them."""

    parallelism: int
    first_task_manager: int = 0


def sizes_of(nodes: Sequence[StreamNode], *, default: int, maximum: int, task_managers: int) -> dict[int, Size]:
    """Each node's size, by its position. Raises InvalidProgram or ClusterTooSmall."""
    sizes = _dataframe_sizes([node for node in nodes if node.dataframe is not None], task_managers)
    for node in nodes:
        wanted = sizes[node.inputs[0].source.position].parallelism if node.follows_input else node.parallelism
        size = sizes.setdefault(node.position, Size(wanted or default))
        if size.parallelism > maximum:
            raise InvalidProgram(
                f"operator {node.name!r} has parallelism {size.parallelism}, above the max_parallelism of {maximum}; "
                "lower it, or raise StreamEnvironment(max_parallelism=...), which a job that goes on from a savepoint "
                "cannot change"
            )
    return sizes


def _dataframe_sizes(sources: Sequence[StreamNode], task_managers: int) -> dict[int, Size]:
    """Deal the TaskManagers out: a TaskManager drives one partition of one DataFrame."""
    chosen = sum(source.parallelism or 0 for source in sources)
    open_count = sum(source.parallelism is None for source in sources)
    share = max(1, (task_managers - chosen) // open_count) if open_count else 0
    sizes: dict[int, Size] = {}
    first = 0
    for source in sources:
        sizes[source.position] = Size(source.parallelism or share, first)
        first += source.parallelism or share
    if first > task_managers:
        wanted = ", ".join(f"{source.name!r} {sizes[source.position].parallelism}" for source in sources)
        raise ClusterTooSmall(
            f"the DataFrame sources need {first} TaskManagers, one per partition ({wanted}); "
            f"the cluster has {task_managers}: give it task_managers={first}"
        )
    return sizes


def partitioning_of(edge: StreamEdge, consumer: StreamNode, sizes: Mapping[int, Size]) -> Partitioning:
    """As asked for, or else forward between equal parallelisms and rebalance between others."""
    if edge.partitioning is not None:
        return edge.partitioning
    same = sizes[edge.source.position].parallelism == sizes[consumer.position].parallelism
    return Partitioning.FORWARD if same else Partitioning.REBALANCE


def key_sinks(nodes: Sequence[StreamNode], sizes: Mapping[int, Size]) -> None:
    """Let what would be dealt out to a sink of rows go by the key of its row: each key keeps its order."""
    for node in nodes:
        if key := node.operator._row_key:
            node.inputs = tuple(
                replace(edge, partitioning=Partitioning.HASH, selector=KeySelector(*key))
                if edge.partitioning is None and partitioning_of(edge, node, sizes) is Partitioning.REBALANCE
                else edge
                for edge in node.inputs
            )


LONGEST_CHAIN = 200
"""A batch goes through a chain by calls within calls, two for each operator; Python takes a thousand."""


def chains_of(nodes: Sequence[StreamNode], sizes: Mapping[int, Size]) -> list[list[StreamNode]]:
    """The nodes in chains: those of sources first, then in the order of their heads, which is topological."""
    outputs = Counter(edge.source.position for node in nodes for edge in (*node.inputs, *node.feedback))
    chain_of: dict[int, list[StreamNode]] = {}
    chains: list[list[StreamNode]] = []
    for node in nodes:
        chain = chain_of[node.inputs[0].source.position] if _is_chained(node, outputs, sizes) else []
        if not 0 < len(chain) < LONGEST_CHAIN:
            chain = []
            chains.append(chain)
        chain.append(node)
        chain_of[node.position] = chain
    return sorted(chains, key=lambda chain: chain[0].role != "source")


def _is_chained(node: StreamNode, outputs: Mapping[int, int], sizes: Mapping[int, Size]) -> bool:
    if len(node.inputs) != 1 or node.operator._is_async or node.feedback:
        return False
    edge = node.inputs[0]
    return (
        partitioning_of(edge, node, sizes) is Partitioning.FORWARD
        and outputs[edge.source.position] == 1
        and not edge.output_tag
        and edge.source.slot_sharing_group == node.slot_sharing_group
    )
