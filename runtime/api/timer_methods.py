"""Whether an operator sets timers: found in its methods when one without `on_timer` is put into a stream.

Looked at are the methods that the runtime calls, and those whose names they use; of a base's methods what comes before
their first condition, as a base may leave it to its subclasses whether there are timers. Timers that are set in another
way, as by a function elsewhere, are refused when they are set (actors/operators/timers.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from ...messages.attributes import attributes_of
from ...messages.code_steps import Step, codes_of, placed_steps
from ...messages.whose_code import is_ours
from .counted_names import is_counted_with
from .users_code import users_classes

OF_EVENT_TIME = frozenset({"at_event_time"})
_TIMES = frozenset({"timestamp", "timestamp_ms", "ts", "time", "time_ms", "timestampMs"})
_SET = OF_EVENT_TIME | {"at_processing_time"}


_Placed: TypeAlias = "tuple[Step, str]"


def sets_a_timer(kind: type, by: Set[str] = _SET) -> str | None:
    """Where an operator of this class sets one, `file:line`; None: nowhere to be seen. `by`: the methods for it."""
    bases = list(users_classes(kind))
    hooks = {name for base in kind.__mro__ if is_ours(base) for name in attributes_of(base) if not name.startswith("_")}
    waiting, seen = sorted(hooks), set(hooks)
    while waiting:
        for certain in _called(bases, waiting.pop()):
            if (place := _sets_timers(certain, by)) is not None:
                return place
            used = {str(each.value) for each, _ in certain} - seen
            waiting += sorted(used)
            seen |= used
    return None


def out_of_reach(operator: Any) -> str:
    """The end of a text about an `on_timer` that is missing: the one that there is, and that is not called."""
    if "on_timer" in getattr(operator, "__dict__", ()):
        return "; it sets one on the instance, which is not called: define it in the class"
    kinds = type(operator).__mro__
    (ours, *behind) = [each for each in kinds if "on_timer" in vars(each)]
    if behind and not is_ours(other := behind[0]):
        name = other.__name__
        return f"; {name}.on_timer stands behind {ours.__name__}'s: name {name} first among the bases"
    return ""


def timer_as_time(kind: type) -> str | None:
    """How the `on_timer` of this class calls its timer, if it is called, and compared or counted with, as the number
    that Flink gives.
    """
    method = getattr(kind, "on_timer", None)
    if not isinstance(method, FunctionType) or is_ours(method) or method.__code__.co_argcount < 2:
        return None
    name = method.__code__.co_varnames[1]
    if name not in _TIMES or any("time_ms" in code.co_names for code in codes_of(method.__code__)):
        return None
    return name if is_counted_with(name, method.__code__) else None


def _called(bases: list[type], name: str) -> Iterator[list[_Placed]]:
    """What the first method of this name does, and those that it stands before, as far as it calls `super`."""
    for base in bases:
        if isinstance(method := vars(base).get(name), FunctionType):
            code = method.__code__
            itself = code.co_varnames[0] if code.co_argcount else ""
            yield list(_instructions(code, itself, whole=base is bases[0]))
            if "super" not in code.co_names:
                return
        elif name in vars(base):
            return


def _instructions(code: CodeType, itself: str, *, whole: bool) -> Iterator[_Placed]:
    """Of a method, or of what lies within it and uses the same object; if not `whole`, those before a condition, which
    in a comprehension is for that alone.
    """
    is_certain = True
    for each, place in placed_steps(code):
        is_certain |= not each.is_inlined
        if not whole and "JUMP" in each.name and "_IF_" in each.name:
            if not each.is_inlined:
                return
            is_certain = False
        if not is_certain:
            continue
        yield each, place
        if isinstance(inner := each.value, CodeType) and itself in inner.co_freevars:
            yield from _instructions(inner, itself, whole=whole)


def _sets_timers(instructions: list[_Placed], by: Set[str]) -> str | None:
    """Where it calls `self.timers.at_event_time` or its twin, or one of a variable `timers`: `file:line`."""
    before: list[Step] = []
    for each, place in instructions:
        if each.value in by and before and before[-1].value == "timers":
            of_object = before[-1].name == "LOAD_ATTR"
            if not of_object or (len(before) > 1 and before[-2].name != "LOAD_ATTR"):
                return place
        before = [*before[-1:], each]
    return None
