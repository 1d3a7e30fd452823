"""Steps of code are the same, whichever Python compiled it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest

from understudy.messages.code_steps import certain_steps, placed_steps, steps

VOCABULARY = {"LOAD_CONST", "LOAD_FAST", "LOAD_ATTR", "LOAD_GLOBAL", "STORE_FAST", "STORE_ATTR", "CALL", "RETURN_VALUE"}


def two_at_once(self: Any, a: Any, b: Any) -> Any:
    self.x = a
    c, d = b, a
    self.y = len(c.get(d))
    return a + b


def constant() -> int:
    return 7


def nothing(out: Any) -> None:
    out.collect(out, out)


@pytest.mark.parametrize(
    "function", [two_at_once, constant, nothing, lambda a, b: print(a, b), lambda f, x: f(x)(x, key=f)]
)
def test_the_effects_of_steps_add_up(function: Callable[..., Any]) -> None:
    """None of these jumps: the stack is never less than empty, and is empty in the end."""
    depths = list(accumulate(each.effect for each in steps(function.__code__)))
    assert min(depths) >= 0
    assert depths[-1] == 0


def test_steps_have_one_vocabulary() -> None:
    ours = [each for function in (two_at_once, constant, nothing) for each in steps(function.__code__)]
    named = [(each.name, each.value) for each in ours if each.name in VOCABULARY]
    assert named == [
        ("LOAD_FAST", "a"),
        ("LOAD_FAST", "self"),
        ("STORE_ATTR", "x"),
        ("LOAD_FAST", "b"),
        ("LOAD_FAST", "a"),
        ("STORE_FAST", "d"),
        ("STORE_FAST", "c"),
        ("LOAD_GLOBAL", "len"),
        ("LOAD_FAST", "c"),
        ("LOAD_ATTR", "get"),
        ("LOAD_FAST", "d"),
        ("CALL", 1),
        ("CALL", 1),
        ("LOAD_FAST", "self"),
        ("STORE_ATTR", "y"),
        ("LOAD_FAST", "a"),
        ("LOAD_FAST", "b"),
        ("RETURN_VALUE", None),
        ("LOAD_CONST", 7),
        ("RETURN_VALUE", None),
        ("LOAD_FAST", "out"),
        ("LOAD_ATTR", "collect"),
        ("LOAD_FAST", "out"),
        ("LOAD_FAST", "out"),
        ("CALL", 2),
        ("LOAD_CONST", None),
        ("RETURN_VALUE", None),
    ]


def test_each_step_has_its_line() -> None:
    first = two_at_once.__code__.co_firstlineno
    stored = [place for each, place in placed_steps(two_at_once.__code__) if each.name == "STORE_ATTR"]
    assert stored == [f"{__file__}:{first + 1}", f"{__file__}:{first + 3}"]


def branches(a: Any) -> None:
    a.first()
    if a.second():
        a.third()


def loops(a: Any) -> None:
    a.first()
    for each in a.second():
        each.third()


def tries(a: Any) -> None:
    a.first(a.second())
    try:
        a.third()
    finally:
        a.fourth()


def suppresses(a: Any) -> None:
    a.first()
    with a.second():
        a.third()


async def awaits(a: Any) -> None:
    a.first()
    await a.second()
    a.third()


def yields(a: Any) -> Any:
    a.first()
    yield a.second


@pytest.mark.parametrize("function", [branches, loops, tries, suppresses, awaits, yields])
def test_certain_are_the_steps_before_a_branch_a_loop_or_a_try(function: Callable[..., Any]) -> None:
    certain = [each.value for each, _ in certain_steps(function.__code__) if each.name == "LOAD_ATTR"]
    assert certain == ["first", "second"]


def test_the_steps_of_equal_codes_are_each_ones_own() -> None:
    texts = ("def f(x):\n    return x\n", "def f(x):\n\n    return x\n")
    codes = [compile(text, "<job>", "exec").co_consts[0] for text in texts]
    for _ in range(2):
        assert [max(step.line for step in steps(code)) for code in codes] == [2, 3]


def test_a_code_goes_with_its_function() -> None:
    scope: dict[str, Any] = {}
    exec("def used_once(): return 1", scope)
    function = scope.pop("used_once")
    assert [each.name for each in steps(function.__code__)][-1] == "RETURN_VALUE"
    code = weakref.ref(function.__code__)
    del function
    gc.collect()
    assert code() is None
