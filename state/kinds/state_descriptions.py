"""StateDescriptions: what a program declares of its states, as savepoints keep it, and whether the two fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ...messages import StateDescription
from ..errors import InvalidState
from .aggregation_fit import AGGREGATION, aggregation_misfit
from .declared_states import declared_states
from .descriptors import OperatorListState
from .record_serializer import declared_schema
from .rows_fit import ROWS, rows_misfit
from .schema_fit import is_converted, misfit, schema_text, values_of
from .state_declaration import StateDeclaration

LIST_KINDS = frozenset({OperatorListState.kind, "SourceOffset"})
"""State of an operator, not of its keys."""

CALLS: Final = StateDescription("records in flight", "AsyncCalls")
"""What the coroutines of an operator have in flight. No declaration can have this name."""


def describe_states(cls: type) -> tuple[StateDescription, ...]:
    """The states that a class declares. Raises InvalidState for declarations that cannot work, and for types whose
    values cannot be stored.

    A schema is None where it depends on a serialiser that is registered only where the operator runs.
    """
    return tuple(map(description_of, declared_states(cls).values()))


def description_of(declared: StateDeclaration) -> StateDescription:
    """Of one state. Raises InvalidState."""
    if why := declared.unstorable():
        raise InvalidState(f"state {declared.name!r} is a {type(declared).__name__}: {why}")
    try:
        schema = declared_schema(declared.stored_node())
    except LookupError:
        schema = None
    mode = declared.mode if isinstance(declared, OperatorListState) else ""
    return StateDescription(declared.name, declared.kind, schema, declared.former_names, declared.beside, mode)


def with_rules(states: Sequence[StateDescription], rules: Mapping[str, str]) -> tuple[StateDescription, ...]:
    """The same, where those of keys also say by which rules of their operator they came about."""
    return tuple(replace(each, schema=_ruled(each, rules)) for each in states) if rules else tuple(states)


def _ruled(state: StateDescription, rules: Mapping[str, str]) -> Any:
    if state.schema is None or not is_keyed(state):
        return state.schema
    if state.kind == ROWS:
        return state.schema | {"rules": dict(rules)}
    return {"made by": dict(rules), "values": state.schema}


def state_misfit(declared: StateDescription, stored: StateDescription) -> str:
    """Why a stored state cannot be taken over by a declared one of the same name; empty if it can, or is not known."""
    if declared.kind != stored.kind:
        return f"was a {stored.kind} and is a {declared.kind} now"
    if declared.schema is None or stored.schema is None:
        return ""
    match declared.kind:
        case "ColumnarAggregate":
            found = aggregation_misfit(declared.schema, stored.schema)
            return "" if found is None else str(found)
        case "KeyedRows":
            return str(rows_misfit(declared.schema, stored.schema) or "")
        case "SourceOffset":
            was, now = stored.schema["source"], declared.schema["source"]
            return "" if was == now else f"the source was a {was} and is a {now} now: its offset means nothing to that"
    return misfit(declared.schema, stored.schema)


def conversion(declared: StateDescription, stored: StateDescription) -> str:
    """How its values can be made of the stored ones by `.migrating(...)`, as advice; empty where they cannot: it makes
    other values, and no other keys.
    """
    if declared.kind != stored.kind or declared.kind in (AGGREGATION, ROWS, "SourceOffset"):
        return ""
    match values_of(declared.schema), values_of(stored.schema):
        case {"map": [key, _]}, {"map": [stored_key, _]} if misfit(key, stored_key):
            return ""
    advice = "convert its values with .migrating(old type, function), "
    if (name := _record_in(stored.schema)) is None:
        return f"{advice}or "
    was = {"class": name}
    return f"{advice}where a class with the old fields and __formerly__ = {was} stands for the old {name}; or "


def _record_in(schema: Any) -> str | None:
    """The name of the record that values or items of a schema are; None if they are none."""
    match schema:
        case {"record": name}:
            return str(name)
        case {"list": inner} | {"optional": inner} | {"ttl": inner} | {"map": [_, inner]} | {"values": inner}:
            return _record_in(inner)
    return None


def names_of(state: StateDescription) -> tuple[str, ...]:
    """Its name, and those that it may have been stored under."""
    return (state.name, *state.formerly)


def state_change(declared: StateDescription, stored: StateDescription) -> str:
    """What becomes of the values of a stored state that fits: "compatible", or "migrated: was ..., is ..."."""
    named = f"was called {stored.name!r}" if stored.name != declared.name else ""
    is_plain = declared.kind not in (AGGREGATION, ROWS, "SourceOffset") and None not in (declared.schema, stored.schema)
    if is_plain and is_converted(declared.schema, stored.schema):
        named += f"{', ' * bool(named)}was {schema_text(stored.schema)}, is {schema_text(declared.schema)}"
    return f"migrated: {named}" if named else "compatible"


def is_keyed(state: StateDescription) -> bool:
    return state.kind not in LIST_KINDS


def is_columnar(state: StateDescription) -> bool:
    """Whether it is all that its operator holds, in a format of its own."""
    return state.kind in (AGGREGATION, ROWS)
