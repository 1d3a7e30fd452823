"""JobProgram: the user code of one job, as it travels from the client to the job's TaskManagers.

The companion of the JobGraph, which describes structure only. It goes from parent to child (Spark's closure, the pipe
of a spawned process), never through a socket, and only there is anything unpickled. Operators lie pickled inside, a
blob per chain, so that each subtask gets objects of its own, also when many subtasks share a process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cloudpickle

from ...messages import (
    OperatorId,
    Serializer,
    VertexId,
    register,
    register_record_type,
    register_serializer,
    registered_messages,
    registered_serializers,
    script_record_types,
)
from ..compiled import warm_up
from ..errors import ActorError
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from .shipping import pickled

if TYPE_CHECKING:
    from ..flow.key_selector import KeySelector


@dataclass(frozen=True, slots=True)
class ProgramOperator:
    """One operator of a chain. `selectors`: how it finds a record's key, per input; empty when it is not keyed."""

    operator_id: OperatorId
    operator: Operator
    selectors: tuple[KeySelector, ...] = ()

    def pickled(self) -> bytes:
        return pickled(self)


@dataclass(frozen=True, slots=True)
class JobProgram:
    """All user code of one job, made by `of`. The fields are bytes because each reader wants a copy of its own."""

    chains: Mapping[VertexId, bytes]
    edge_selectors: Mapping[int, bytes]
    message_types: bytes
    record_types: tuple[bytes, ...]
    max_parallelism: int
    warm_up: tuple[str, ...] = ()
    """Functions, as "module:name", that make what this program needs ready, as far as no user code is needed for it."""
    serializers: tuple[bytes, ...] = ()
    """Those that the user registered."""

    @staticmethod
    def of(
        chains: Mapping[VertexId, Sequence[ProgramOperator]],
        edge_selectors: Mapping[int, KeySelector],
        max_parallelism: int,
    ) -> JobProgram:
        """`edge_selectors`: by index of the JobEdge, for each HASH edge. Raises what cloudpickle raises."""
        return JobProgram(
            chains={vertex_id: pickled(tuple(chain)) for vertex_id, chain in chains.items()},
            edge_selectors={edge: pickled(selector) for edge, selector in edge_selectors.items()},
            message_types=pickled(registered_messages(own=False)),
            record_types=_ship_record_types(),
            max_parallelism=max_parallelism,
            warm_up=_warm_up(chains),
            serializers=tuple(map(_shipped, registered_serializers())),
        )

    def chain(self, vertex_id: VertexId) -> list[Operator]:
        """The vertex's operators, in order: new objects at every call, with `_selectors` set on the keyed ones."""
        made: list[Operator] = []
        for part in cloudpickle.loads(self.chains[vertex_id]):
            if isinstance(part.operator, KeyedOperator):
                part.operator._selectors = part.selectors
            made.append(part.operator)
        return made

    def edge_selector(self, edge: int) -> KeySelector | None:
        """The key selector of the JobEdge with this index, a new object at every call; None for an edge without."""
        data = self.edge_selectors.get(edge)
        return None if data is None else cloudpickle.loads(data)

    def dumps(self) -> bytes:
        return pickled(self)

    @staticmethod
    def loads(data: bytes) -> JobProgram:
        """The program, with the user's message classes and serializers and a script's record types registered in this
        process, so that they decode here.
        """
        program: JobProgram = cloudpickle.loads(data)
        for tag, message_type in cloudpickle.loads(program.message_types).items():
            register(message_type, tag)
        for record_type in program.record_types:
            register_record_type(cloudpickle.loads(record_type))
        for serializer in program.serializers:
            register_serializer(cloudpickle.loads(serializer))
        return program


class NotShippable(ActorError, TypeError):
    """A registered serializer cannot be pickled, so that no TaskManager could have it."""


def _shipped(serializer: Serializer) -> bytes:
    try:
        return pickled(serializer)
    except Exception as error:
        raise NotShippable(
            f"serializer {serializer.name!r} cannot be shipped to the TaskManagers: {type(error).__name__}: {error}; "
            "let it open what it needs when it is used first"
        ) from error


def _warm_up(chains: Mapping[VertexId, Sequence[ProgramOperator]]) -> tuple[str, ...]:
    operators = [part.operator for chain in chains.values() for part in chain]
    is_compiled = any(isinstance(each, KeyedOperator) and each.compiled for each in operators)
    return (f"{warm_up.__module__}:{warm_up.__name__}",) if is_compiled else ()


def _ship_record_types() -> tuple[bytes, ...]:
    """The script's record types, registered here too. One that cannot be pickled is refused when a record is sent."""
    shipped = []
    for cls in script_record_types():
        with suppress(Exception):  # whatever a class of the user's holds, perhaps no record of it ever travels
            shipped.append(pickled(cls))
            register_record_type(cls)
    return tuple(shipped)
