"""Whether an operator sets timers: found in its methods when one without `on_timer` is put into a stream.

Looked at are the methods that the runtime calls, and those whose names they use. Timers that are set in another way,
as by a function elsewhere, are refused when they are set (actors/operators/timers.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from types import CodeType, FunctionType

from .codes import codes_of, placed_instructions
from .private_names import is_ours

_SET = frozenset({"at_event_time", "at_processing_time"})


def sets_a_timer(kind: type) -> str | None:
    """Where an operator of this class sets one, `file:line`; None: nowhere that can be seen."""
    bases = list(takewhile(lambda base: not is_ours(base), kind.__mro__))
    hooks = {name for base in kind.__mro__ if is_ours(base) for name in vars(base) if not name.startswith("_")}
    waiting, seen = sorted(hooks), set(hooks)
    while waiting:
        for code in _called(bases, waiting.pop()):
            if (place := _sets_timers(code)) is not None:
                return place
            used = {name for each in codes_of(code) for name in each.co_names} - seen
            waiting += sorted(used)
            seen |= used
    return None


def _called(bases: list[type], name: str) -> Iterator[CodeType]:
    """The first method of this name, and those that it stands before, as far as it calls `super`."""
    for base in bases:
        if isinstance(method := vars(base).get(name), FunctionType):
            yield method.__code__
            if "super" not in method.__code__.co_names:
                return
        elif name in vars(base):
            return


def _sets_timers(code: CodeType) -> str | None:
    """Where it calls `self.timers.at_event_time` or its twin: `file:line`."""
    for each in codes_of(code):
        owner = None
        for instruction, place in placed_instructions(each):
            if owner == "timers" and instruction.argval in _SET:
                return place
            owner = instruction.argval
    return None
