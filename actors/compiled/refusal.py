"""Refusal: why something in `process` cannot be compiled, in a line that says what to change.

Either found here, before Numba says it at length (`refuse`), or made from what Numba says (`refusal_of`).
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from numba.core import types
from numba.core.errors import TypingError

from .errors import CannotCompile
from .layout import Column, Layout
from .types import Opaque

_KNOWN = {"int64": "int", "float64": "float", "bool": "bool", "none": "None", "unicode_type": "str"}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_OPAQUE = re.compile(r"opaque\[(\d+) ")
_HINTS = {
    "TimerDeleted": "a compiled function does not know whether a timer was there: leave what delete returns unused",
    "exception_match": "a compiled function can catch Exception, and no narrower class",
    "STORE_GLOBAL": "a global is set: what a function remembers must be state",
    "IMPORT_NAME": "an import: move it to the top of the module",
}
"""What words of Numba's mean."""
_WALRUS = "Numba cannot compile a value that is given a name and used at once: write the assignment in a line before"


def refuse(layout: Layout, text: str) -> NoReturn:
    """Give this attempt at typing up. The user gets the refusal only if nothing else fits."""
    layout.refusals.append(text)
    raise TypingError(text)


def only_passed_on(column: Column) -> str:
    return f"column {column.name!r} is of type {column.type}: a compiled function can only pass it on"


def shown_type(kind: Any) -> str:
    """A Numba type in words a Python user knows."""
    kind = types.unliteral(kind)
    if isinstance(kind, Opaque):
        return f"column {kind.source.name!r} of type {kind.source.type}"
    if isinstance(kind, types.Optional):
        return f"{shown_type(kind.type)} or None"
    if isinstance(kind, types.BaseTuple):
        return f"a tuple ({', '.join(map(shown_type, kind.types))})"
    if isinstance(kind, types.List):
        return f"a list of {shown_type(kind.dtype)}"
    return _KNOWN.get(str(kind), str(kind))


def refused(function: Any, line: int | None, text: str) -> CannotCompile:
    """The error for a function that cannot be compiled, with the line of its file."""
    where = "" if line is None else f"line {line}: "
    return CannotCompile(f"{function.__qualname__} cannot be compiled: {where}{text}")


def refusal_of(error: Exception, function: Any, layout: Layout) -> CannotCompile:
    """The error that says where and why Numba gave up."""
    said = _ESCAPES.sub("", str(error))
    line = _line(said, function)
    if layout.refusals:
        return refused(function, line, layout.refusals[-1])
    cells = {int(cell) for cell in _OPAQUE.findall(said)}
    source = linecache.getline(function.__code__.co_filename, line).strip() if line else ""
    where = f"`{source}`: " if source else ""
    for column in (*layout.columns, *layout.keys):
        if column.cell in cells:
            return refused(function, line, where + only_passed_on(column))
    hint = next((hint for word, hint in _HINTS.items() if word in said), None)
    if hint is None and ":=" in source and "cannot be determined" in said:
        hint = _WALRUS
    return refused(function, line, where + (hint or _first_words(said.splitlines())))


def _line(said: str, function: Any) -> int | None:
    """The last place in the user's own file that Numba names, going down to the cause."""
    file = re.escape(function.__code__.co_filename.rsplit("/", 1)[-1])
    found = re.findall(rf'{file}"?,? ?\(?(?:line )?(\d+)', said)
    return int(found[-1]) if found else None


def _first_words(lines: Iterable[str]) -> str:
    stripped = (line.strip() for line in lines)
    return next(
        (line for line in stripped if line and not line.startswith(("Failed in", "During", "- "))), "Numba gave up"
    )
