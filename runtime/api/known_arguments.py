"""known_arguments: a call with an argument that there is not says which one may be meant, and which there are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def known_arguments(called: str, *, first: int = 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function that the user calls as `called`. The parameters before `first` are not the user's."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = [each for each in inspect.signature(function).parameters.values() if each.kind in _NAMED]
        accepted, known = {each.name for each in parameters}, [each.name for each in parameters[first:]]

        @wraps(function)
        def checked(*values: P.args, **named: P.kwargs) -> R:
            for name in named:
                if name not in accepted:
                    close = get_close_matches(name, known, 1)
                    hint = f"; did you mean {close[0]!r}?" if close else ";"
                    raise TypeError(f"{called} has no argument {name!r}{hint} There are {', '.join(known)}")
            return function(*values, **named)

        return checked

    return decorate
