"""What calling a function gives: its result, or code that has not run yet. Known from the function itself, uncalled.

A function is judged by what is called: a `functools.partial`, a bound method, a cached function or an object with
`__call__` by the function behind it; a decorated one by the decorator's own function, which may well run a coroutine
to its end. The result of such a function is checked when the job runs (actors/unrun.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from types import CodeType, FunctionType, MethodType
from typing import Any

from ...messages.code_steps import Step, steps
from ...messages.shown import place_of_code

_WITH_A_FUNCTION = (MethodType, staticmethod, classmethod)
_IN_PLACE = frozenset({"update", "append", "extend", "insert", "sort", "reverse", "clear", "add", "discard"})
_CALLS = frozenset({"CALL", "CALL_FUNCTION_EX"})
"""Not CALL_INTRINSIC_1, which is what 3.12 does for `+x` and `f(*a, b)`."""
_CACHED = type(functools.cache(len))


class FunctionKind(Enum):
    PLAIN = "plain"
    GENERATOR = "generator"
    COROUTINE = "coroutine"
    ASYNC_GENERATOR = "async generator"

    @property
    def is_async(self) -> bool:
        return self in (FunctionKind.COROUTINE, FunctionKind.ASYNC_GENERATOR)


@dataclass(frozen=True, slots=True)
class FunctionFound:
    """`name`: the function's own. `where`: its file and line, of a generator those of its first `yield`.
    `returns_nothing`: it ends without a value wherever it returns. `in_place`: the method of a dict or list that a
    lambda does nothing but call, such as `update`, which returns None. `prints`: it is `print`, or a lambda that does
    nothing but call it.
    """

    kind: FunctionKind
    name: str
    where: str
    returns_nothing: bool = False
    in_place: str = ""
    prints: bool = False

    def __str__(self) -> str:
        match self.kind:
            case FunctionKind.GENERATOR:
                return f"a generator (`yield` at {self.where})"
            case FunctionKind.ASYNC_GENERATOR:
                return f"an async generator ({self.where})"
            case FunctionKind.COROUTINE:
                return f"`async def` ({self.where})"
            case _:
                return f"a plain function ({self.where})"


def found(given: Callable[..., Any]) -> FunctionFound:
    """Of whatever can be called. A class counts as plain: to call it makes an object."""
    function = _called(given)
    kind = _kind(function)
    code = getattr(inspect.unwrap(function) if kind is FunctionKind.PLAIN else function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    own = getattr(function, "__code__", None)
    return FunctionFound(
        kind, name, _where(code, kind), _returns_nothing(own, kind), _in_place(own), _only_prints(function, own)
    )


def _called(given: Any) -> Any:
    """The function that runs when this is called; an object for which Python shows none is returned as it is."""
    while not isinstance(given, FunctionType | type):
        if isinstance(given, functools.partial):
            given = given.func
        elif isinstance(given, _WITH_A_FUNCTION):
            given = given.__func__
        elif isinstance(given, _CACHED):
            given = given.__wrapped__
        elif isinstance(method := getattr(type(given), "__call__", None), FunctionType):  # noqa: B004
            given = method
        else:
            break
    return given


def _kind(function: Any) -> FunctionKind:
    if inspect.isasyncgenfunction(function):
        return FunctionKind.ASYNC_GENERATOR
    if inspect.iscoroutinefunction(function):
        return FunctionKind.COROUTINE
    return FunctionKind.GENERATOR if inspect.isgeneratorfunction(function) else FunctionKind.PLAIN


def _where(code: Any, kind: FunctionKind) -> str:
    line = None
    if kind is FunctionKind.GENERATOR:
        line = next((each.line for each in steps(code) if each.name == "YIELD_VALUE"), None)
    return place_of_code(code, line) or "of unknown source"


def _returns_nothing(code: Any, kind: FunctionKind) -> bool:
    """False also for one that only raises, and where Python shows no code."""
    if not isinstance(code, CodeType) or kind in (FunctionKind.GENERATOR, FunctionKind.ASYNC_GENERATOR):
        return False
    returned = [_before(before, each) for before, each in pairwise(steps(code)) if each.name == "RETURN_VALUE"]
    return bool(returned) and all(each is None for each in returned)


def _only_prints(function: Any, code: Any) -> bool:
    """Whether it is `print`, or a lambda that returns what `print` does."""
    if not isinstance(code, CodeType):
        return function is print
    if code.co_name != "<lambda>" or "print" in (*code.co_varnames, *code.co_freevars):
        return False
    done = list(steps(code))
    loads = any(each.name == "LOAD_GLOBAL" and each.value == "print" for each in done)
    is_python_s = function.__globals__.get("print", print) is print
    return loads and is_python_s and _calls_one(done)


def _calls_one(done: list[Step]) -> bool:
    """Whether a lambda of these steps makes one call, always, and returns its result."""
    if len(done) < 2 or any("JUMP" in each.name for each in done):
        return False
    return sum(each.name in _CALLS for each in done) == 1 and done[-2].name in _CALLS


def _in_place(code: Any) -> str:
    """The one method that a lambda calls, if it is one that changes a dict, list or set in place."""
    if not isinstance(code, CodeType) or code.co_name != "<lambda>":
        return ""
    done = list(steps(code))
    if not _calls_one(done):
        return ""
    called = [each.value for each in done if each.name == "LOAD_ATTR" and each.value in _IN_PLACE]
    return str(called[0]) if called else ""


def _before(step: Step, returns: Step) -> Any:
    """The returned value if it is the constant of the step before; some text for one that is not known before it runs,
    as that of another branch in `x or None`.
    """
    return step.value if step.name == "LOAD_CONST" and not returns.is_jump_target else "not a constant"
