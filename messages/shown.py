"""How values and classes look in error texts. Showing a value never fails, whatever its own `__repr__` does."""

from __future__ import annotations

import reprlib
from types import CodeType, NoneType
from typing import Any


def shown(value: Any, limit: int = 80) -> str:
    """The beginning of the value's repr; its type where it has none that can be made."""
    try:
        return reprlib.repr(value)[:limit]
    except Exception:  # noqa: BLE001 - the user's own __repr__, too deep a nesting, an integer of too many digits
        return f"<{one_of_kind(type(value))}>"


def printable(text: str) -> str:
    """In one line, and nothing that a terminal obeys."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def full_name(cls: type) -> str:
    """The class by module and name, as in `socket.socket`; a builtin by its name."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def one_of_kind(cls: type) -> str:
    """An instance of the class, as in `a socket.socket`, `an int` and `None`."""
    if cls is NoneType:
        return "None"
    name = full_name(cls)
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def columns_shown(schema: Any) -> str:
    """The columns of an Arrow schema, each with its type."""
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def place_of_code(code: Any, line: int | None = None) -> str:
    """`file:line` of code as Python has it, its first line where no other is given; empty for anything else."""
    return f"{code.co_filename}:{line or code.co_firstlineno}" if isinstance(code, CodeType) else ""


def place_of_function(function: Any) -> str:
    """Its file and line, in brackets, where Python knows them."""
    place = place_of_code(getattr(function, "__code__", None))
    return f" ({place})" if place else ""
