"""What the name of a type stands for: a NewType, or from Python 3.12 on that of a `type` statement."""

from __future__ import annotations

import typing
from typing import Any

_MOST_NAMES = 64
"""A name that leads through more names than these stands for itself."""


def meant_by(hint: Any) -> Any:
    """The type that a name was given to, which may be another such name; any other type as it is.

    Of `Many[int]`, after `type Many[T] = list[T]`, that is `list[int]`. A name whose type cannot be resolved here, as
    one that only a type checker imports, is left as it is.
    """
    if isinstance(hint, typing.NewType):
        return hint.__supertype__
    origin = typing.get_origin(hint)
    named = hint if origin is None else origin
    if type(named).__name__ != "TypeAliasType":  # of typing from 3.12 on, or of typing_extensions
        return hint
    try:
        meant = named.__value__
    except NameError:
        return hint
    return meant if origin is None else _with(meant, dict(zip(named.__type_params__, hint.__args__, strict=False)))


def meant(hint: Any) -> Any:
    """The type that is no name, through all of its names; a name that in the end stands for itself as it is."""
    found = hint
    for _ in range(_MOST_NAMES):
        if (inner := meant_by(found)) is found:
            return found
        found = inner
    return hint


def _with(hint: Any, arguments: dict[Any, Any]) -> Any:
    """The type with these in the place of its parameters."""
    own = getattr(hint, "__parameters__", ())
    if hint in arguments:
        return arguments[hint]
    return hint[tuple(arguments.get(each, each) for each in own)] if own else hint
