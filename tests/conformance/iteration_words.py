"""The words of iterations.json: formulas, counts, criteria and the solutions of delta iterations."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from .scenario import UnknownWord

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def formula(text: str) -> Callable[[Any], Any]:
    """`x+1`, `2 * x - 3`, `updates < 3`: a function of the one name in it."""
    try:
        return _formula(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, KeyError) as error:
        raise UnknownWord(f"found {text!r}; wanted a formula of one name, as in 'x+1' or 'x<4'") from error


def _formula(node: ast.expr) -> Callable[[Any], Any]:
    match node:
        case ast.Name():
            return lambda x: x
        case ast.Constant(value):
            return lambda x: value
        case ast.UnaryOp(ast.USub(), inner):
            of = _formula(inner)
            return lambda x: -of(x)
        case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
            one, other, do = _formula(left), _formula(right), _OPERATORS[type(op)]
            return lambda x: do(one(x), other(x))
    raise KeyError(node)


def part(pattern: str, text: str) -> str | None:
    found = re.fullmatch(pattern, text)
    return None if found is None else found[1]


def without_remark(text: str) -> str:
    """`x<21 (criterion reads the superstep's input)`: what stands in parentheses at the end explains."""
    return re.sub(r"\s+\([^()]*\)$", "", text.strip())


def criterion(text: str) -> tuple[bool, Callable[[Any], Any]]:
    """`x<4`, `NEW x<4`, `OLD x<4`: whether it is about what the superstep began with, and the condition."""
    about, condition = re.fullmatch(r"(?:(OLD|NEW)\s+)?(.*)", without_remark(text)).groups()  # type: ignore[union-attr]
    return about == "OLD", formula(condition)


TIMES = {None: 1, "once": 1, "twice": 2, "two times": 2, "three times": 3, "four times": 4, "five times": 5}


def solution_of(said: str | list[Any]) -> list[list[Any]]:
    """[key] or [key, value] of each record."""
    if isinstance(said, list):
        return said
    found = re.fullmatch(r"keys (-?\d+)\.\.(-?\d+)(?:, each (.+))?", without_remark(said))
    many = found and (re.fullmatch(r"(\d+) times", found[3] or "") or TIMES.get(found[3]))
    if not found or not many:
        raise UnknownWord(f"found the solution {said!r}; wanted records, or as in 'keys 0..10, each three times'")
    times = many if isinstance(many, int) else int(many[1])
    return [[key] for key in range(int(found[1]), int(found[2]) + 1) for _ in range(times)]


EFFECTS: dict[str, Callable[[Any, Any], Any]] = {
    "times": operator.mul,
    "plus": operator.add,
    "minus": operator.sub,
    "*": operator.mul,
    "+": operator.add,
    "-": operator.sub,
}


def effect_of(text: str) -> Callable[[Any], Any] | None:
    """`net effect of one superstep: value times 7`."""
    found = re.fullmatch(r".*: value (times|plus|minus|[*+-]) ?(\d+(?:\.\d+)?)", without_remark(text))
    if found is None:
        return None
    do, by = EFFECTS[found[1]], float(found[2])
    return lambda value: do(value, by)


PASSED_ON = "delta = workset, next workset = workset"


def key_step_of(text: str) -> int | None:
    """`delta = workset, next workset = workset with key + 10`: by how much keys grow; 0 where they are as before."""
    rest = part(f"{PASSED_ON}(.*)", without_remark(text))
    if not rest:
        return None if rest is None else 0
    found = re.fullmatch(r",? with (?:each |all )?keys? ?(?:\+|plus) ?(\d+)", rest)
    return None if found is None else int(found[1])


REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "min": min,
    "minimum": min,
    "max": max,
    "maximum": max,
    "first": lambda one, _other: one,
}


def reduction_of(text: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any], Any]] | None:
    """`one value: sum of (x+1)`: how two values become one, and what of each value goes in."""
    found = re.fullmatch(r"one value: (?:the )?(\w+)(?: of (.+))?", text.strip())
    if found is None or found[1] not in REDUCTIONS:
        return None
    return REDUCTIONS[found[1]], formula(found[2] or "x")
