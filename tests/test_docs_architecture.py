"""docs/architecture.md names what is there: every room, modules, and classes' attributes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import understudy

from .house import ROOMS

pytestmark = pytest.mark.every_run

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
    for kind, name in named:
        assert kind in classes, kind
        assert any(_has(each, name) for each in classes[kind]), f"{kind}.{name}"


def test_every_room_of_state_actors_and_runtime_is_in_a_table() -> None:
    rows = set(
        re.findall(r"`([\w/]+)`", "\n".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("|")))
    )
    for room in ROOMS:
        floor, _, inner = room.partition(".")
        if inner and room != "runtime.system.system":
            assert {inner.replace(".", "/"), inner.rpartition(".")[2]} & rows, f"{room} has no row ({floor})"


@pytest.mark.parametrize("floor", FLOORS[1:])
def test_rooms_stand_in_the_order_in_which_they_may_import(floor: str) -> None:
    """The page says that a room imports only rooms above it in these tables."""
    part = PAGE.partition(f"\n### {floor}/\n")[2].partition("\n#")[0]
    rows = [f"{floor}.{row.replace('/', '.')}" for row in re.findall(r"(?m)^\| `([\w/]+)`", part)]
    assert rows == [room for room in ROOMS if room.startswith(f"{floor}.") and room != "runtime.system.system"]


@pytest.mark.parametrize("floor", FLOORS)
def test_every_module_on_the_ground_of_a_floor_is_named_in_its_part(floor: str) -> None:
    part = PAGE.partition(f"\n### {floor}/\n")[2].partition("\n### ")[0]
    modules = [path.stem for path in sorted((ROOT / floor).glob("*.py")) if path.stem != "__init__"]
    assert modules
    assert [module for module in modules if f"`{module}`" not in part] == []


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+/\w*(?:\.py)?)`", PAGE))))
def test_every_path_leads_somewhere(path: str) -> None:
    found = (ROOT / path, ROOT / "runtime" / path)
    assert any(each.exists() or each.with_suffix(".py").exists() for each in found), path


def test_the_package_is_the_one_that_is_checked() -> None:
    assert Path(understudy.__file__).resolve().is_relative_to(ROOT)
