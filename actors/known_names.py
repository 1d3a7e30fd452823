"""known_names: a call with a name that there is not says which one may be meant, and which there are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..messages import those_there_are

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def meant(found: str, known: Iterable[str]) -> str:
    """The end of a text about a wrong name: those known that end with it, or the one most like it; empty if none is."""
    names = list(known)
    close = [each for each in names if each.endswith(f"_{found}")] or get_close_matches(found, names, 1)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def there_are(found: str, known: Iterable[str]) -> str:
    """The same, with all that there are."""
    names = list(known)
    return f"; it has {those_there_are(found, names) if names else 'none'}"


def check_arguments(called: str, named: Iterable[str], known: Sequence[str], accepted: Container[str] = ()) -> None:
    """Raises TypeError for a name that is neither known nor accepted."""
    for name in named:
        if name not in known and name not in accepted:
            raise TypeError(
                f"{called} has no argument {name!r}{meant(name, known) or '.'} There are {', '.join(known)}"
            )


def known_arguments(called: str, *, first: int = 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function that the user calls as `called`. The parameters before `first` are not the user's."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = [each for each in inspect.signature(function).parameters.values() if each.kind in _NAMED]
        accepted, known = {each.name for each in parameters}, [each.name for each in parameters[first:]]

        @wraps(function)
        def checked(*values: P.args, **named: P.kwargs) -> R:
            check_arguments(called, named, known, accepted)
            return function(*values, **named)

        return checked

    return decorate


def known_names(cls: type[T]) -> type[T]:
    """The same of what a dataclass is made of."""
    made: Callable[..., Any] = cls.__init__
    cls.__init__ = known_arguments(cls.__name__, first=1)(made)  # type: ignore[method-assign]
    return cls
