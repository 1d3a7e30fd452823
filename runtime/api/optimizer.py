"""Rewrites of the written program into one with the same result and less work. Flink SQL: the planner's rewrites.

- A columnar aggregation, over windows too, takes two phases: rows become partials before the shuffle, and partials are
  merged after it. Windows whose late records are wanted take one: partials are records no more.
- A source of files or a table that is read for aggregation alone, perhaps of records with event times, reads only the
  columns that count, and in larger batches; one that compiled operators alone read gives larger batches too.

The user's graph stays as it is: nodes are copied. Names and identities of the user's operators stay too, so state is
found again whichever way it was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ...actors.flow.key_selector import KeySelector
from ...actors.operators.aggregate import ColumnarAggregate, LocalAggregate
from ...actors.operators.assign_timestamps import AssignTimestamps
from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.operator import Operator
from ...actors.windows.columnar_windows import ColumnarWindows
from ...actors.windows.local_windows import LocalWindows
from ...messages import Partitioning
from ..connectors import (
    COLUMN_BATCH_ROWS,
    COMPILED_BATCH_ROWS,
    FileSource,
    ScanSource,
    TableSource,
    WatchedFileSource,
)
from .schemas import key_columns
from .stream_graph import StreamEdge, StreamNode


def optimized(nodes: Sequence[StreamNode]) -> list[StreamNode]:
    """The nodes to run, in topological order. `nodes`: those of a StreamGraph that reach a sink."""
    plan = _Plan(nodes)
    for node in nodes:
        edges = [replace(edge, source=plan.copies[edge.source.position]) for edge in node.inputs]
        if _is_two_phase(node, nodes):
            plan.add_phases(node, edges)
        else:
            plan.copies[node.position] = plan.add(node, node.operator, edges)
    for node in nodes:
        back = [replace(edge, source=plan.copies[edge.source.position]) for edge in node.feedback]
        plan.copies[node.position].feedback = tuple(back)
    for node in plan.nodes:
        _narrow(node, plan.nodes)
    return plan.nodes


class _Plan:
    """The new nodes, and by the position of each old one the node that emits what it emits."""

    def __init__(self, nodes: Sequence[StreamNode]) -> None:
        self.nodes: list[StreamNode] = []
        self.copies: dict[int, StreamNode] = {}
        self._taken = {identity for node in nodes for identity in (node.name, node.uid)}

    def add(self, node: StreamNode, operator: Operator, inputs: Sequence[StreamEdge]) -> StreamNode:
        """A copy of a node, with this operator and these inputs."""
        added = replace(node, position=len(self.nodes), operator=operator, inputs=tuple(inputs))
        self.nodes.append(added)
        return added

    def add_phases(self, node: StreamNode, edges: Sequence[StreamEdge]) -> None:
        """A local phase behind each input, with as many subtasks as that has, and the merging one in place of it."""
        assert isinstance(node.operator, ColumnarAggregate | ColumnarWindows)
        merged = []
        for edge in edges:
            local, merging = node.operator.in_two_phases()
            schema = local.output_schema(edge.schema)
            added = self.add(node, local, [StreamEdge(edge.source, Partitioning.FORWARD)])
            added.name, added.uid, added.schema = self._free_name(f"{node.name}-local"), None, schema
            added.slot_sharing_group, added.bounded = edge.source.slot_sharing_group, edge.source.bounded
            added.follows_input = True
            merged.append(replace(edge, source=added, selector=KeySelector(*local.keys)))
        merging.output_schema(schema)
        self.copies[node.position] = self.add(node, merging, merged)

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}-{number}"
        self._taken.add(name)
        return name


def _is_two_phase(node: StreamNode, nodes: Sequence[StreamNode]) -> bool:
    """Whether this aggregates columns that are known, behind a shuffle by just its keys."""
    operator = node.operator
    if type(operator) is ColumnarWindows:
        if not operator.has_two_phases or _has_side_output(node, nodes):
            return False
    elif type(operator) is not ColumnarAggregate or operator.takes_partials:
        return False
    return all(edge.schema is not None and _is_keyed_by(edge, operator.keys) for edge in node.inputs)


def _has_side_output(node: StreamNode, nodes: Sequence[StreamNode]) -> bool:
    return any(edge.source is node and edge.output_tag for each in nodes for edge in each.inputs)


def _is_keyed_by(edge: StreamEdge, keys: tuple[str, ...]) -> bool:
    if edge.partitioning is not Partitioning.HASH or edge.selector is None or callable(edge.selector.parts[0]):
        return False
    return key_columns(edge.selector.parts, edge.schema) == keys


_NARROWED = (FileSource, WatchedFileSource, ScanSource, TableSource)


def _narrow(node: StreamNode, nodes: Sequence[StreamNode]) -> None:
    """Let a source of columns read what its readers want, in batches as large as they like them. A user's subclass is
    left alone.
    """
    source: Any = node.operator
    if type(source) not in _NARROWED:
        return
    names, batch_rows = source.schema.names, COMPILED_BATCH_ROWS
    wanted = _wanted(node, nodes)
    if wanted is not None:
        names, batch_rows = [name for name in names if name in wanted], COLUMN_BATCH_ROWS
    elif not _only_compiled_read(node, nodes):
        return
    node.operator = narrowed = source.for_columns(names, batch_rows)
    _set_schema(node, narrowed.source_schema(), nodes)


def _readers(node: StreamNode, nodes: Sequence[StreamNode]) -> list[StreamNode]:
    return [each for each in nodes for edge in each.inputs if edge.source is node]


def _only_compiled_read(node: StreamNode, nodes: Sequence[StreamNode]) -> bool:
    """Whether only compiled operators take what a node emits, at once or when it has event times from a column."""
    for reader in _readers(node, nodes):
        match reader.operator:
            case AssignTimestamps(column=str()) if _only_compiled_read(reader, nodes):
                pass
            case KeyedOperator(compiled=True):
                pass
            case _:
                return False
    return True


def _wanted(node: StreamNode, nodes: Sequence[StreamNode]) -> set[str] | None:
    """The columns that are read of what a node emits; None where it may be all."""
    names: set[str] = set()
    for reader in _readers(node, nodes):
        columns = _columns_read(reader, nodes)
        if columns is None:
            return None
        names |= columns
    return names


def _columns_read(node: StreamNode, nodes: Sequence[StreamNode]) -> set[str] | None:
    match node.operator:
        case LocalAggregate(columns=columns) | LocalWindows(columns=columns):
            return set(columns)
        case ColumnarWindows(columns=columns) if _reads_by_name(node, nodes):
            return set(columns)
        case AssignTimestamps(column=str(column)) if (behind := _wanted(node, nodes)) is not None:
            return {column, *behind}
    return None


def _reads_by_name(node: StreamNode, nodes: Sequence[StreamNode]) -> bool:
    """Whether the columns of windows in one phase, and of their keys, are found by name, and nobody else sees them."""
    if _has_side_output(node, nodes):
        return False
    parts = [part for edge in node.inputs if edge.selector is not None for part in edge.selector.parts]
    return all(isinstance(part, str) for part in parts)


def _set_schema(node: StreamNode, schema: pa.Schema, nodes: Sequence[StreamNode]) -> None:
    """Of a node, and of those behind it that hand on what they get."""
    node.schema = schema
    for reader in _readers(node, nodes):
        if isinstance(reader.operator, AssignTimestamps):
            _set_schema(reader, schema, nodes)
