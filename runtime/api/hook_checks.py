"""Which of an operator's methods may be what kind of function, and what to write in place of another.

Most methods that a task calls are plain functions: the result is there when they return. `process`, or `process_batch`,
may be `async def`, and then `on_timer`, `open` and `close` may be, too. Another one that is `async def`, or a
generator, would be called, and nothing of it would run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import iscoroutinefunction
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from ...actors.operators.committer import CommittableWriter, Committer
from ...actors.operators.idempotent_sink import IdempotentSink
from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.ledger_sink import LedgerSink
from ...actors.operators.of_call import ASYNC_HOOKS, PROCESSING
from ...actors.operators.operator import Operator
from ...actors.operators.source import Source
from ...actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ...actors.unrun import COLLECT, NO_YIELD, NOT_ASYNC, RETURN
from ...actors.windows.window_function import ProcessWindowFunction
from ...messages.attributes import attributes_of
from ...messages.counted import counted
from ...messages.own_annotations import signature_of
from ...state import InvalidState
from ...state.kinds.declared_states import declared_states
from ...state.kinds.state_declaration import StateDeclaration
from ..connectors.paced_source import PacedSource
from .errors import InvalidOperator
from .function_kinds import FunctionKind, found
from .warned import warn

_BATCH = "return one batch each time it is called, in place of `yield`"

HOOKS: Mapping[type[Operator], Mapping[str, str]] = {
    Operator: {
        "check_at_submit": NO_YIELD,
        "open": NO_YIELD,
        "process_batch": COLLECT,
        "process_batch_2": COLLECT,
        "on_watermark": COLLECT,
        "on_end": COLLECT,
        "on_idle": COLLECT,
        "before_barrier": COLLECT,
        "on_checkpoint": NO_YIELD,
        "on_checkpoint_complete": NO_YIELD,
        "on_checkpoint_aborted": NO_YIELD,
        "close": NO_YIELD,
        "on_receive": RETURN,
        "output_schema": RETURN,
    },
    KeyedOperator: {"process": COLLECT, "process_2": COLLECT, "on_timer": COLLECT},
    Source: {
        "poll": _BATCH,
        "offset": RETURN,
        "seek": NO_YIELD,
        "rescale": NO_YIELD,
        "poll_delay_ms": RETURN,
        "source_schema": RETURN,
        "current_splits": RETURN,
    },
    PacedSource: {"read": _BATCH},
    TwoPhaseCommitSink: {
        "check_interval": NO_YIELD,
        "begin_transaction": RETURN,
        "write": NO_YIELD,
        "pre_commit": RETURN,
        "commit": NO_YIELD,
        "abort": NO_YIELD,
        "recover_and_commit": NO_YIELD,
        "recover_and_abort": NO_YIELD,
    },
    LedgerSink: {
        "apply": NO_YIELD,
        "last_marker": RETURN,
        "write": NO_YIELD,
        "stage": RETURN,
        "unstage": RETURN,
    },
    CommittableWriter: {"write": NO_YIELD, "finish": RETURN},
    Committer: {"commit": NO_YIELD, "merge": RETURN},
    IdempotentSink: {"upsert": NO_YIELD},
}
"""By the class whose users define it: what to write in a hook in place of `yield`."""

ARGUMENTS: Mapping[str, Sequence[str]] = {
    "map": ("record",),
    "filter": ("record",),
    "flat_map": ("record",),
    "map_batches": ("batch",),
    "reduce": ("result", "record"),
    "co_group": ("key", "window", "left", "right", "out"),
    "top_n": ("record",),
    "key_by": ("record",),
    "assign_timestamps": ("record",),
    "iterate": ("loop",),
    "bulk_iterate": ("loop",),
    "delta_iterate": ("changed",),
    "improve": ("known", "candidate"),
}
"""What the functions that methods of a stream take are called with."""

FUNCTIONS: Mapping[str, str | None] = {
    "map": "return one record; for several use flat_map, which takes a generator",
    "filter": "return True or False",
    "flat_map": None,
    "map_batches": None,
    "reduce": "return the new result",
    "process": COLLECT,
    "co_group": COLLECT,
    "top_n": "return what the record is sorted by",
    "key_by": "return the key",
    "assign_timestamps": "return the event time",
    "generate": "return the record of that index",
    "on_event": NO_YIELD,
    "iterate": "return two streams",
    "bulk_iterate": "return the stream of the next round",
    "delta_iterate": "return the stream of candidates",
    "improve": "return the better record, or None",
}
"""By the method of a stream that takes a function: the same; None where a generator is as good."""

ASYNC_FUNCTIONS: Mapping[str, tuple[FunctionKind, ...]] = {
    "map": (FunctionKind.COROUTINE,),
    "filter": (FunctionKind.COROUTINE,),
    "flat_map": (FunctionKind.COROUTINE, FunctionKind.ASYNC_GENERATOR),
}
"""The methods of a stream that take `async def`, too."""

_MAY_RETURN_NOTHING = frozenset({"process", "co_group", "on_event", "improve"})
"""Functions that are called for what they do."""
_RESULTS: Mapping[str, str] = {
    "map": "return the record that takes its place",
    "flat_map": "return a list of records, [] for none, or `yield` each",
    "map_batches": "return the batch that takes its place",
}
"""What the others return, where FUNCTIONS does not say it."""

_SOUND: WeakKeyDictionary[FunctionType, set[tuple[type[Operator], str]]] = WeakKeyDictionary()
"""As which hooks a function may be called, as far as that was asked: operators of one program share most of theirs."""

_OF_WINDOWS = {"open": NO_YIELD, "process": COLLECT, "clear": NO_YIELD, "close": NO_YIELD}
_STATE_FUNCTIONS = ("reduce", "fold", "merge")


def check_hooks(operator: Operator) -> None:
    """Raises InvalidOperator for a method, or a function of a state, that would not run."""
    kind = type(operator).__name__
    if operator._is_async:
        _check_one_way(operator)
    for base, hooks in HOOKS.items():
        for hook, in_place_of_yield in hooks.items() if isinstance(operator, base) else ():
            method = getattr(operator, hook)
            sound = _SOUND.setdefault(method.__func__, set()) if _is_own(method, operator) else None
            if sound is None or (base, hook) not in sound:
                if not (operator._is_async and hook in ASYNC_HOOKS and found(method).kind is FunctionKind.COROUTINE):
                    check_runs(f"{kind}.{hook}", method, in_place_of_yield, _instead(operator, hook))
                check_arguments(operator, base, hook)
                if sound is not None:
                    sound.add((base, hook))
    for attribute, value in attributes_of(operator).items():
        if isinstance(value, StateDeclaration):
            raise InvalidOperator(
                f"{kind}: the state {attribute!r} was made in a method, where no task finds it: declare it in the "
                f"class, as `{attribute} = {value.kind}(...)` beside the methods"
            )
    with suppress(InvalidState):  # which submit reports
        for attribute, declared in declared_states(type(operator)).items():
            for name in _STATE_FUNCTIONS:
                if callable(function := getattr(declared, name, None)):
                    check_runs(f"{kind}.{attribute}: the {name} function", function, RETURN)


def check_window_function(function: ProcessWindowFunction) -> None:
    """The same for the methods of a window function that the runtime calls."""
    for hook, in_place_of_yield in _OF_WINDOWS.items():
        check_runs(f"{type(function).__name__}.{hook}", getattr(function, hook), in_place_of_yield)
        check_arguments(function, ProcessWindowFunction, hook)


def _is_own(method: Any, operator: Operator) -> bool:
    """Whether it is a plain method of the operator's class."""
    return isinstance(method, MethodType) and method.__self__ is operator and isinstance(method.__func__, FunctionType)


