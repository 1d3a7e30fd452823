"""The house rules of DESIGN section 1: imports run down, every package is listed, no folder is imported by a bare
name.
"""

from __future__ import annotations

import ast
import configparser
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .parsed import parsed

ROOT = Path(__file__).resolve().parent.parent
FLOORS = {"messages": 1, "state": 2, "actors": 3, "runtime": 4}
MODULES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


def _imported_floor(node: ast.AST, path: Path) -> str | None:
    """The floor that an import reaches for, seen from the file at `path`; None for anything outside of the house."""
    if isinstance(node, ast.Import):
        inside = [alias.name.split(".") for alias in node.names if alias.name.startswith("understudy.")]
        return inside[0][1] if inside else None
    if not isinstance(node, ast.ImportFrom):
        return None
    parts = (node.module or "").split(".")
    if node.level == 0:
        return parts[1] if parts[0] == "understudy" and len(parts) > 1 else None
    depth = len(path.relative_to(ROOT).parts) - 1
    return parts[0] if node.level == depth + 1 else path.relative_to(ROOT).parts[0]


def test_imports_run_down_only() -> None:
    assert [found for path in MODULES for found in _that_reach_up(path)] == []


def _that_reach_up(path: Path) -> Iterator[str]:
    own = path.relative_to(ROOT).parts[0]
    for node in parsed(path.read_text()).imports:
        floor = _imported_floor(node, path)
        if floor in FLOORS and FLOORS[floor] > FLOORS[own]:
            yield f"{path.relative_to(ROOT)}:{node.lineno} reaches up from {own} to {floor}"


def test_only_runtime_touches_the_world() -> None:
    below = [path for path in MODULES if path.relative_to(ROOT).parts[0] != "runtime"]
    assert {str(path.relative_to(ROOT)): worldly for path in below if (worldly := _worldly_imports(path))} == {}


def _worldly_imports(path: Path) -> set[str]:
    worldly = {"asyncio", "threading", "socket", "time", "zmq", "aiozmq", "kazoo", "pyspark", "subprocess", "random"}
    allowed = {"random"} if path.name in ("context.py", "restart_strategy.py", "retry.py") else set()
    if path.name in ("descriptor_patience.py", "store_requests.py"):  # pauses that are outside of any simulation
        allowed = {"time"}
    imported = {
        name.split(".")[0]
        for node in parsed(path.read_text()).imports
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and node.level == 0
            else []
        )
    }
    return (imported & worldly) - allowed


def test_what_something_holds_is_listed_in_one_step() -> None:
    """Another thread may set an attribute in the middle of a loop over `vars(...)`: `attributes_of` does not mind."""
    looking = [path for path in MODULES if path.name != "attributes.py" and "vars(" in path.read_text()]
    assert [found for path in looking for found in _listed(path.read_text(), path)] == []
    assert (
        len(list(_listed("for each in vars(a): f(**vars(a))\nf(vars(a).values())\nb = a in vars(c)\n", ROOT / "x")))
        == 3
    )


def _listed(code: str, path: Path) -> Iterator[str]:
    """`vars(...)` may be asked for one name, be changed, or be kept; to be handed on or gone through is a loop."""
    for parent in ast.walk(ast.parse(code)):
        if isinstance(parent, ast.Compare | ast.Subscript | ast.Assign | ast.AnnAssign | ast.IfExp):
            continue
        if isinstance(parent, ast.Attribute) and parent.attr in ("get", "update"):
            continue
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars":
                yield f"{path.relative_to(ROOT)}:{node.lineno} lists vars(...): use messages.attributes.attributes_of"


def test_setup_cfg_lists_every_package() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    on_disk = {"understudy"} | {
        ".".join(("understudy", *init.parent.relative_to(ROOT).parts))
        for floor in FLOORS
        for init in (ROOT / floor).rglob("__init__.py")
    }
    assert listed == on_disk


@pytest.mark.parametrize("floor", FLOORS)
def test_a_folder_refuses_its_bare_name(floor: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {floor}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"import understudy.{floor}, not {floor}" in done.stderr


@pytest.mark.parametrize("floor", FLOORS)
def test_the_links_lead_to_the_folders(floor: str) -> None:
    link = ROOT / "src" / "understudy" / floor
    assert link.is_symlink()
    assert link.resolve() == ROOT / floor
