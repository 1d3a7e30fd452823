"""StreamBase: what every stream is, edges that do not lead anywhere yet, and how an operator is added behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa

from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.operator import Operator
from ...messages.known_names import known_arguments
from .async_settings import settings_with
from .elsewhere import NO_RECORDS, OF_SINKS, instead_of, new_column, without_guess
from .errors import InvalidProgram
from .schemas import common_schema, declared_schema, output_schema
from .stream_graph import Role, StreamEdge, StreamGraph, StreamNode
from .streams_shown import NO_LENGTH, node_shown, stream_shown

if TYPE_CHECKING:
    from typing import Self


_END: Final = (
    "write what else is to become of its records behind the stream itself, stream.print() beside stream.map(f)"
)


class Named:
    """What ends in one node, which can be renamed until the program is submitted."""

    def __init__(self, graph: StreamGraph, node: StreamNode | None) -> None:
        self._graph = graph
        self._node = node

    @known_arguments(first=1)
    def name(self, name: str) -> Self:
        """Rename the operator that emits this stream."""
        self._graph.rename(self._own_node(), name)
        return self

    @known_arguments(first=1)
    def uid(self, uid: str) -> Self:
        """Give that operator an identity for its state, so that it may be renamed without losing it."""
        self._graph.set_uid(self._own_node(), uid)
        return self

    def _own_node(self) -> StreamNode:
        if self._node is None:
            raise InvalidProgram("a union has no operator of its own that could be named")
        return self._node


class DataStreamSink(Named):
    """The end of a stream. Flink: DataStreamSink."""

    def __repr__(self) -> str:
        return f"<the end of a stream in {node_shown(self._own_node())}; cluster.submit(env).wait() runs the program>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Only for what there is not."""
            hint = f": {_END}" if (found := instead_of(name, OF_SINKS, dir(self))) == "" else found
            raise without_guess(f"the end of a stream has no {name!r}{'' if name.startswith('_') else hint}", name)


class StreamBase(Named):
    """One edge, or of a union several, and what is known of the records that come on them."""

    def __init__(self, graph: StreamGraph, edges: Sequence[StreamEdge]) -> None:
        super().__init__(graph, edges[0].source if len(edges) == 1 else None)
        self._edges = tuple(edges)

    def __repr__(self) -> str:
        return stream_shown(type(self).__name__, self._edges)

    if not TYPE_CHECKING:

        def __getitem__(self, _: Any) -> NoReturn:  # Python's `for` asks for the items 0, 1, ... where it is alone
            raise TypeError(NO_RECORDS)

        def __aiter__(self) -> NoReturn:
            raise TypeError(NO_RECORDS)

        def __setitem__(self, column: Any, _: Any) -> NoReturn:
            raise TypeError(f"a stream has no columns to be set: {new_column(column)}")

        def __len__(self) -> NoReturn:
            raise TypeError(NO_LENGTH)

        def __bool__(self) -> bool:  # as of any object, `if stream:` asks whether there is one; not for its length
            return True

    def async_settings(self, **changes: Any) -> Self:
        """How the coroutines of the operator that emits this stream run: the fields of AsyncSettings, as in
        `stream.map(fetch).async_settings(max_in_flight=100, timeout_ms=2_000)`. What is not named stays as its class
        has it.
        """
        node = self._own_node()
        node.operator.async_settings = settings_with(node.operator, node.name, changes)
        return self

    @property
    def schema(self) -> pa.Schema | None:
        """The columns, when they are known before the job runs; None for Python records."""
        return common_schema("union", [edge.schema for edge in self._edges])

    @property
    def bounded(self) -> bool:
        """Whether all its sources end."""
        return all(edge.source.bounded for edge in self._edges)


@known_arguments("an operator", first=4)
def add_node(
    role: Role,
    kind: str,
    operator: Operator,
    inputs: Sequence[StreamBase],
    *,
    name: str | None = None,
    parallelism: int | None = None,
    slot_sharing_group: str | None = None,
    schema: pa.Schema | None = None,
) -> StreamNode:
    """Append one node fed by `inputs`, one stream per input of the operator."""
    graph = inputs[0]._graph
    unique = graph.name_for(name, kind)
    if isinstance(operator, KeyedOperator) and operator.compiled:
        operator._selectors = tuple(stream._edges[0].selector for stream in inputs if stream._edges[0].selector)
    derived = output_schema(unique, operator, [stream.schema for stream in inputs])
    return graph.add(
        role,
        operator,
        name=unique,
        inputs=[replace(edge, input_index=index) for index, stream in enumerate(inputs) for edge in stream._edges],
        schema=derived if schema is None else declared_schema(schema),
        bounded=all(stream.bounded for stream in inputs),
        parallelism=parallelism,
        slot_sharing_group=slot_sharing_group,
        kind=kind,
    )
