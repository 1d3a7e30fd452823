"""What tests replace by name in modules and classes is there: a draw leaves most tests unread (draw.py), and of such a
name no type checker knows. Imports and calls of tests are `make types`'s.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .parsed import imported_from, parsed

ROOT = Path(__file__).resolve().parent.parent
OURS = ("understudy", "tests", "benchmarks")
_REPLACED = re.compile(r"""\b(?:setattr|delattr)\(\s*(\w+),\s*["'](\w+)["'](?![^)]*raising=False)""")


def test_what_tests_replace_is_there() -> None:
    assert [found for path in sorted((ROOT / "tests").rglob("*.py")) for found in missing(path)] == []


def test_what_is_not_there_is_found_with_its_line(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(
        "from understudy.actors.async_calls import restored_calls\n"
        "from understudy.state import CheckpointStorage as Storage\n"
        "def test_it(monkeypatch):\n"
        '    monkeypatch.setattr(restored_calls, "calls_of", 1)\n'
        '    monkeypatch.setattr(restored_calls, "calls_off", 1)\n'
        '    monkeypatch.setattr(\n        Storage, "write_sealled", 1\n    )\n'
        '    monkeypatch.setattr(monkeypatch, "none", 1)\n'
    )
    assert [found.partition(":")[2] for found in missing(test)] == [
        "5: restored_calls has no calls_off",
        "6: Storage has no write_sealled",
    ]


def missing(path: Path) -> Iterator[str]:
    code = path.read_text()
    replaced = list(_REPLACED.finditer(code))
    owners = dict(_imported(code, path)) if replaced else {}
    for each in replaced:
        name, attribute = each.groups()
        if name in owners and not hasattr(_loaded(*owners[name]), attribute):
            yield f"{path}:{code.count(chr(10), 0, each.start()) + 1}: {name} has no {attribute}"


def _imported(code: str, path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names that a file imports of ours, each with its module and its name there."""
    package = ".".join(path.relative_to(ROOT).parts[:-1]) if path.is_relative_to(ROOT) else ""
    for node in parsed(code).imports:
        if isinstance(node, ast.ImportFrom):
            module = imported_from(node, package)
            if module.partition(".")[0] in OURS:
                yield from ((alias.asname or alias.name, (module, alias.name)) for alias in node.names)


def _loaded(module: str, name: str) -> Any:
    found = importlib.import_module(module)
    return getattr(found, name) if hasattr(found, name) else importlib.import_module(f"{module}.{name}")
