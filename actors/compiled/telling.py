"""What Numba says when it cannot compile a function, in a line that says what to change."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable
from typing import Any

from .errors import CannotCompile
from .layout import Layout
from .refusal import only_passed_on

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_OPAQUE = re.compile(r"opaque\[(\d+) ")
_HINTS = {
    "exception_match": "a compiled function can catch Exception, and no narrower class",
    "STORE_GLOBAL": "a global is set: what a function remembers must be state",
    "IMPORT_NAME": "an import: move it to the top of the module",
}
"""What words of Numba's mean."""


def refused(function: Any, line: int | None, text: str) -> CannotCompile:
    """The error for a function that cannot be compiled, with the line of its file."""
    where = "" if line is None else f"line {line}: "
    return CannotCompile(f"{function.__qualname__} cannot be compiled: {where}{text}")


def told_failure(error: Exception, function: Any, layout: Layout) -> CannotCompile:
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
    return refused(function, line, where + (hint or _first_words(said.splitlines())))


def _line(said: str, function: Any) -> int | None:
    """The last place in the user's own file that Numba names, going down to the cause."""
    file = re.escape(function.__code__.co_filename.rsplit("/", 1)[-1])
    found = re.findall(rf'{file}"?,? ?\(?(?:line )?(\d+)', said)
    return int(found[-1]) if found else None


def _first_words(lines: Iterable[str]) -> str:
    told = (line.strip() for line in lines)
    return next((line for line in told if line and not line.startswith(("Failed in", "During", "- "))), "Numba gave up")