def check_arguments(operator: object, base: type, hook: str) -> None:
    """Raises InvalidOperator for a hook that cannot be called with the arguments that it will get."""
    parameters = signature_of(getattr(base, hook)).parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):  # as many as there are inputs
        return
    wanted = [each.name for each in parameters if each.name != "self"]
    try:
        signature_of(getattr(operator, hook)).bind(*wanted)
    except TypeError as error:
        raise InvalidOperator(
            f"{type(operator).__name__}.{hook} cannot be called with ({', '.join(wanted)}): {error}; write "
            f"`def {hook}(self{''.join(f', {name}' for name in wanted)})`"
        ) from None
    except ValueError:  # a builtin that does not tell
        return


def check_function(method: str, function: Callable[..., Any]) -> None:
    """The same for the function that a method of a stream takes."""
    there = found(function)
    what = f"{method}: the function {there.name}"
    if not is_async_function(method, function):
        instead = "write an operator with `async def process_batch`" if method == "map_batches" else NOT_ASYNC
        check_runs(what, function, FUNCTIONS[method], instead)
    _check_takes(what, function, ARGUMENTS.get(method, ()))
    if method in _MAY_RETURN_NOTHING:
        return
    wanted = _RESULTS.get(method) or FUNCTIONS[method] or ""
    if there.prints:
        at = "" if function is print else f" ({there.where})"
        problem = (
            f"{what}{at} gives what print(...) returns, which is None: {wanted}; to see records, .print() ends a stream"
        )
        if method != "map":
            raise InvalidOperator(problem)
        warn(problem)
    elif there.returns_nothing:
        problem = f"{what} returns nothing ({there.where}), so each result is None: {wanted}"
        if method != "map":  # which may be called for what it does
            raise InvalidOperator(f"{problem}; is a `return` missing?")
        warn(f"{problem}, if a `return` is missing")
    elif method in ("map", "filter", "reduce") and there.in_place:
        instead = "make a new record, as in `lambda record: {**record, 'x': 1}`" if method == "map" else wanted
        warn(
            f"{what} ({there.where}) gives what .{there.in_place}(...) returns, which is None for a dict, list or set: "
            f"{instead}"
        )


