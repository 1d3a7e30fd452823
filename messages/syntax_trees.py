"""Texts of Python as syntax trees, in any thread.

CPython 3.11 counts the depth of all threads that parse together, and raises SystemError ("AST constructor recursion
depth mismatch") of a text that is well: then it is parsed again.
"""

from __future__ import annotations

import ast
from typing import Any, Final

_TRIES: Final = 20


def module_tree(text: str | bytes) -> ast.Module:
    """Of a module's text. Raises SyntaxError and ValueError."""
    tree: ast.Module = _tree(text, "exec")
    return tree


def expression_tree(text: str) -> ast.Expression:
    """The same of an expression."""
    tree: ast.Expression = _tree(text, "eval")
    return tree


def _tree(text: str | bytes, mode: str) -> Any:
    for _ in range(_TRIES):
        try:
            return ast.parse(text, mode=mode)
        except SystemError:
            continue
    return ast.parse(text, mode=mode)
