"""What somebody has put in the place of a module's own functions and classes, as `monkeypatch` and `mock.patch` do in a
test. It stays in this process: the job's processes import the module's file.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from ...messages.attributes import attributes_of
from ...messages.syntax_trees import module_tree

_MOCKS = "unittest.mock"
_DEFINED = re.compile(rb"^([ \t]*@.*\n)?[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([^\s(:\[]+)", re.MULTILINE)
"""And the line before it, if a decorator begins there."""


def replaced_in(module: ModuleType, text: Callable[[], bytes]) -> list[str]:
    """The names that the text of its file defines once, by a plain `def` or `class`, and that are something else here;
    mocks also in the place of what it imports.
    """
    suspects = {where: value for where, value in _members(module) if _is_strange(where, value, module)}
    if not suspects:
        return []
    code = text()
    written = {name for decorator, name in _DEFINED.findall(code) if not decorator}
    if not any(_is_mock(value) or where.rpartition(".")[2].encode() in written for where, value in suspects.items()):
        return []  # second names and what decorators make, as a quarter of all modules have: to parse takes 5 ms each
    defined, imported = _names_in(code)
    return [where for where, value in suspects.items() if where in defined or (_is_mock(value) and where in imported)]


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """By name, those of its classes as `Class.method`."""
    for name, value in attributes_of(module).items():
        yield name, value
        if isinstance(value, type) and value.__module__ == module.__name__ and value.__qualname__ == name:
            for attribute, member in attributes_of(value).items():
                yield f"{name}.{attribute}", member


def _is_strange(where: str, value: Any, module: ModuleType) -> bool:
    """Whether a `def` or `class` of that name in the module cannot have made it. What a decorator has made that says so
    is not strange.
    """
    if isinstance(value, FunctionType) and not hasattr(value, "__wrapped__"):
        return value.__globals__ is not vars(module) and value.__qualname__ != where
    if isinstance(value, type):
        return value.__module__ != module.__name__ and value.__qualname__ != where
    return _is_mock(value)


def _is_mock(value: Any) -> bool:
    return any(each.__module__ == _MOCKS for each in type(value).__mro__)


def _names_in(text: bytes) -> tuple[set[str], set[str]]:
    """Names that are bound once in a file, by a definition without decorators at its top, or in such a class; and those
    that it imports, and does not assign.
    """
    try:
        tree = module_tree(text)
    except (SyntaxError, ValueError):
        return set(), set()
    bound = list(_bound_in(tree))
    times = Counter(name for name, _ in bound)
    defined = set()
    for name, node in _definitions(tree):
        if times[name] == 1:
            methods = _definitions(node) if isinstance(node, ast.ClassDef) else ()
            defined |= {name, *(f"{name}.{method}" for method, _ in methods)}
    others = {name for name, node in bound if not isinstance(node, ast.alias)}
    return defined, {name for name, _ in bound} - others


def _definitions(within: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.AST]]:
    for each in within.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not each.decorator_list:
            yield each.name, each


def _bound_in(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for each in ast.walk(tree):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, each
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, each
            case ast.alias(name=name, asname=other):
                yield other or name, each
