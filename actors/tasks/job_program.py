"""JobProgram: the user code of one job, as it travels from the client to the job's TaskManagers.

The companion of the JobGraph, which describes structure only. It goes from parent to child (Spark's closure, the pipe
of a spawned process), never through a socket, and only there is anything unpickled. Operators lie pickled inside, a
blob per chain, so that each subtask gets objects of its own, also when many subtasks share a process.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

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
from ..errors import ActorError, CannotLoad
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from .module_source import ModuleSource
from .shipping import CodeOrigins, file_of, know_cells, pickled

if TYPE_CHECKING:
    from ..flow.key_selector import KeySelector

_OF_MODULE = re.compile(r"<?module '([\w.]+)'")
"""In what Python says of a name that a module does not have."""

PYTHON = "{}.{}".format(*sys.version_info[:2])
"""Of this process: another one's byte code is not for it."""


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
    modules: Mapping[str, str] = field(default_factory=dict)
    """What the operators name and a TaskManager imports, and from which files the driver has it."""
    cells: Mapping[str, str] = field(default_factory=dict)
    """Source text of code of a notebook, by the names of its files, which nobody has."""
    sources: Mapping[str, ModuleSource] = field(default_factory=dict)
    """Which text of its modules a TaskManager may import; empty: any."""
    python: str = ""
    """Of the process that has pickled it; empty: not known."""
    refusal: CannotLoad | None = None
    """Why this process can make no operators of it."""

    @staticmethod
    def of(
        chains: Mapping[VertexId, Sequence[ProgramOperator]],
        edge_selectors: Mapping[int, KeySelector],
        max_parallelism: int,
    ) -> JobProgram:
        """`edge_selectors`: by index of the JobEdge, for each HASH edge. Raises what cloudpickle raises."""
        origins = CodeOrigins()
        return JobProgram(
            chains={vertex_id: pickled(tuple(chain), origins) for vertex_id, chain in chains.items()},
            edge_selectors={edge: pickled(selector, origins) for edge, selector in edge_selectors.items()},
            message_types=pickled(registered_messages(own=False), origins),
            record_types=_ship_record_types(origins),
            max_parallelism=max_parallelism,
            warm_up=_warm_up(chains),
            serializers=tuple(_shipped(each, origins) for each in registered_serializers()),
            modules=origins.modules,
            cells=origins.cells,
            python=PYTHON,
        )

    def chain(self, vertex_id: VertexId) -> list[Operator]:
        """The vertex's operators, in order: new objects at every call, with `_selectors` set on the keyed ones. Raises
        CannotLoad.
        """
        made: list[Operator] = []
        for part in self._loaded(self.chains[vertex_id]):
            if isinstance(part.operator, KeyedOperator):
                part.operator._selectors = part.selectors
            made.append(part.operator)
        return made

    def edge_selector(self, edge: int) -> KeySelector | None:
        """The key selector of the JobEdge with this index, a new object at every call; None for an edge without."""
        data = self.edge_selectors.get(edge)
        return None if data is None else self._loaded(data)

    def dumps(self) -> bytes:
        return pickled(self)

    @staticmethod
    def loads(data: bytes, watch: Callable[[Mapping[str, ModuleSource]], None] = lambda _: None) -> JobProgram:
        """The program, with the user's message classes and serializers and a script's record types registered in this
        process, so that they decode here. What cannot be loaded of them fails the tasks, and not this process.

        `watch` gets the sources before anything of the user's is imported, and may raise CannotLoad.
        """
        program: JobProgram = cloudpickle.loads(data)
        try:
            program._check_python()
            watch(program.sources)
            know_cells(program.cells)
            program._register()
        except CannotLoad as error:
            return replace(program, refusal=error)
        return program

    def _check_python(self) -> None:
        """Nothing has been unpickled yet that could hold code: what runs byte code of another Python may crash."""
        if self.python not in ("", PYTHON):
            raise CannotLoad(
                f"it was submitted with Python {self.python}, and this TaskManager runs Python {PYTHON} "
                f"({sys.executable}), which cannot run that code: install the same Python on all hosts, and submit the "
                "job with it"
            )

    def _register(self) -> None:
        for tag, message_type in self._loaded(self.message_types).items():
            register(message_type, tag)
        for record_type in self.record_types:
            register_record_type(self._loaded(record_type))
        for serializer in self.serializers:
            register_serializer(self._loaded(serializer))

    def _loaded(self, data: bytes) -> Any:
        if self.refusal is not None:
            raise self.refusal
        try:
            return cloudpickle.loads(data)
        except CannotLoad:
            raise
        except Exception as error:
            raise CannotLoad(f"{error}{_difference(error, self.modules)}") from error


def _difference(error: BaseException, modules: Mapping[str, str]) -> str:
    """What the driver has imported, and this process has or has not, and what to do; empty where that is unknown."""
    found = _OF_MODULE.search(str(error))
    name = found[1] if found else getattr(error, "name", None) if isinstance(error, ImportError) else None
    theirs, ours = modules.get(name or "", ""), file_of(name or "")
    if not theirs:
        return ""
    if not ours:
        return (
            f"; the driver imported {name!r} from {theirs}, which this TaskManager does not have: install it here, or "
            "put it back"
        )
    if ours != theirs:
        return (
            f"; the driver imported {name!r} from {theirs}, this TaskManager from {ours}: rename one of the two, or "
            "remove the one that is not meant"
        )
    return (
        f"; the driver imported {name!r} from the same file, {theirs}: the file has changed since then, or the name is "
        'set only where the driver runs, as below `if __name__ == "__main__":`; set it where any import does, and '
        "submit the job again"
    )


class NotShippable(ActorError, TypeError):
    """A registered serializer cannot be pickled, so that no TaskManager could have it."""


def _shipped(serializer: Serializer, origins: CodeOrigins) -> bytes:
    try:
        return pickled(serializer, origins)
    except Exception as error:
        raise NotShippable(
            f"serializer {serializer.name!r} cannot be shipped to the TaskManagers: {type(error).__name__}: {error}; "
            "let it open what it needs when it is used first"
        ) from error


def _warm_up(chains: Mapping[VertexId, Sequence[ProgramOperator]]) -> tuple[str, ...]:
    operators = [part.operator for chain in chains.values() for part in chain]
    is_compiled = any(isinstance(each, KeyedOperator) and each.compiled for each in operators)
    return (f"{warm_up.__module__}:{warm_up.__name__}",) if is_compiled else ()


def _ship_record_types(origins: CodeOrigins) -> tuple[bytes, ...]:
    """The script's record types, registered here too. One that cannot be pickled is refused when a record is sent."""
    shipped = []
    for cls in script_record_types():
        with suppress(Exception):  # whatever a class of the user's holds, perhaps no record of it ever travels
            shipped.append(pickled(cls, origins))
            register_record_type(cls)
    return tuple(shipped)
