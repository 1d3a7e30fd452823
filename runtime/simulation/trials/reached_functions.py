"""ReachedFunctions: what the functions of a user's operator may call or use, as far as names in their code say.

A call through an attribute of an object, or through a variable of a function, is not seen. Libraries are not looked
into.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from inspect import getattr_static
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ....actors.operators.operator import Operator
from ....messages.attributes import attributes_of
from ....messages.code_steps import codes_of, steps
from ....messages.whose_code import is_ours
from ...api.captured_changes import captured_by, functions_of, methods_of_objects

_CACHE = type(lru_cache(int))

_WRAPPED = {partial: "func", MethodType: "__func__", staticmethod: "__func__", classmethod: "__func__"}

_VARIABLES = {"LOAD_GLOBAL": "GLOBAL", "LOAD_NAME": "GLOBAL", "LOAD_DEREF": "DEREF"}
"""Steps that load one, as `captured_by` has them; LOAD_NAME stands in a class within a function."""

_LIBRARIES = frozenset({__name__.partition(".")[0], *sys.stdlib_module_names}) - {"__main__"}


def functions_reached_by(operator: Operator) -> Iterator[FunctionType]:
    """Its own first, each once."""
    own = [each for each in functions_of(operator) if _is_the_users(each)]
    reached = (each for each in _reached_by(operator) if isinstance(each, FunctionType) and _is_the_users(each))
    yield from dict.fromkeys((*own, *reached))


def caches_reached_by(operator: Operator) -> Iterator[Any]:
    """Functions that remember what they have returned."""
    return (each for each in _reached_by(operator) if isinstance(each, _CACHE) and _is_the_users(each.__wrapped__))


def methods_reached_by(operator: Operator) -> Iterator[tuple[FunctionType, object, str]]:
    """Methods of objects of the user's that these functions name, as in `CACHE.add(record)`, with the object and its
    name.
    """
    for function in functions_reached_by(operator):
        for each in _named_in(function):
            if each.holder is None or isinstance(each.holder, type | ModuleType | FunctionType):
                continue
            is_method = isinstance(each.value, FunctionType) and _is_the_users(each.value)
            if is_method and _is_the_users(type(each.holder)):
                yield each.value, each.holder, each.path.rpartition(".")[0]


# ---- inside


class _Named(NamedTuple):
    """`path`: as "CONFIG.values". `holder`: whose attribute it is; None, if it is a variable."""

    path: str
    holder: Any
    value: Any


def _named_in(function: FunctionType) -> Iterator[_Named]:
    """Variables that are not the function's own, and what its code takes from them by attributes alone."""
    captured = captured_by(function)
    for code in codes_of(function.__code__):
        last: _Named | None = None
        for each in steps(code):
            if each.name in _VARIABLES:
                value = captured[_VARIABLES[each.name]].get(each.value)
                last = _Named(each.value, None, value)
            elif each.name == "LOAD_ATTR" and last is not None and last.value is not None:
                last = _Named(f"{last.path}.{each.value}", last.value, getattr_static(last.value, each.value, None))
            else:
                last = None
            if last is not None and last.value is not None:
                yield last


def _reached_by(operator: Operator) -> Iterator[Any]:
    todo: list[Any] = [*attributes_of(operator).values(), *(function for function, _ in methods_of_objects(operator))]
    todo += [kind for kind in type(operator).__mro__ if not is_ours(kind)]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        while type(value) in _WRAPPED:
            value = getattr(value, _WRAPPED[type(value)])
        if id(value) not in seen:
            seen.add(id(value))
            yield value
            todo += _within(value)


def _within(value: Any) -> Iterator[Any]:
    """What a function names: variables of its module, and of other modules; what a class defines."""
    if isinstance(value, _CACHE):
        yield value.__wrapped__
    elif isinstance(value, type) and _is_the_users(value):
        yield from attributes_of(value).values()
    elif isinstance(value, FunctionType) and not _is_the_users(value):
        yield getattr(value, "__wrapped__", None)
    elif isinstance(value, FunctionType):
        yield from captured_by(value)["DEREF"].values()
        named = (each for each in _named_in(value) if each.holder is None or isinstance(each.holder, ModuleType))
        yield from (each.value for each in named if not isinstance(each.value, ModuleType))


def _is_the_users(value: Any) -> bool:
    """A wrapper made by a library has the name of the user's module; its variables are the library's."""
    is_function = isinstance(value, FunctionType)
    module = value.__globals__.get("__name__") if is_function else value.__module__
    file = value.__code__.co_filename if is_function else ""
    return (module or "").partition(".")[0] not in _LIBRARIES and "site-packages" not in file
