"""HostedChain: what a harness runs, made from what the user has: an operator, a chain of them, or a stream.

The same checks and the same pickling as when a job is submitted, so what cannot run in a job cannot run here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ....actors.flow.key_selector import KeySelector
from ....actors.operators.aggregate import ColumnarAggregate
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.operator import Operator
from ....actors.operators.source import Source
from ....actors.tasks.job_program import JobProgram, ProgramOperator
from ....messages import OperatorDescription, OperatorId, VertexId
from ....state import OperatorListState, declared_states
from ...api.operator_checks import operator_of, source_of
from ...api.pickling import check_picklable
from ...api.schemas import foreseen_schema
from ...api.stream import DataStream
from ...api.stream_base import DataStreamSink
from ...api.stream_graph import kebab_case
from .harness_snapshot import HarnessMisused

Hosted: TypeAlias = "Operator | type[Operator] | Sequence[Operator | type[Operator]] | DataStream | DataStreamSink"
Keys: TypeAlias = "str | int | Callable[[Any], Any] | Sequence[str | int] | KeySelector"
"""A key as `key_by` takes it: a column, a position or a function of the record; a list of them for a key of parts."""

VERTEX = VertexId("hosted")


@dataclass(frozen=True, slots=True)
class HostedChain:
    """The pickled operators, and what must be known to feed them."""

    program: JobProgram
    descriptions: tuple[OperatorDescription, ...]
    inputs: int
    """Of the first operator; 0 for a source."""
    selectors: tuple[KeySelector, ...]
    """How a record's key is found, per input; empty when there are no keys."""
    schemas: tuple[pa.Schema | None, ...]
    """Of the inputs."""

    @property
    def name(self) -> str:
        return " -> ".join(each.name for each in self.descriptions)

    def operators(self) -> list[Operator]:
        """New objects at every call, which know their inputs' schemas as those of a submitted job do."""
        made = self.program.chain(VERTEX)
        schemas = self.schemas
        for operator in made:
            if isinstance(operator, Source):
                schemas = (operator.source_schema(),)
            else:
                schemas = (foreseen_schema(operator, schemas),)
        return made


def hosted_chain(
    given: Hosted, keys: Sequence[Keys | None], schemas: Sequence[pa.Schema | None], *, broadcast_2: bool = False
) -> HostedChain:
    """`keys` and `schemas`: per input; None for what is not keyed, or not known. Raises HarnessMisused, or the
    InvalidProgram that the submission of such a job would raise.
    """
    if isinstance(given, DataStream | DataStreamSink):
        if broadcast_2:
            raise HarnessMisused("a stream knows whether its second input is broadcast: leave broadcast_2 out")
        return _of_stream(given, keys, schemas)
    if broadcast_2 and keys[1] is not None:
        raise HarnessMisused("broadcast_2: the second input has no key then, and found key_by_2")
    parts = given if isinstance(given, Sequence) else [given]
    if not parts:
        raise HarnessMisused("wanted an operator, found an empty list")
    selectors = _selectors(keys)
    operators = [
        _operator(part, keyed=bool(selectors), is_first=not index, beside_broadcast=broadcast_2 and not index)
        for index, part in enumerate(parts)
    ]
    first = operators[0]
    inputs = 0 if isinstance(first, Source) else first.inputs
    if isinstance(first, ColumnarAggregate) and not selectors:
        selectors = (KeySelector(*first._keys),)
    if broadcast_2 and inputs != 2:
        raise HarnessMisused(f"broadcast_2: {type(first).__name__} has one input, and no second one: leave it out")
    if inputs == 2 and len(selectors) == 1 and not broadcast_2:
        _check_has_no_rules(first)
        selectors *= 2
    known = (*schemas, *[None] * inputs)[:inputs]
    return _chain(operators, _names(operators), inputs, selectors, known)


def _of_stream(
    stream: DataStream | DataStreamSink, keys: Sequence[Keys | None], schemas: Sequence[pa.Schema | None]
) -> HostedChain:
    """The one operator that a stream ends in, with the keys and schemas that it has there."""
    if any(key is not None for key in keys) or schemas:
        raise HarnessMisused("a stream knows its keys and schemas: leave key_by, key_by_2 and schemas out")
    node = stream._own_node()
    inputs = 0 if isinstance(node.operator, Source) else node.operator.inputs
    by_input = {edge.input_index: edge.source.schema for edge in node.inputs}
    known = tuple(by_input[index] for index in range(inputs))
    return _chain([node.operator], [node.name], inputs, node.selectors, known)


def _chain(
    operators: Sequence[Operator],
    names: Sequence[str],
    inputs: int,
    selectors: tuple[KeySelector, ...],
    schemas: tuple[pa.Schema | None, ...],
) -> HostedChain:
    """Ids go by place, so that a snapshot is restored by newer code of another name."""
    for name in (name for operator, name in zip(operators[1:], names[1:], strict=True) if operator._is_async):
        raise HarnessMisused(
            f"{name!r} runs coroutines, and in a job it is always the first of its chain: give it a harness of its own"
        )
    descriptions = tuple(
        OperatorDescription(OperatorId(f"operator-{place}"), name, "operator") for place, name in enumerate(names, 1)
    )
    parts = [
        ProgramOperator(each.operator_id, operator, selectors if isinstance(operator, KeyedOperator) else ())
        for each, operator in zip(descriptions, operators, strict=True)
    ]
    try:
        program = JobProgram.of({VERTEX: parts}, {}, 0)
    except Exception:
        for part in parts:
            check_picklable(type(part.operator).__name__, part.operator, part.selectors)
        raise
    return HostedChain(program, descriptions, inputs, selectors, schemas)


def _operator(given: Any, *, keyed: bool, is_first: bool, beside_broadcast: bool) -> Operator:
    kind = given if isinstance(given, type) else type(given)
    if is_first and issubclass(kind, Source):
        return source_of(given)
    if issubclass(kind, KeyedOperator) and not keyed:
        raise HarnessMisused(
            f"{kind.__name__} is a KeyedOperator: say how a record's key is found, as in "
            f'OperatorHarness({kind.__name__}, key_by="column")'
        )
    inputs = getattr(given, "inputs", 1) if is_first else 1
    return operator_of(given, inputs=inputs, keyed=keyed, beside_broadcast=beside_broadcast and keyed)


def _check_has_no_rules(operator: Operator) -> None:
    """A list for all subtasks is made of a broadcast stream, whose records have no key."""
    for name, state in declared_states(type(operator)).items():
        if isinstance(state, OperatorListState) and state.mode == "broadcast":
            raise HarnessMisused(
                f"{type(operator).__name__} has two inputs and a list for all subtasks, {name!r} (mode='broadcast'), "
                "and one key: write broadcast_2=True, or key_by_2=... if the second input has a key, too"
            )


def _selectors(keys: Sequence[Keys | None]) -> tuple[KeySelector, ...]:
    found = [key for key in keys if key is not None]
    if found and keys[0] is None:
        raise HarnessMisused("the second input has a key and the first has none: key both inputs, or neither")
    return tuple(map(_selector, found))


def _selector(key: Keys) -> KeySelector:
    if isinstance(key, KeySelector):
        return key
    return KeySelector(*key) if isinstance(key, list | tuple) else KeySelector(key)  # type: ignore[arg-type]


def _names(operators: Sequence[Operator]) -> list[str]:
    """As a job names operators that were given no names: "flat-map-2"."""
    seen: Counter[str] = Counter()
    names = []
    for operator in operators:
        kind = kebab_case(type(operator).__name__)
        seen[kind] += 1
        names.append(f"{kind}-{seen[kind]}")
    return names
