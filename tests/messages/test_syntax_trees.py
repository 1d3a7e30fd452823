"""A text is parsed again where CPython 3.11 raises SystemError of it, as it can when several threads parse at once."""

from __future__ import annotations

import ast
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from understudy.messages import syntax_trees
from understudy.runtime.clusters.replaced_code import replaced_in


class Parser:
    """Raises so many times, and then parses."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def parse(self, text: str | bytes, mode: str) -> Any:
        if self.failures > 0:
            self.failures -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=88, after=84)")
        return ast.parse(text, mode=mode)


def use(monkeypatch: pytest.MonkeyPatch, failures: int) -> Parser:
    parser = Parser(failures)
    monkeypatch.setattr(syntax_trees, "ast", SimpleNamespace(parse=parser.parse))
    return parser


@pytest.mark.parametrize("failures", [0, 1, 3])
def test_it_is_parsed_again(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    parser = use(monkeypatch, failures)
    assert ast.dump(syntax_trees.module_tree(b"n = 1")) == ast.dump(ast.parse("n = 1"))
    assert parser.failures == 0
    parser.failures = failures
    assert ast.dump(syntax_trees.expression_tree("n + 1")) == ast.dump(ast.parse("n + 1", mode="eval"))


def test_it_is_not_parsed_again_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 1_000)
    with pytest.raises(SystemError):
        syntax_trees.module_tree("n = 1")


def test_a_text_that_is_wrong_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 0)
    with pytest.raises(SyntaxError):
        syntax_trees.module_tree("n =")


def test_submit_looks_at_modules_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = use(monkeypatch, 1)
    module = ModuleType("service")
    module.fetch = mock.Mock()  # type: ignore[attr-defined]
    assert replaced_in(module, lambda: b"def fetch(n):\n    return n\n") == ["fetch"]
    assert parser.failures == 0
