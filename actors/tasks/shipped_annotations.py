"""Annotations of classes and functions that travel by value.

Those that are texts, as under `from __future__ import annotations`, name what stands in their module, which stays
behind: of a record, whose types state is stored by, what they mean travels in their place.

From Python 3.14 on they are worked out when somebody asks for them, by a function that stands in their module.
cloudpickle leaves that function of a class behind, and asks a function for its own, which raises where one names what
only a type checker imports. A name that was not there yet when a dataclass was made is kept as a `ForwardRef`, which
holds all variables of its module. So what is known when the job is submitted travels in their place, too.
"""

from __future__ import annotations

import sys
import types
import typing
from typing import Any

from ...messages import shape_of
from ...messages.attributes import attributes_of
from ...messages.code_outline import ANNOTATE
from ...messages.own_annotations import own_annotations, resolved_annotations

ARE_LATE = sys.version_info >= (3, 14)


def is_annotated_with_what_is_there(function: types.FunctionType) -> bool:
    try:
        _ = function.__annotations__
    except Exception:  # noqa: BLE001 - an annotation is an expression of the user's
        return False
    return True


def with_known_annotations(function: types.FunctionType) -> types.FunctionType:
    """One that does the same. Of its annotations those that cannot be worked out name what they mean."""
    code, defaults, closure = function.__code__, function.__defaults__, function.__closure__
    same = types.FunctionType(code, function.__globals__, function.__name__, defaults, closure)
    vars(same).update(attributes_of(function))
    for name in ("__kwdefaults__", "__module__", "__qualname__", "__doc__"):
        setattr(same, name, getattr(function, name))
    same.__annotations__ = dict(own_annotations(function))
    return same


def add_annotations(cls: type, members: dict[str, Any]) -> None:
    """To what is shipped of a class, unless it has none, or they are there."""
    if vars(cls).get(ANNOTATE) is not None and "__annotations_cache__" not in members:
        members["__annotations__"] = dict(own_annotations(cls))


def resolve_annotations(cls: type, members: dict[str, Any]) -> None:
    """Of what is shipped of a record's class, those that are texts, or hold some. One that cannot be resolved stays."""
    own = members.get("__annotations__", {})
    if not all(isinstance(hint, type) for hint in own.values()) and shape_of(cls) is not None:
        members["__annotations__"] = resolved_annotations(cls)


def reduced_reference(reference: Any) -> tuple[Any, ...]:
    """What a ForwardRef means, or the name alone where that is not there."""
    try:
        return _itself, (reference.evaluate(),)
    except Exception:  # noqa: BLE001 - an annotation is an expression of the user's
        return typing.ForwardRef, (reference.__forward_arg__,)


def _itself(value: Any) -> Any:
    return value
