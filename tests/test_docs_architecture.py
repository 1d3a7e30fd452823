"""docs/architecture.md names what is there: modules, classes' attributes, and what operators may define and use."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import understudy
from understudy import Operator, OperatorContext, Source

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FLOORS = ("messages", "state", "actors", "runtime")


def _classes() -> dict[str, list[type]]:
    found: dict[str, list[type]] = {}
    for floor in FLOORS:
        package = importlib.import_module(f"understudy.{floor}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "compiled" not in module.name and not module.name.endswith(("__main__", "spark_daemon")):
                for name, value in vars(importlib.import_module(module.name)).items():
                    if inspect.isclass(value):
                        found.setdefault(name, []).append(value)
    return found


def _has(kind: type, name: str) -> bool:
    return hasattr(kind, name) or name in getattr(kind, "__annotations__", {})


def test_every_attribute_of_a_class_is_there() -> None:
    classes = _classes()
    named = re.findall(r"`([A-Z]\w+)\.(\w+)", PAGE)
    assert named
    for kind, name in named:
        assert kind in classes, kind
        assert any(_has(each, name) for each in classes[kind]), f"{kind}.{name}"


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


@pytest.mark.parametrize("module", sorted(set(re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", PAGE))))
def test_every_module_is_there(module: str) -> None:
    assert any(path.name == module for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))


def test_the_package_is_the_one_that_is_checked() -> None:
    assert Path(understudy.__file__).resolve().is_relative_to(ROOT)
