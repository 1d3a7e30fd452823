"""ReachedFunctions: what the functions of a user's operator may call or use, as far as names in their code say.

A call through an attribute of an object, or through a variable of a function, is not seen. Libraries are not looked
into.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from inspect import getattr_static
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ....actors.operators.operator import Operator
from ....messages.code_steps import codes_of
from ....messages.whose_code import is_ours
from ...api.captured_changes import captured_by, functions_of, methods_of_objects

_CACHE = type(lru_cache(int))

_WRAPPED = {partial: "func", MethodType: "__func__", staticmethod: "__func__", classmethod: "__func__"}

_LIBRARIES = frozenset({__name__.partition(".")[0], *sys.stdlib_module_names}) - {"__main__"}


def functions_reached_by(operator: Operator) -> Iterator[FunctionType]:
    """Its own first, each once."""
    own = [each for each in functions_of(operator) if _is_the_users(each)]
    reached = (each for each in _reached_by(operator) if isinstance(each, FunctionType) and _is_the_users(each))
    yield from dict.fromkeys((*own, *reached))


def caches_reached_by(operator: Operator) -> Iterator[Any]:
    """Functions that remember what they have returned."""
    return (each for each in _reached_by(operator) if isinstance(each, _CACHE) and _is_the_users(each.__wrapped__))


def methods_reached_by(operator: Operator) -> Iterator[tuple[FunctionType, object]]:
    """Methods that these functions name, and objects of the user's that they name too, as in `CACHE.add(record)`."""
    for function in functions_reached_by(operator):
        captured = captured_by(function)
        for code in codes_of(function.__code__):
            named = (captured["GLOBAL"].get(name, captured["DEREF"].get(name)) for name in _names_in(code))
            for value in named:
                if isinstance(value, type | ModuleType | FunctionType) or not _is_the_users(type(value)):
                    continue
                methods = (getattr_static(value, name, None) for name in code.co_names)
                yield from ((each, value) for each in methods if isinstance(each, FunctionType) and _is_the_users(each))


# ---- inside


def _names_in(code: CodeType) -> tuple[str, ...]:
    return (*code.co_names, *code.co_freevars)


def _reached_by(operator: Operator) -> Iterator[Any]:
    todo: list[Any] = [*vars(operator).values(), *(function for function, _ in methods_of_objects(operator))]
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
        yield from vars(value).values()
    elif isinstance(value, FunctionType) and not _is_the_users(value):
        yield getattr(value, "__wrapped__", None)
    elif isinstance(value, FunctionType):
        captured = captured_by(value)
        yield from captured["DEREF"].values()
        for code in codes_of(value.__code__):
            for found in (captured["GLOBAL"].get(name) for name in code.co_names):
                if isinstance(found, ModuleType):
                    yield from (vars(found).get(name) for name in code.co_names)
                else:
                    yield found


def _is_the_users(value: Any) -> bool:
    """A wrapper made by a library has the name of the user's module; its variables are the library's."""
    is_function = isinstance(value, FunctionType)
    module = value.__globals__.get("__name__") if is_function else value.__module__
    file = value.__code__.co_filename if is_function else ""
    return (module or "").partition(".")[0] not in _LIBRARIES and "site-packages" not in file
