"""DataStream, KeyedStream and ConnectedStreams: how a program is written. Flink: the classes of the same names.

A stream is a set of edges that do not lead anywhere yet; each method adds a node to the environment's StreamGraph and
returns the stream of what that node emits. Nothing runs before the environment is submitted to a cluster.

Every method that adds an operator takes `name` (unique; questions and restored state are addressed by it),
`parallelism` (default: the environment's, then the cluster's; behind `from_collection`, up to a `key_by` or another
partitioning, the source's) and `slot_sharing_group` (default: its inputs').
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Unpack, overload

import pyarrow as pa
import pyarrow.compute as pc

from ...actors.flow.key_selector import KeySelector
from ...actors.joins.tagged_records import CoGroup, OfTagged, Side, TagSide, key_of
from ...actors.operators.async_functions import AsyncFilter, AsyncFlatMap, AsyncMap
from ...actors.operators.collector import OutputTag
from ...actors.operators.filter import Filter
from ...actors.operators.flat_map import FlatMap
from ...actors.operators.map import Map
from ...actors.operators.map_batches import MapBatches
from ...actors.operators.of_records import T, U
from ...actors.operators.operator import Operator
from ...actors.operators.reduce import KeyedReduce
from ...actors.windows.assigners import WindowAssigner
from ...messages import Partitioning, shown
from ...messages.known_names import known_arguments
from ..connectors.lakes.lake_sink import LakeSink
from .advice import BY_KEY, UNTYPED
from .assigned_times import AssignedTimes
from .elsewhere import OF_CONNECTED, OF_STREAMS, instead_of, without_guess
from .errors import ForeignStream, InvalidProgram
from .event_time import tell_assigners
from .hook_checks import is_async_function
from .iterations import Iterations
from .joined_streams import KeyedJoins, TableLookups
from .joins import Keyed, check_meeting
from .kafka_sinks import KafkaSinks
from .known_options import Options, known_options
from .lake_sinks import LakeSinks
from .named_aggregates import named_aggregates
from .no_keys import how_keyed
from .operator_checks import function_of, operator_of, sink_of
from .plain_sinks import PlainSinks
from .redis_sinks import RedisSinks
from .samples import check_names
from .schemas import check_keys, common_schema
from .side_outputs import SideOutputs
from .sql_sinks import SqlSinks
from .stream_base import DataStreamSink, StreamBase, add_node
from .stream_graph import StreamEdge, StreamGraph
from .streams_shown import names_of, stream_shown
from .typed import AnyTuple, Expression, R, Record, Schema, Tuple, WindowClass, WindowFunction
from .unstable_keys import warn_of_unstable_keys
from .windowed_stream import Windows
from .zoneless_times import warn_of_zoneless_times


class DataStream(
    StreamBase,
    SideOutputs["DataStream[Any]"],
    TableLookups["DataStream[Any]"],
    SqlSinks[DataStreamSink],
    KafkaSinks[DataStreamSink],
    LakeSinks[DataStreamSink],
    RedisSinks[DataStreamSink],
    PlainSinks[DataStreamSink],
    Iterations["DataStream[T]"],
    AssignedTimes["DataStream[T]", T],
    Generic[T],
):
    """A stream of records or of columnar batches; `DataStream[Bid]` to a type checker, if they are bids."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Only for what there is not: says so of what there is on keyed streams."""
            if hasattr(KeyedStream, name) and not name.startswith("_"):
                raise without_guess(f"{name} needs a keyed stream: {how_keyed(self._edges, name)}", name)
            hint = "" if name.startswith("_") else instead_of(name, OF_STREAMS, dir(self))
            raise without_guess(f"a {type(self).__name__} has no {name!r}{hint}", name)

    else:

        def side_output(self, tag: OutputTag[R]) -> DataStream[R]:
            raise NotImplementedError

    @overload
    def map(
        self, function: Callable[[T], Record | Awaitable[Record]], **options: Unpack[Options]
    ) -> DataStream[Any]: ...
    @overload
    def map(self, function: Callable[[T], Awaitable[R]], **options: Unpack[Options]) -> DataStream[R]: ...
    @overload
    def map(self, function: Callable[[T], R], **options: Unpack[Options]) -> DataStream[R]: ...
    @known_options(elsewhere={"stateful": BY_KEY, "expand": "write flat_map(...) in its place"})
    def map(self, function: Callable[[Any], Any], **options: Unpack[Options]) -> DataStream[Any]:
        """Each record becomes `function(record)`, which may be `async def`: see docs/async.md."""
        function = function_of(function, "map")
        made = AsyncMap(function) if is_async_function("map", function) else Map(function)
        return self._then("map", made, **options)

    @known_options(elsewhere={"stateful": BY_KEY})
    def filter(self, predicate: Callable[[T], object] | Expression, **options: Unpack[Options]) -> DataStream[T]:
        """Keep the records for which `predicate(record)`, or a `pyarrow.compute` expression of the columns, is true.
        The function may be `async def`.
        """
        condition = predicate if isinstance(predicate, pc.Expression) else function_of(predicate, "filter")
        is_async = not isinstance(condition, pc.Expression) and is_async_function("filter", condition)
        return self._then("filter", AsyncFilter(condition) if is_async else Filter(condition), **options)

    @overload
    def flat_map(
        self, function: Callable[[T], Iterable[Record] | Awaitable[Iterable[Record]]], **options: Unpack[Options]
    ) -> DataStream[Any]: ...
    @overload
    def flat_map(self, function: Callable[[T], Iterable[R]], **options: Unpack[Options]) -> DataStream[R]: ...
    @overload
    def flat_map(
        self, function: Callable[[T], Awaitable[Iterable[R]]], **options: Unpack[Options]
    ) -> DataStream[R]: ...
    @known_options(elsewhere={"stateful": BY_KEY, "expand": "leave it out: each item of a result is a record"})
    def flat_map(self, function: Callable[[Any], Any], **options: Unpack[Options]) -> DataStream[Any]:
        """Each record becomes the records of `function(record)`, which may be `async def`."""
        function = function_of(function, "flat_map")
        made = AsyncFlatMap(function) if is_async_function("flat_map", function) else FlatMap(function)
        return self._then("flat-map", made, **options)

    @known_options()
    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        *,
        schema: pa.Schema | None = None,
        **options: Unpack[Options],
    ) -> DataStream:
        """Each Arrow batch becomes another one. `schema` declares its columns, so that what follows is checked."""
        operator = MapBatches(function_of(function, "map_batches"))
        return self._then("map-batches", operator, schema=schema, **options)

    @known_options()
    def process(
        self,
        operator: Operator[T, R] | type[Operator[T, R]],
        *,
        schema: Schema | None = None,
        **options: Unpack[Options],
    ) -> DataStream[R]:
        """Run an operator of your own, given as an instance, or as a class that needs no arguments."""
        made = operator_of(operator, inputs=1, keyed=isinstance(self, KeyedStream))
        return self._then(type(made).__name__, made, schema=schema, **options)

    @known_arguments(first=1, example="window_all(tumbling(minutes=1))")
    def window_all(self, assigner: WindowAssigner) -> WindowedStream[T]:
        """Windows over all records: one subtask takes them all. Flink: windowAll."""
        keyed = self.key_by(_one_key)
        tell_assigners(assigner, self._edges)
        warn_of_zoneless_times(assigner, self._edges)
        return WindowedStream(partial(keyed._then, parallelism=1), (), self.schema, assigner, self._edges)

    @known_arguments(first=1, elsewhere={"key_type": UNTYPED})
    def key_by(self, *keys: str | int | Callable[[T], Any]) -> KeyedStream[T]:
        """Partition by columns (names or positions), or by what one function returns for a record.

        A name is a column of a row, an item of a dict, or an attribute of any other record. Raises UnknownColumn where
        the columns, or a collection's records, are known to be without it.
        """
        check_keys(keys, self.schema)
        check_names("key_by", keys, self._edges)
        warn_of_unstable_keys(keys)
        return KeyedStream(self._graph, self._edges, keys)

    @known_arguments(first=1)
    def union(self, *others: DataStream[R]) -> DataStream[T | R]:
        """One stream of the records of all, in no particular order between them; each keeps its own."""
        edges = list(self._edges)
        for other in others:
            self._check_same_environment(other, "union")
            edges.extend(other._edges)
        united: DataStream[T | R] = DataStream(self._graph, edges)
        common_schema("union", [edge.schema for edge in edges])
        return united

    @known_arguments(first=1)
    def connect(self, other: DataStream[R]) -> ConnectedStreams[T, R]:
        """Two streams for one operator of two inputs. Both are keyed, so that equal keys meet, or neither is; or the
        first is, and the other comes to every subtask: `keyed.connect(rules.broadcast())`.
        """
        self._check_same_environment(other, "connect")
        return ConnectedStreams(self, other)

    @known_arguments(first=1)
    def rebalance(self) -> DataStream[T]:
        """Deal the batches out to the next operator's subtasks in turn."""
        return self._repartitioned(Partitioning.REBALANCE)

    @known_arguments(first=1)
    def broadcast(self) -> DataStream[T]:
        """Send every record to all subtasks of the next operator."""
        return self._repartitioned(Partitioning.BROADCAST)

    @known_options()
    def sink_to(self, sink: Operator | type[Operator] | LakeSink, **options: Unpack[Options]) -> DataStreamSink:
        """End the stream in a sink. Raises SchemaMismatch when the stream's columns do not fit it."""
        if isinstance(sink, LakeSink):
            return self._in_two(sink, **options)
        made = sink_of(sink, keyed=isinstance(self, KeyedStream))
        return DataStreamSink(self._graph, add_node("sink", type(made).__name__, made, [self], **options))

    @property
    def _is_broadcast(self) -> bool:
        """Whether every subtask behind it gets all records."""
        return all(edge.partitioning is Partitioning.BROADCAST for edge in self._edges)

    def _repartitioned(self, partitioning: Partitioning) -> DataStream[T]:
        edges = [replace(edge, partitioning=partitioning, selector=None) for edge in self._edges]
        return DataStream(self._graph, edges)

    def _then(self, kind: str, operator: Operator, **options: Any) -> DataStream[Any]:
        return DataStream(self._graph, [StreamEdge(add_node("operator", kind, operator, [self], **options))])

    def _beside(self, edge: StreamEdge) -> DataStream:
        return DataStream(self._graph, [edge])

    def _with_others(self, kind: str, operator: Operator, others: Sequence[Any], **options: Any) -> DataStream:
        for other in others:
            self._check_same_environment(other, kind)
        return DataStream(self._graph, [StreamEdge(add_node("operator", kind, operator, [self, *others], **options))])

    def _check_same_environment(self, other: Any, method: str) -> None:
        if not isinstance(other, DataStream):
            raise InvalidProgram(f"{method}: wanted a DataStream, found {shown(other)}")
        if other._graph is not self._graph:
            raise ForeignStream(f"{method}: the streams belong to different environments; build both on one")


