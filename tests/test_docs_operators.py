"""docs/operators.md shows what operators and sources may define, with the parameters that they are called with."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

from understudy import Operator, Source
from understudy.actors.operators import OperatorContext

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "operators.md").read_text()


def test_what_an_operator_may_define_is_asked_of_it_as_shown() -> None:
    (block,) = re.findall(r"```python\nclass Operator\(Actor\):(.*?)```", PAGE, re.DOTALL)
    shown = re.findall(r"def (\w+)\((.*?)\)", block)
    assert len(shown) > 8
    for name, parameters in shown:
        found = list(inspect.signature(getattr(Operator, name)).parameters)
        assert [each.strip() for each in parameters.split(",")] == found, name


def test_the_context_has_what_is_said() -> None:
    (shown,) = re.findall(r"an `OperatorContext`: (.*?)\)", PAGE, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", shown)) == {field.name for field in dataclasses.fields(OperatorContext)}


def test_sources_have_the_methods_that_are_said() -> None:
    (paragraph,) = re.findall(r"\*\*Sources\*\*(.*?)\n\n", PAGE, re.DOTALL)
    shown = re.findall(r"`(\w+)\((.*?)\)", paragraph)
    assert {name for name, _ in shown} >= {"poll", "offset", "seek", "rescale"}
    for name, parameters in shown:
        assert list(inspect.signature(getattr(Source, name)).parameters)[1:] == [
            each.strip() for each in parameters.split(",") if each
        ]
