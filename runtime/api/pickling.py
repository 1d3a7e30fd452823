"""Says what in an operator cannot be pickled, or is large, following attributes, closures, globals and items to it."""

from __future__ import annotations

import functools
import inspect
import traceback
import types
from collections.abc import Iterator
from typing import Any

from ...actors.flow.key_selector import KeySelector
from ...actors.operators.async_functions import AsyncFunction
from ...actors.operators.operator import Operator
from ...actors.operators.record_function import RecordFunction
from ...actors.operators.source import Source
from ...actors.tasks.shipping import pickled
from ...messages.code_outline import ANNOTATE, members_of
from ...messages.shown import one_of_kind
from ...messages.whose_code import PACKAGE
from .errors import NotPicklable
from .warned import warn

LARGE_BYTES = 16 * 1024 * 1024
"""More than this in one operator is mostly data that was meant to stay where it is."""
_MAX_DEPTH = 10
_DRIVER_ONLY = ("pyspark", "py4j")
_NOTEBOOK = ("IPython", "ipykernel")
"""Packages whose objects are named as a whole: their content means nothing to the user."""
_HANDLES = f"{__name__.partition('.')[0]}.runtime.clusters."
"""So are ours of these modules."""


def check_picklable(name: str, operator: Operator, selectors: tuple[KeySelector, ...]) -> None:
    """Raises NotPicklable, naming the operator, the object at fault and the way to it, and what to do."""
    for value in (operator, *selectors):
        error = _failure(value)
        if error is not None:
            steps, culprit = _at_fault(value, _MAX_DEPTH)
            where = f" ({' -> '.join(steps)})" if steps else ""
            why = "" if _is_handle(culprit) else f" Pickle says: {error}"
            raise NotPicklable(
                f"operator {name!r} cannot be shipped to the TaskManagers: it holds {_kind_of(culprit)}{where}. "
                f"{_advice(culprit, operator)}{why}"
            ) from (error if _is_raised_by_user_code(error) else None)


def warn_of_large(name: str, operator: Operator) -> None:
    """Of an operator that has much to take along, naming what holds it. The records of a source are meant to travel."""
    if isinstance(operator, Source) or (size := len(pickled(operator))) <= LARGE_BYTES:
        return
    steps = _to_the_largest(operator, size, _MAX_DEPTH)
    where = f" ({' -> '.join(steps)})" if steps else ""
    warn(
        f"operator {name!r} takes {size / 1e6:,.0f} MB to each TaskManager{where}, and the job begins when all have "
        "it: where that is too slow, let open() of an operator class read the data where it runs"
    )


def _to_the_largest(value: Any, size: int, depth: int) -> tuple[str, ...]:
    """The steps to the part that most of the size is of; into nothing that is data itself."""
    if depth and isinstance(value, Operator | types.FunctionType | types.MethodType | functools.partial):
        for step, part in _parts(value):
            if (found := _size(part)) > size / 2:
                return (step, *_to_the_largest(part, found, depth - 1))
    return ()


def _size(part: Any) -> int:
    """0 of what does not travel: __getstate__ of what holds it may leave it out."""
    try:
        return len(pickled(part))
    except Exception:  # noqa: BLE001 - an object may raise anything when it is pickled
        return 0


def _is_raised_by_user_code(error: Exception) -> bool:
    """In a `__reduce__`, say: then its frames tell more than the text."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].partition(".")[0] not in ("cloudpickle", "pickle", "copyreg", PACKAGE)


def _failure(value: Any) -> Exception | None:
    try:
        pickled(value)
    except Exception as error:  # noqa: BLE001 - an object may raise anything when it is pickled
        return error
    return None


def _at_fault(value: Any, depth: int) -> tuple[tuple[str, ...], Any]:
    """The innermost part that fails to pickle and the steps to it; the value itself when no part of it fails."""
    if depth and not _is_driver_only(value) and not _is_handle(value):
        for step, part in _parts(value):
            if _failure(part) is not None:
                steps, culprit = _at_fault(part, depth - 1)
                return (step, *steps), culprit
    return (), value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case dict():
            yield from ((f"item {key!r}", item) for key, item in value.items())
        case list() | tuple() | set() | frozenset():
            yield from ((f"item {index}", item) for index, item in enumerate(value))
        case types.FunctionType():
            yield from _captured(value)
        case types.MethodType():
            yield f"the object of method {value.__name__}", value.__self__
        case functools.partial():
            yield from (("the partial's function", value.func), ("its arguments", (value.args, value.keywords)))
        case type():
            own = members_of(value).items()
            yield from ((f"method {key}", item) for key, item in own if inspect.isfunction(item) and key != ANNOTATE)
        case _:
            yield from ((f"attribute {key!r}", item) for key, item in getattr(value, "__dict__", {}).items())
            yield f"class {type(value).__name__}", type(value)


def _captured(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What the function takes along: closure variables, the globals that it names, and its defaults."""
    captured, code = inspect.getclosurevars(function), function.__code__
    name = f"{function.__name__} at {code.co_filename}:{code.co_firstlineno}"
    for variables in (captured.nonlocals, captured.globals):
        yield from ((f"variable {key!r} of {name}", item) for key, item in variables.items())
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from ((f"a default of {name}", item) for item in defaults)


def _is_driver_only(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in (*_DRIVER_ONLY, *_NOTEBOOK)


def _is_handle(value: Any) -> bool:
    """Whether it stands for a cluster or a job of one."""
    return any(base.__module__.startswith(_HANDLES) for base in type(value).__mro__)


def _kind_of(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__name__}" if _is_handle(value) else one_of_kind(kind)


def _advice(culprit: Any, operator: Operator) -> str:
    if _is_handle(culprit):
        return (
            "A cluster, and a handle of its jobs, work only in the program that has made them: get there what the "
            "operator needs, and let it hold that value."
        )
    if type(culprit).__module__.partition(".")[0] in _NOTEBOOK:
        return (
            "A notebook's shell, which get_ipython() gives and lines with ! or % use, works in the notebook only: use "
            "a module such as subprocess in its place."
        )
    if _is_driver_only(culprit):
        return (
            "Spark objects live on the driver only: read with from_dataframe, or collect what you need to plain data."
        )
    if isinstance(operator, RecordFunction | AsyncFunction):
        return (
            "Make it in open() of an operator class, which runs where the operator runs; a function has none, so write "
            "a class with open() in its place, and use stream.process(...)."
        )
    return "Make it inside the operator's open(), which runs where the operator runs."
