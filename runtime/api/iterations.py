"""What streams have for loops: `iterate`, `bulk_iterate` and `delta_iterate`. Parts of every DataStream.

    numbers.iterate(lambda loop: (loop.filter(is_large).map(halve), loop.filter(is_small)))
    ranks.bulk_iterate(step, max_rounds=20)
    labels.delta_iterate(spread, key="vertex", improve=smaller)

Each makes a head, calls the user's function with the stream behind it, and leads what that returns back to the head
through a tail. How loops run: actors/operators/loops.py. Flink: DataStream.iterate, DataSet.iterate, iterateDelta.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar, Unpack

from ...actors.joins.tagged_records import TagSide
from ...actors.operators.aggregate import ColumnarAggregate
from ...actors.operators.assign_timestamps import AssignTimestamps
from ...actors.operators.loops import RESULT, LoopHead, LoopTail, RoundsHead, StreamHead
from ...actors.operators.operator import Operator
from ...actors.operators.solution_set import SOLUTION, SolutionSet
from ...messages import Partitioning
from ...messages.shown import columns_shown
from .checks import at_least, at_least_or_none
from .errors import InvalidProgram, SchemaMismatch
from .event_time import goes_by_event_time
from .known_options import Options, known_options
from .operator_checks import function_of
from .stream_graph import StreamEdge, StreamNode

S = TypeVar("S", covariant=True)
"""A stream."""
Left = TypeVar("Left")
"""The stream of what leaves a loop."""


class Iterations(Generic[S]):
    """A part of every stream."""

    _edges: tuple[StreamEdge, ...]

    @abstractmethod
    def _then(self, kind: str, operator: Operator, **options: Any) -> S:
        """The stream of one more operator."""

    @known_options(example="iterate(lambda loop: (loop.filter(again), loop.filter(done)))")
    def iterate(self, step: Callable[[S], tuple[Any, Left]], **options: Unpack[Options]) -> Left:
        """A loop in a stream. `step(loop)` gets the stream of what comes in and of what comes round again; it returns
        two streams: what goes round again, and what leaves the loop, which is the result.

        The data of a loop has ended when its input has and nothing goes round any more. Exactly once: what goes round
        is part of each checkpoint and savepoint. See docs/iterations.md.
        """
        head: Any = self._then("iterate", StreamHead(), **options)
        returned = _called("iterate", step, head)
        if not (isinstance(returned, tuple) and len(returned) == 2):
            raise InvalidProgram(
                "iterate: wanted step(loop) to return two streams, what goes round again and what leaves the loop; "
                f"found {_shown(returned)}"
            )
        back, result = (_stream("iterate", each) for each in returned)
        _check_result(head, back, result)
        _close("iterate", head, back, by_round=False)
        return result  # type: ignore[no-any-return]

    @known_options(example="bulk_iterate(step, max_rounds=20)")
    def bulk_iterate(self, step: Callable[[S], Any], *, max_rounds: int, **options: Unpack[Options]) -> S:
        """A loop in rounds, over data that ends. `step(loop)` gets the stream of a round's records and returns that of
        the next round's; no record of a round comes before all of the round before have been processed. The result:
        what the last round returned.

        `step` may return two streams: the next round's records, and a criterion. It goes on for `max_rounds` rounds at
        most, as long as records come to the criterion; without one, as long as there are records. Inside, the event
        time of a record is its round, from 1: `tumbling(1)` is a window for each round. See docs/iterations.md.
        """
        head: Any = self._in_rounds("bulk_iterate", at_least("bulk_iterate: max_rounds", max_rounds, 1), options)
        returned = _called("bulk_iterate", step, head)
        several = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned,)
        back, *criterion = (_stream("bulk_iterate", *each) for each in zip(several, _IN_BULK, strict=False))
        _close("bulk_iterate", head, back, by_round=True)
        for each in criterion:
            _operator(head).has_criterion = True
            _close("bulk_iterate", head, each, by_round=True, is_criterion=True)
        return head.side_output(RESULT)  # type: ignore[no-any-return]

    @known_options(example='delta_iterate(step, key="vertex", improve=smaller)')
    def delta_iterate(
        self,
        step: Callable[[S], Any],
        *,
        key: str | int | Callable[[Any], Any] | Sequence[str],
        improve: Callable[[Any, Any], Any],
        max_rounds: int | None = None,
        workset: Any = None,
        **options: Unpack[Options],
    ) -> S:
        """A loop in rounds that changes a solution, a record per `key`, where that can be improved. This stream is the
        solution to begin with. `step(changed)` gets the stream of the records that the round before has changed, and
        returns candidates. A candidate takes the place of the key's record where `improve(known, candidate)` returns
        the better one of the two, or both put together. If that is None, or equals what is known, nothing changes.

        It ends when a round changes nothing, or after `max_rounds`. The result: the whole solution, then. The first
        round gets this stream, or `workset` instead. See docs/iterations.md.
        """
        name = options.get("name")
        first: Any = self if workset is None else _stream("delta_iterate", workset, "workset to be a stream")
        limit = at_least_or_none("delta_iterate: max_rounds", max_rounds, 1)
        head: Any = first._in_rounds("delta_iterate", limit, options, converges=True)
        candidates = _stream("delta_iterate", _called("delta_iterate", step, head))
        keys = tuple(key) if isinstance(key, list | tuple) else (key,)
        better = SolutionSet(function_of(improve, "improve"))
        known: Any = self
        changed = (
            candidates.key_by(*keys)
            .connect(known.key_by(*keys))
            .process(better, name=None if name is None else f"{name}-solution")
        )
        _close("delta_iterate", head, changed, by_round=True)
        return changed.side_output(SOLUTION)  # type: ignore[no-any-return]

    def _in_rounds(self, method: str, max_rounds: int | None, options: Options, *, converges: bool = False) -> S:
        for edge in self._edges:
            _check_bounded(method, edge, "and the first round ends when all of them have come")
        return self._then(method.replace("_", "-"), RoundsHead(max_rounds, converges=converges), **options)


def _check_bounded(method: str, edge: StreamEdge, why: str) -> None:
    if not edge.source.bounded:
        raise InvalidProgram(
            f"{method}: the records of {edge.source.name!r} have no end, {why}: for a loop in a stream without end "
            "call iterate"
        )


_RETURNED = "step(loop) to return a stream"

_IN_BULK = (
    _RETURNED,
    "the second that step(loop) returns, the criterion, to be a stream whose records say that the loop goes on, such "
    "as moved.filter(is_far)",
)
"""The streams that a bulk_iterate wants."""


def _called(method: str, step: Any, head: Any) -> Any:
    return function_of(step, method)(head)


def _stream(method: str, found: Any, wanted: str = _RETURNED) -> Any:
    if not isinstance(found, Iterations):
        raise InvalidProgram(f"{method}: wanted {wanted}, found {_shown(found)}")
    return found


def _check_result(head: Any, back: Any, result: Any) -> None:
    """Of a loop in a stream, which has no other end than what leaves it."""
    node = head._own_node()
    if any(edge.source is node and not edge.output_tag for edge in back._edges):
        raise InvalidProgram(
            f"iterate: step(loop) sends the whole stream that it gets round again, so each record of {node.name!r} "
            "would go round without end: send back those that are to, as in loop.filter(again)"
        )
    if not _between(node, result):
        names = ", ".join(repr(edge.source.name) for edge in result._edges)
        raise InvalidProgram(
            f"iterate: what leaves the loop, the stream of {names}, does not come from the loop, so nothing of it "
            "would run: build both streams from the one that step gets"
        )


def _shown(found: Any) -> str:
    if found is None:
        return "None: is a `return` missing?"
    if isinstance(found, tuple | list):
        kinds = f"{len(found)} values: {', '.join(type(each).__name__ for each in found)}"
        return kinds if isinstance(found, tuple) else f"a list of {kinds}"
    kind = type(found).__name__
    return f"a {kind}{_LACKING.get(kind, '')}"


_LACKING = {
    "DataStreamSink": ": a sink ends a stream; return the stream before it",
    "WindowedStream": ": say what becomes of a window, as by .aggregate(...)",
    "ConnectedStreams": ": say what becomes of both, as by .process(...)",
}
"""Hints for what may be returned in the place of a stream."""


def _operator(head: Any) -> Any:
    return head._own_node().operator


def _close(method: str, head: Any, back: Any, *, by_round: bool, is_criterion: bool = False) -> None:
    """Lead this stream back to the head."""
    node = head._own_node()
    inside = _between(node, back)
    if not inside:
        names = ", ".join(repr(edge.source.name) for edge in back._edges)
        raise InvalidProgram(
            f"{method}: what step(loop) returns, the stream of {names}, does not come from the loop: build it from the "
            "stream that step gets"
        )
    for each in inside:
        _check_inside(method, node, each, by_round=by_round)
        each.loop = node
        for edge in each.inputs if by_round and each is not node else ():
            _check_bounded(method, edge, "and a round ends when all of them have come")
            if edge.source not in inside:
                _check_join(method, node, each, edge)
    if not is_criterion and None not in (head.schema, back.schema) and not head.schema.equals(back.schema):
        raise SchemaMismatch(
            f"{method}: what step(loop) sends back has the columns {columns_shown(back.schema)}; the loop has "
            f"{columns_shown(head.schema)}, of its input: send back the same columns, in the same order"
        )
    plain = type(head)(head._graph, [replace(edge, partitioning=None, selector=None) for edge in back._edges])
    made = LoopTail(by_round=by_round, is_criterion=is_criterion)
    name = f"{node.name}-criterion" if is_criterion else f"{node.name}-back"
    tail = plain._then("loop-tail", made, name=name)
    edge = StreamEdge(tail._own_node(), Partitioning.REBALANCE, input_index=1, feedback=True, by_round=by_round)
    node.feedback = (*node.feedback, edge)


def _between(head: StreamNode, back: Any) -> list[StreamNode]:
    """The nodes on the ways from the head to what is sent back, with the head; empty if there is none."""
    leads: dict[int, bool] = {head.position: True}
    nodes = {head.position: head}
    todo = [edge.source for edge in back._edges]
    while todo:
        node = todo[-1]
        before = [edge.source for edge in node.inputs]
        if node.position in leads:
            todo.pop()
        elif new := [each for each in before if each.position not in leads]:
            todo += new
        else:
            leads[node.position] = any(leads[each.position] for each in before)
            nodes[node.position] = node
    if not any(leads[edge.source.position] for edge in back._edges):
        return []
    return [node for position, node in nodes.items() if leads[position]]


def _check_inside(method: str, head: StreamNode, node: StreamNode, *, by_round: bool) -> None:
    if isinstance(node.operator, LoopHead) and node is not head:
        raise InvalidProgram(
            f"{method}: the loop of {head.name!r} has another loop in it, of {node.name!r}: loops do not lie inside "
            "each other; let one operator do both, or put one loop behind the other"
        )
    if node.loop not in (None, head):
        raise InvalidProgram(
            f"{method}: {node.name!r} is inside the loop of {head.name!r} and inside that of {node.loop.name!r}: loops "
            "do not lie inside each other; let one operator do both, or put one loop behind the other"
        )
    if isinstance(node.operator, ColumnarAggregate) and not node.operator.emits_updates:
        raise InvalidProgram(
            f'{method}: {node.name!r}, inside the loop of {head.name!r}, is an aggregate with emit="end", as it is if '
            "nothing is said: it emits when the loop has ended. For one in each round write "
            '.window(tumbling(1)) before .aggregate(...); or say emit="updates"'
        )
    if by_round and isinstance(node.operator, AssignTimestamps):
        raise InvalidProgram(
            f"{method}: {node.name!r} assigns event times inside the loop of {head.name!r}, where the event time of a "
            "record is its round: leave it out, and keep times in the records"
        )


def _check_join(method: str, head: StreamNode, node: StreamNode, outside: StreamEdge) -> None:
    """Records from outside are of the first round, so a join by time would find none in the others."""
    is_tagged = isinstance(outside.source.operator, TagSide)
    if (node.operator.inputs == 2 or is_tagged) and goes_by_event_time(node.operator):
        source = outside.source.inputs[0].source if is_tagged else outside.source
        raise InvalidProgram(
            f"{method}: {node.name!r} joins by event time inside the loop of {head.name!r}, where the event time of a "
            f"record is its round, and {source.name!r} is from outside: write .join(...) without ttl_ms, which finds "
            "its records in each round, or keep them as state of a connected operator"
        )