class KeyedStream(DataStream[T], KeyedJoins[DataStream[Any], T]):
    """A stream partitioned by key: records of one key meet in one subtask, in the order of each producer."""

    def __init__(self, graph: StreamGraph, edges: Sequence[StreamEdge], keys: tuple[Any, ...]) -> None:
        selector = KeySelector(*keys)
        super().__init__(graph, [replace(edge, partitioning=Partitioning.HASH, selector=selector) for edge in edges])
        self._keys = keys

    def __repr__(self) -> str:
        return stream_shown(type(self).__name__, self._edges, self._keys)

    @property
    def _keyed(self) -> Keyed:
        return Keyed(self._keys, self.schema, self._edges)

    @known_arguments(first=1, example="window(tumbling(minutes=1))")
    def window(self, assigner: WindowAssigner) -> WindowedStream[T]:
        """Windows per key: `keyed.window(tumbling(minutes=1)).aggregate(bids=Count())`."""
        tell_assigners(assigner, self._edges)
        warn_of_zoneless_times(assigner, self._edges)
        return WindowedStream(self._then, self._keys, self.schema, assigner, self._edges)

    @overload
    def reduce(self, function: Callable[[T, T], T], **options: Unpack[Options]) -> DataStream[T]: ...
    @overload
    def reduce(
        self: KeyedStream[AnyTuple], function: Callable[[T, T], Tuple], **options: Unpack[Options]
    ) -> DataStream[Tuple]: ...
    @known_options()
    def reduce(self, function: Callable[[Any, Any], Any], **options: Unpack[Options]) -> DataStream[Any]:
        """Combine each record with the key's result so far, and emit the new result each time."""
        return self._then("reduce", KeyedReduce(function_of(function, "reduce")), **options)

    @known_arguments(first=1)
    def aggregate(
        self,
        emit: str | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        slot_sharing_group: str | None = None,
        **specs: Any,
    ) -> DataStream:
        """Vectorised aggregates per key, as in `aggregate(flights=Count(), miles=Sum("distance"))`.

        `emit`: "end" for one row per key when the input has ended, "updates" for the keys that changed, which are taken
        together for some milliseconds; None chooses "end" when all sources are bounded. Operator options are no names
        for result columns.
        """
        operator = named_aggregates(self._keyed, emit, "end" if self.bounded else "updates", specs)
        return self._then(
            "aggregate", operator, name=name, parallelism=parallelism, slot_sharing_group=slot_sharing_group
        )

    def _co_grouped(
        self, other: Any, assigner: WindowAssigner, function: Callable[..., None], kind: str, **options: Any
    ) -> DataStream:
        self._check_same_environment(other, kind)
        tagged = self._tagged("left").union(other._tagged("right")).key_by(key_of)
        windows = WindowedStream(partial(tagged._then_as, kind), (), None, OfTagged(assigner), ())
        return windows.process(CoGroup(function), **options)

    def _tagged(self, side: Side) -> DataStream:
        """Not partitioned by the key yet: that comes behind it."""
        plain = DataStream(self._graph, [replace(edge, partitioning=None, selector=None) for edge in self._edges])
        return plain._then("tag", TagSide(side, KeySelector(*self._keys)))

    def _then_as(self, kind: str, _kind: str, operator: Operator, **options: Any) -> DataStream:
        return self._then(kind, operator, **options)


