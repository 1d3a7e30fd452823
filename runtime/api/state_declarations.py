"""States that a class names and does not declare: `n = ValueState[int]`, `n = ValueState`, or an annotation alone, as
`n: ValueState[int]` and `n: ValueState(int)`.

Python takes all of these, and the operator has no such state. Found where the stream is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from ...actors.operators.operator import Operator
from ...messages.attributes import attributes_of
from ...messages.own_annotations import own_annotations
from ...state import FoldingState, ListState, MapState, OperatorListState, ReducingState, ValueState
from .errors import InvalidOperator
from .users_code import users_classes

_KINDS = {
    kind.__name__: kind for kind in (ValueState, ListState, MapState, ReducingState, FoldingState, OperatorListState)
}
_EXAMPLES = {
    "ValueState": "ValueState({types}, default=...)",
    "ReducingState": "ReducingState({types}, function)",
    "FoldingState": "FoldingState({types}, initial, function)",
}


def check_declarations(operator: Operator) -> None:
    """Raises InvalidOperator for a class of a user's that names a state without a declaration."""
    kind = type(operator)
    for cls in users_classes(kind):
        for attribute, what, wanted in (*_values(cls), *_annotations(cls, operator)):
            raise InvalidOperator(
                f"{cls.__name__}.{attribute} {what}, which declares no state: write {attribute} = {wanted}"
            )


def _values(cls: type) -> Iterator[tuple[str, str, str]]:
    for attribute, value in attributes_of(cls).items():
        if attribute.startswith("__") or isinstance(value, str):
            continue
        if (found := _kind_of(value)) is not None:
            yield attribute, f"is {_written(found)}", _declared(found)


def _annotations(cls: type, operator: Operator) -> Iterator[tuple[str, str, str]]:
    """Those without a value, be it of a subclass or of the instance."""
    for attribute, annotation in own_annotations(cls).items():
        if hasattr(operator, attribute):
            continue
        if (found := _kind_of(annotation)) is not None:
            yield attribute, f"is only annotated, as {_written(found)}", _declared(found)
        elif called := _called(annotation):
            yield attribute, f"is only annotated, as {called}", called


def _called(annotation: Any) -> str:
    """A declaration that stands behind a colon, in place of `=`; empty if it is none."""
    if isinstance(annotation, str):
        return annotation if annotation.partition("(")[0] in _KINDS else ""
    if type(annotation) not in _KINDS.values():
        return ""
    types = (getattr(annotation, name, None) for name in ("type", "key_type", "value_type"))
    return f"{type(annotation).__name__}({', '.join(each.__name__ for each in types if isinstance(each, type))})"


def _declared(found: tuple[str, str]) -> str:
    name, types = found
    return _EXAMPLES.get(name, f"{name}({{types}})").format(types=types or "type")


def _kind_of(value: Any) -> tuple[str, str] | None:
    """The kind of a state and its types, as texts, where `value` is a class of states, or names one."""
    if isinstance(value, str):
        name, _, types = value.removesuffix("]").partition("[")
        return (name, types) if name in _KINDS else None
    origin = get_origin(value) or value
    for name, kind in _KINDS.items():
        if origin is kind:
            return name, ", ".join(getattr(each, "__name__", str(each)) for each in get_args(value))
    return None


def _written(found: tuple[str, str]) -> str:
    name, types = found
    return f"{name}[{types}]" if types else name
