"""Whether a module, as this process has it, still runs code that its file does not have any more."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...messages.attributes import attributes_of
from ...messages.code_outline import code_outline


def has_stale_code(module: ModuleType, text: bytes) -> bool:
    """Whether a function or method of it is another one in this text of its file, wherever its lines are.

    What a notebook's autoreload has put into the module, without importing it again, is not stale. Values of the module
    are not compared, as they may be anything by now.
    """
    try:
        whole = compile(text, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    wanted: dict[str, list[Any]] = {}
    for code in _codes_within(whole):
        wanted.setdefault(code.co_qualname, []).append(code_outline(code))
    return any(
        code.co_qualname in wanted and code_outline(code) not in wanted[code.co_qualname] for code in _codes_of(module)
    )


def _codes_of(module: ModuleType) -> Iterator[CodeType]:
    for owner in (module, *attributes_of(module).values()):
        if owner is not module and not (isinstance(owner, type) and owner.__module__ == module.__name__):
            continue
        for value in attributes_of(owner).values():
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield function.__code__


def _codes_within(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes_within(each)
