"""Variables of the user's program that a function reads, and that were assigned between the call that it was given to
and the submit, as by a loop whose lambdas all see the last value. Whoever submits the job is warned.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any

from ...actors.flow.key_selector import KeySelector
from ...actors.operators.operator import Operator
from ...messages.code_steps import codes_of, steps
from .captured_changes import captured_by, functions_of, is_copied

log = logging.getLogger(__name__)

_PLAIN = (bool, int, float, str, bytes, type(None))
"""Values of other types may be meant to change, as a list that is filled before the submit."""

Read = Mapping[tuple[FunctionType, str], Any]
"""By function and name of the variable."""


def plain_variables(operator: Operator, selectors: Iterable[KeySelector] = ()) -> Read:
    """That its functions, and those that find its keys, read, with their values as they are."""
    by_key = [part for selector in selectors for part in selector.parts if isinstance(part, FunctionType)]
    return {
        (function, name): value
        for function in (*functions_of(operator), *by_key)
        if is_copied(function)
        for name, value in _read_by(function).items()
        if type(value) in _PLAIN
    }


def warn_of_late_variables(name: str, before: Read, now: Read) -> None:
    """A line in the log for each that is another one than `before`. `name`: the operator's."""
    for (function, variable), value in before.items():
        later = now.get((function, variable), value)
        if later is value or (type(later) is type(value) and later == value):
            continue
        log.warning(
            "operator %r: %s (%s:%d) reads %r, which was %.60r when the stream was built, and is %.60r now: it gets "
            "the value of now. To keep that of then, as in a loop, write `%s=%s` among its parameters; an operator has "
            "it as an attribute that `__init__` sets",
            name,
            function.__name__ if function.__name__ != "<lambda>" else "its lambda",
            function.__code__.co_filename,
            function.__code__.co_firstlineno,
            variable,
            value,
            later,
            variable,
            variable,
        )


def _read_by(function: FunctionType) -> dict[str, Any]:
    captured = captured_by(function)
    cells, variables = captured["DEREF"], captured["GLOBAL"]
    named = {
        each.value
        for code in codes_of(function.__code__)
        for each in steps(code)
        if each.name in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    return {name: variables[name] for name in named if name in variables} | cells
