"""ProcessCaches: functions of the user's that remember their results (functools.lru_cache, functools.cache).

A real TaskManager's caches end with its process. Simulated processes share one interpreter and the caches in it, so a
cache would outlive each kill, and each history: what it holds is forgotten whenever a new process is given an operator
that may ask it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

from ....actors.operators.operator import Operator
from ....messages.code_steps import codes_of
from ...api.captured_changes import captured_by, methods_of_objects
from ...api.private_names import is_ours
from ..world.file_system import current_disk

_CACHE = type(lru_cache(int))

_WRAPPED = {partial: "func", MethodType: "__func__", staticmethod: "__func__", classmethod: "__func__"}

_OTHERS = frozenset({__name__.partition(".")[0], *sys.stdlib_module_names})
"""Modules whose functions are not looked into."""


class ProcessCaches:
    """Of one history. `look_at`: is called with each operator that a task is given."""

    def __init__(self) -> None:
        self._known: set[tuple[object, object]] = set()
        """Which process has seen which cache."""

    def look_at(self, operator: Operator) -> None:
        """Empty the caches that are new to the process."""
        process = current_disk().owner()
        for cache in caches_of(operator):
            if (process, cache) not in self._known:
                self._known.add((process, cache))
                cache.cache_clear()


def caches_of(operator: Operator) -> Iterator[Any]:
    """Those that its functions may ask, as far as names in their code and in what they call say."""
    todo: list[Any] = [*vars(operator).values(), *(function for function, _ in methods_of_objects(operator))]
    todo += [kind for kind in type(operator).__mro__ if not is_ours(kind)]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        while type(value) in _WRAPPED:
            value = getattr(value, _WRAPPED[type(value)])
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, _CACHE) and _is_looked_into(value):
            yield value
        todo += _within(value)


def _within(value: Any) -> Iterator[Any]:
    """What a function may use: variables of its module, and of other modules that it names; what a class defines."""
    if isinstance(value, _CACHE):
        yield getattr(value, "__wrapped__", None)
    elif isinstance(value, type) and _is_looked_into(value):
        yield from vars(value).values()
    elif isinstance(value, FunctionType) and _is_looked_into(value):
        captured = captured_by(value)
        yield from captured["DEREF"].values()
        for code in codes_of(value.__code__):
            for found in (captured["GLOBAL"].get(name) for name in code.co_names):
                if isinstance(found, ModuleType):
                    yield from (vars(found).get(name) for name in code.co_names)
                else:
                    yield found


def _is_looked_into(value: Any) -> bool:
    return (value.__module__ or "").partition(".")[0] not in _OTHERS