class ConnectedStreams(Generic[T, U]):
    """Two streams that one operator takes as its first and its second input. Flink: ConnectedStreams,
    BroadcastConnectedStream.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, types: Any) -> Any:
            """The second may be left out, as type checkers have it: its records are anything then."""
            return super().__class_getitem__(types if isinstance(types, tuple) else (types, Any))

    def __init__(self, first: DataStream[T], second: DataStream[U]) -> None:
        keyed = isinstance(first, KeyedStream)
        if keyed != isinstance(second, KeyedStream) and not (keyed and second._is_broadcast):
            if first._is_broadcast:
                raise InvalidProgram(
                    "connect: the first stream is a broadcast one and the second is keyed: swap them, "
                    "keyed.connect(rules.broadcast()); process gets the keyed records then, and process_2 the rules"
                )
            raise InvalidProgram(
                f"connect: the {'first' if keyed else 'second'} stream is keyed, the other not: key both or neither; "
                "for what every key needs, write keyed.connect(rules.broadcast())"
            )
        if isinstance(first, KeyedStream) and isinstance(second, KeyedStream):
            check_meeting("connect", first._keyed, second._keyed)
        self._first, self._second, self._keyed = first, second, keyed

    def __repr__(self) -> str:
        both = f"{names_of(self._first._edges)} with {names_of(self._second._edges)}"
        return f"<{type(self).__name__} of {both}: write process(...) behind it, with an operator of two inputs>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = "" if name.startswith("_") else instead_of(name, OF_CONNECTED, dir(self))
            raise without_guess(f"connected streams have no {name!r}{hint}", name)

    @known_options()
    def process(
        self,
        operator: Operator[T, R] | type[Operator[T, R]],
        *,
        schema: Schema | None = None,
        **options: Unpack[Options],
    ) -> DataStream[R]:
        """Run an operator that declares `inputs = 2`."""
        beside = self._keyed and self._second._is_broadcast
        made = operator_of(operator, inputs=2, keyed=self._keyed, beside_broadcast=beside)
        node = add_node("operator", type(made).__name__, made, [self._first, self._second], schema=schema, **options)
        return DataStream(self._first._graph, [StreamEdge(node)])


class WindowedStream(Windows[DataStream[Any]], Generic[T]):
    """Windows over records of this type."""

    __slots__ = ()

    if TYPE_CHECKING:

        @overload
        def reduce(
            self, function: Callable[[T, T], T], final: None = None, **options: Unpack[Options]
        ) -> DataStream[T]: ...
        @overload
        def reduce(
            self: WindowedStream[AnyTuple],
            function: Callable[[T, T], Tuple],
            final: None = None,
            **options: Unpack[Options],
        ) -> DataStream[Tuple]: ...
        @overload
        def reduce(
            self, function: Callable[[T, T], T], final: WindowFunction[T], **options: Unpack[Options]
        ) -> DataStream[Any]: ...
        @overload
        def reduce(
            self,
            function: Callable[[T, T], T],
            final: WindowClass[T, R],
            **options: Unpack[Options],
        ) -> DataStream[R]: ...
        def reduce(self, function: Any, final: Any = None, **options: Any) -> DataStream[Any]: ...

        @overload
        def process(self, function: WindowFunction[T], **options: Unpack[Options]) -> DataStream[Any]: ...
        @overload
        def process(self, function: WindowClass[T, R], **options: Unpack[Options]) -> DataStream[R]: ...
        def process(self, function: Any, **options: Any) -> DataStream[Any]: ...


def _one_key(_record: Any) -> int:
    """The key of every record where there is but one."""
    return 0
