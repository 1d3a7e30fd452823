"""From an operator and the columns of its input to a Layout. Refuses types that cannot be compiled, if it sees them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import FunctionType
from typing import Final, Literal

import pyarrow as pa

from ...messages.attributes import attributes_of
from ...state import KeyedStateDeclaration, ReducingState, declared_states
from ...state.columnar.value_kinds import DTYPES, ValueKinds
from ...state.errors import InvalidState
from ..operators.keyed_operator import KeyedOperator
from .errors import CannotCompile
from .layout import FIRST_FREE, Column, Kind, Layout, Method, StateFields, kind_of

RecordForm = Literal["row", "dict", "dict row", "value"]
_KINDS: Final[Mapping[type, Kind]] = {int: "int", float: "float", bool: "bool"}
assert set(_KINDS) == set(DTYPES)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a kernel depends on besides the operator's class."""

    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[tuple[str, pa.DataType], ...]
    attributes: tuple[tuple[str, Kind], ...]
    form: RecordForm
    is_timed: bool = False
    """Whether the records have event times."""
    method: Method = "process"

    def __hash__(self) -> int:
        """Without the types: a user's own extension type has no hash."""
        names = tuple(name for name, _ in (*self.columns, *self.keys))
        return hash((names, self.attributes, self.form, self.is_timed, self.method))

    @property
    def of_timers(self) -> Signature:
        """That of `on_timer` of the same operator, with the same keys."""
        return replace(self, columns=(), form="row", is_timed=True, method="on_timer")


def signature_of(
    operator: KeyedOperator,
    schema: pa.Schema,
    key_types: Sequence[pa.DataType],
    form: RecordForm = "row",
    *,
    is_timed: bool = False,
) -> Signature:
    names = ["key"] if len(key_types) == 1 else [f"key[{part}]" for part in range(len(key_types))]
    names_used = _names_used(type(operator)) - {"timestamp"}
    attributes = ((name, kind_of(getattr(operator, name, None))) for name in sorted(names_used))
    return Signature(
        tuple(zip(schema.names, schema.types, strict=True)),
        tuple(zip(names, key_types, strict=True)),
        tuple((name, kind) for name, kind in attributes if kind is not None),
        form,
        is_timed,
    )


def layout_of(cls: type[KeyedOperator], signature: Signature) -> Layout:
    """A new layout for one compilation. Raises CannotCompile."""
    cell = FIRST_FREE
    columns, cell = _placed(signature.columns, cell)
    keys, cell = _placed(signature.keys, cell)
    states = {}
    for attribute, declaration in _keyed_states(cls):
        states[attribute] = fields = _state_fields(cls, attribute, declaration, cell)
        cell += 1 + len(fields.kinds)
    attributes = {name: (kind, cell + place) for place, (name, kind) in enumerate(signature.attributes)}
    first_output_cell = cell + len(attributes)
    return Layout(
        columns,
        keys,
        states,
        attributes,
        first_output_cell,
        signature.form,
        signature.is_timed,
        signature.method,
    )


@lru_cache(maxsize=1024)
def check_operator(cls: type[KeyedOperator]) -> None:
    """Raises CannotCompile for what no input makes possible."""
    name = cls.__qualname__
    if cls.inputs != 1:
        raise CannotCompile(f"{name} takes two inputs: a compiled operator has one; leave `compiled` out")
    for method in ("process_batch", "_process_keyed"):
        if getattr(cls, method) is not getattr(KeyedOperator, method):
            raise CannotCompile(f"{name} defines {method}: of a compiled operator only process is compiled")
    for method in ("process", "on_timer") if has_on_timer(cls) else ("process",):
        _check_method(f"{name}.{method}", getattr(cls, method), getattr(KeyedOperator, method))
    layout_of(cls, Signature((), (), (), "row"))


def has_on_timer(cls: type[KeyedOperator]) -> bool:
    """Whether there is one to be compiled."""
    return cls.on_timer is not KeyedOperator.on_timer


def uses_time(cls: type[KeyedOperator]) -> bool:
    """Whether its records will have event times, as far as its methods show it."""
    return has_on_timer(cls) or "timestamp" in _names_used(cls)


def _check_method(name: str, method: object, abstract: object) -> None:
    if not isinstance(method, FunctionType) or method is abstract:
        raise CannotCompile(f"{name} is no plain method: found {type(method).__name__}")
    if inspect.isgeneratorfunction(method) or inspect.iscoroutinefunction(method):
        raise CannotCompile(f"{name} is a generator or a coroutine: it collects with out.collect")


def _placed(named: Iterable[tuple[str, pa.DataType]], cell: int) -> tuple[tuple[Column, ...], int]:
    columns = tuple(Column(name, kind, cell + 2 * place) for place, (name, kind) in enumerate(named))
    return columns, cell + 2 * len(columns)


def _keyed_states(cls: type) -> list[tuple[str, KeyedStateDeclaration]]:
    declared = declared_states(cls).items()
    return [(attribute, each) for attribute, each in declared if isinstance(each, KeyedStateDeclaration)]


def _state_fields(cls: type, attribute: str, declaration: KeyedStateDeclaration, cell: int) -> StateFields:
    try:
        found = ValueKinds.of(declaration)
    except InvalidState as error:
        raise CannotCompile(f"{cls.__qualname__} cannot be compiled: {error}") from error
    kinds = tuple(_KINDS[kind] for kind in found.fields)
    reduce = declaration.reduce if isinstance(declaration, ReducingState) else None
    return StateFields(attribute, kinds, found.is_tuple, found.record, found.default, reduce, cell)


@lru_cache(maxsize=1024)
def _names_used(cls: type) -> frozenset[str]:
    """Names that methods of the class mention, and that may be numbers of the instance."""
    names: set[str] = set()
    for base in cls.__mro__[: cls.__mro__.index(KeyedOperator)]:
        for member in attributes_of(base).values():
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType):
                names.update(function.__code__.co_names)
    return frozenset(name for name in names if not hasattr(KeyedOperator, name))
