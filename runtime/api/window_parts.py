"""What a program makes windows of: its own assigners, triggers, evictors, aggregates and watermark generators.

Their bases do something where a method is not defined, so one under Flink's name would be called by nothing, and no
error would say so: an evictor would keep all records, a trigger never fire, an aggregate give its accumulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from ...actors.operators.watermark_generators import WatermarkGenerator
from ...actors.unrun import RETURN
from ...actors.windows.assigners import WindowAssigner
from ...actors.windows.evictors import Evictor
from ...actors.windows.triggers import Trigger, parts
from ...actors.windows.window_contents import AggregateFunction
from ...messages.attributes import attributes_of
from ...messages.code_steps import codes_of
from ...messages.whose_code import is_ours
from .errors import InvalidOperator
from .hook_checks import check_arguments, check_runs

_CALLED: Mapping[type, Mapping[str, tuple[str, ...]]] = {
    WindowAssigner: {"assign": ("assign_windows", "assignWindows")},
    Trigger: {
        "on_record": ("on_element", "onElement", "on_event"),
        "on_event_time": ("onEventTime", "on_timer"),
        "on_processing_time": ("onProcessingTime",),
        "on_merge": ("onMerge",),
        "clear": (),
    },
    Evictor: {"before": ("evict_before", "evictBefore"), "after": ("evict_after", "evictAfter")},
    AggregateFunction: {
        "create_accumulator": ("createAccumulator",),
        "add": ("accumulate",),
        "get_result": ("getResult", "get_value"),
        "merge": (),
    },
}
"""By base: the methods that the runtime calls, and how others call them."""
_OF_GENERATORS: Mapping[str, tuple[str, ...]] = {
    "on_batch": ("on_event", "onEvent", "on_periodic_emit", "onPeriodicEmit"),
    "restore": (),
}
_NEEDED: Mapping[type, tuple[str, ...]] = {
    WindowAssigner: ("assign",),
    Trigger: ("on_record",),
    Evictor: (),
    AggregateFunction: ("create_accumulator", "add"),
    WatermarkGenerator: ("on_batch", "restore"),
}


def check_window_part(part: Any) -> None:
    """Raises InvalidOperator, with the method that is meant, for a part of the program's own that would not work."""
    for base, methods in _CALLED.items():
        if isinstance(part, base):
            for each in parts(part) if isinstance(part, Trigger) else (part,):
                if type(each) is base or not is_ours(type(each)):
                    _check(each, base, methods)


def check_watermark_generator(made: Any) -> None:
    """The same for what a strategy makes, which needs no base."""
    if not is_ours(type(made)):
        _check(made, WatermarkGenerator, _OF_GENERATORS)


def _check(part: Any, base: type, methods: Mapping[str, tuple[str, ...]]) -> None:
    kind = type(part)
    defined = {
        name: value
        for each in reversed(kind.__mro__)
        if not is_ours(each)
        for name, value in attributes_of(each).items()
    }
    used = set(_names_used(defined.values()))
    for method, elsewhere in methods.items():
        if method in defined:
            check_runs(f"{kind.__name__}.{method}", getattr(part, method), RETURN)
            check_arguments(part, base, method)
            continue
        for name in elsewhere:
            if name in defined and name not in used:
                raise InvalidOperator(f"{kind.__name__}.{name} is called by nothing: write {_signature(base, method)}")
    if base is AggregateFunction and "add" in defined:
        _check_order(kind)
    missing = [method for method in _NEEDED[base] if _is_of_base(kind, base, method)]
    if not missing and base is Evictor and all(_is_of_base(kind, base, method) for method in methods):
        missing = list(methods)
    if missing:
        wanted = " and ".join(_signature(base, method) for method in missing)
        raise InvalidOperator(f"{kind.__name__} does not define {wanted}")


def _is_of_base(kind: type, base: type, method: str) -> bool:
    """Whether no class in between, ours or the program's, defines it."""
    return getattr(kind, method, None) in (None, getattr(base, method))


def _check_order(kind: type[AggregateFunction]) -> None:
    """Flink gives the accumulator last: taken for a record it may well be counted without an error."""
    code = getattr(kind.add, "__code__", None)
    names = code.co_varnames[1:3] if code is not None and code.co_argcount == 3 else ()
    if names and names[1].startswith("acc") and not names[0].startswith("acc"):
        raise InvalidOperator(
            f"{kind.__name__}.add is called with (accumulator, record), and takes ({', '.join(names)}): the other way "
            "round, as in Flink; write `def add(self, accumulator, record)`"
        )


def _signature(base: type, method: str) -> str:
    code = getattr(base, method).__code__
    return f"`def {method}({', '.join(code.co_varnames[: code.co_argcount])})`"


def _names_used(methods: Any) -> Iterator[str]:
    for method in methods:
        if isinstance(method, FunctionType):
            for code in codes_of(method.__code__):
                yield from code.co_names
