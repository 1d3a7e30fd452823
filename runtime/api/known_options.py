"""known_options: a method with options of every operator says which there are, with its own, when one is misspelt."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

from ...actors.async_calls.settings import AsyncSettings
from ...actors.known_names import check_arguments, meant
from .joined_streams import Options, OptionsAndUnits

T = TypeVar("T")

_OPTIONS = {f"Unpack[{each.__name__}]": tuple(each.__annotations__) for each in (Options, OptionsAndUnits)}
"""By the annotation of `**options`."""
_ACCEPTED = ("schema",)
"""Taken by every operator, and meant for few."""
_OF_COROUTINES = frozenset(each.name for each in fields(AsyncSettings))
_OWN = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def known_options(cls: type[T]) -> type[T]:
    """Decorates a class. What its methods take, also those of its bases, stays as it is: only the error says more."""
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        options = _OPTIONS.get(getattr(method, "__annotations__", {}).get("options", ""))
        if options is not None and not name.startswith("_") and not hasattr(method, "__wrapped__"):
            setattr(cls, name, _checked(name, method, options))
    return cls


def check_results(called: str, results: Mapping[str, Any], options: Sequence[str], wanted: type) -> None:
    """Of a method that takes results by names of the user's: one that is none, and whose name is like an option's, is
    the option. Raises TypeError.
    """
    for name, given in results.items():
        if not isinstance(given, wanted) and (near := meant(name, options)):
            raise TypeError(f"{called} has no argument {name!r}{near} {given!r:.60} is no aggregate either")


def _checked(name: str, method: Callable[..., Any], options: Sequence[str]) -> Callable[..., Any]:
    own = [each.name for each in inspect.signature(method).parameters.values() if each.kind in _OWN]
    known = [*own[1:], *options]

    @wraps(method)
    def checked(*given: Any, **named: Any) -> Any:
        for each in named:
            if each in _OF_COROUTINES and each not in known:
                raise TypeError(f"{name} has no argument {each!r}: write .async_settings({each}=...) behind it")
        check_arguments(name, named, known, _ACCEPTED)
        return method(*given, **named)

    return checked
