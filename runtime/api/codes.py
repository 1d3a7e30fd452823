"""Code of functions, as Python has it: what lies inside, and the instructions that do something."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType

_BETWEEN = frozenset({"EXTENDED_ARG", "CACHE", "PRECALL", "PUSH_NULL"})


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """A function's own, and of those within it."""
    yield code
    for inner in inner_codes(code):
        yield from codes_of(inner)


def inner_codes(code: CodeType) -> Iterator[CodeType]:
    return (each for each in code.co_consts if isinstance(each, CodeType))


def placed_instructions(code: CodeType) -> Iterator[tuple[dis.Instruction, str]]:
    """Those that do something, each with where it stands: `file:line`."""
    line = 0
    for each in dis.get_instructions(code):
        line = each.starts_line or line
        if each.opname not in _BETWEEN:
            yield each, f"{code.co_filename}:{line}"