def _check_takes(what: str, function: Callable[..., Any], given: Sequence[str]) -> None:
    """Whether it can be called with these; what cannot be known, as of classes, is not checked."""
    if not given or inspect.isclass(function):
        return
    try:
        wanted = signature_of(function)
    except (TypeError, ValueError):
        return
    try:
        wanted.bind(*given)
    except TypeError as error:
        hint = ""
        if given == ("record",) and len(wanted.parameters) > 1:
            hint = "; a pair, as a join of records gives it, is one record: write `lambda pair: pair[0] ...`"
        raise InvalidOperator(
            f"{what} is called with {counted(len(given), 'argument')}, ({', '.join(given)}), and "
            f"takes {wanted}: {error}{hint}"
        ) from None


def is_async_function(method: str, function: Callable[..., Any]) -> bool:
    """Whether the function of `map`, `filter` or `flat_map` runs as a coroutine."""
    return method in ASYNC_FUNCTIONS and found(function).kind in ASYNC_FUNCTIONS[method]


def _instead(operator: Operator, hook: str) -> str:
    """The remedy for a hook that is `async def` and may not be."""
    if hook in ASYNC_HOOKS and not operator._is_async:
        return f"`{hook}` may be async where `process`, or `process_batch`, is; or {NOT_ASYNC}"
    if hook == "process_batch_2":
        return "write `async def process` and `async def process_2`, which get one record each"
    return NOT_ASYNC


def _check_one_way(operator: Operator) -> None:
    """Raises InvalidOperator for coroutines in an operator that cannot have them, or has something else beside them."""
    kind, base = type(operator), KeyedOperator if isinstance(operator, KeyedOperator) else Operator
    own = [name for name in PROCESSING if getattr(kind, name, None) is not getattr(base, name, None)]
    coroutines = [name for name in own if iscoroutinefunction(getattr(kind, name))]
    others = [name for name in own if name not in coroutines]
    first = f"{kind.__name__}.{coroutines[0]} is `async def` ({found(getattr(operator, coroutines[0])).where})"
    if getattr(operator, "compiled", False):
        raise InvalidOperator(
            f"{first}, and `compiled = True`: machine code cannot wait for anything; write `def`, or take "
            "`compiled = True` out"
        )
    if others:
        raise InvalidOperator(f"{first}, and {others[0]} is not: write both of them as `async def`, or none")
    if "process_batch" in coroutines and base is KeyedOperator:
        raise InvalidOperator(f"{first}, and records of many keys are in one batch: write `async def process`")
    if "process_batch" in coroutines and len(coroutines) > 1:
        raise InvalidOperator(f"{first}, and so is process_batch: only one of them would be called; leave one out")


def check_runs(
    what: str, function: Callable[..., Any], in_place_of_yield: str | None, instead: str = NOT_ASYNC
) -> None:
    """Raises InvalidOperator for a function of which nothing would run when it is called."""
    there = found(function)
    yields = there.kind in (FunctionKind.GENERATOR, FunctionKind.ASYNC_GENERATOR)
    if yields and in_place_of_yield is not None:
        raise InvalidOperator(f"{what} is {there}, and none of its code would run: {in_place_of_yield}")
    if there.kind.is_async:
        raise InvalidOperator(f"{what} is {there}, and a task calls it as a plain function: {instead}")
