"""Names of types as texts, in one spelling.

A type has as many texts as it has spellings, and Pythons: of `Union[int, None]` and of `int | None` up to 3.13 two,
from 3.14 on one. Texts that stand in a savepoint are of the Python that took it.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache, reduce

from ...messages.syntax_trees import expression_tree


@lru_cache(maxsize=1024)
def one_spelling(text: str) -> str:
    """`Union[A, B]` and `Optional[A]` as `A | B` and `A | None`, at any depth. Any other text is left as it is."""
    if "Union[" not in text and "Optional[" not in text:
        return text
    odd = _ODD.findall(text)
    numbers = iter(range(len(odd)))
    try:
        parsed = expression_tree(_ODD.sub(lambda _: f"{_STAND_IN}{next(numbers)}_", text))
    except SyntaxError:
        return text
    return _STAND_INS.sub(lambda found: odd[int(found[1])], ast.unparse(_Unions().visit(parsed)))


_ODD = re.compile("<[^<>]*>")
"""What is no name: a part of that of a class within a function, `make.<locals>.Line`, or a member of an enum."""
_STAND_IN = "__odd_"
_STAND_INS = re.compile(rf"{_STAND_IN}(\d+)_")


class _Unions(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Subscript(ast.Name("Union"), ast.Tuple(arms)):
                return reduce(_either, map(_arm, arms))
            case ast.Subscript(ast.Name("Optional"), arm):
                return _either(arm, ast.Constant(None))
        return node


def _arm(arm: ast.expr) -> ast.expr:
    return ast.Constant(None) if isinstance(arm, ast.Name) and arm.id == "NoneType" else arm


def _either(one: ast.expr, other: ast.expr) -> ast.expr:
    return ast.BinOp(one, ast.BitOr(), other)
