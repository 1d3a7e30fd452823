"""What tests read in the code of a module: its imports, its texts and its docstring. A module is parsed once, however
many of them ask; its tree, a hundred times as large, is not kept.
"""

from __future__ import annotations

import ast
import importlib.util
from functools import lru_cache
from typing import NamedTuple


class Parsed(NamedTuple):
    docstring: str | None
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    """Wherever they stand."""
    texts: tuple[tuple[int, str], ...]
    """Line, and what stands there in quotes: docstrings and parts of f-strings too."""


def imported_from(node: ast.ImportFrom, package: str) -> str:
    """The module by its whole name. `package`: the one that the importing module lies in."""
    return importlib.util.resolve_name("." * node.level + (node.module or ""), package)


@lru_cache(maxsize=4000)
def parsed(code: str) -> Parsed:
    tree = ast.parse(code)
    imports: list[ast.Import | ast.ImportFrom] = []
    texts: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                texts.append((node.lineno, node.value))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
    return Parsed(ast.get_docstring(tree), tuple(imports), tuple(texts))
