"""What tests import of each other, of the library, benchmarks and examples is there: a draw leaves most files unread,
and a slow test is read when somebody runs it (draw.py), so a name that went would be missed for long.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from .parsed import imported_from, parsed

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"understudy": ROOT / "src" / "understudy", "tests": ROOT / "tests", "benchmarks": ROOT / "benchmarks"}


def test_what_tests_import_is_there() -> None:
    assert [found for path in sorted((ROOT / "tests").rglob("*.py")) for found in missing(path)] == []


def test_what_is_not_there_is_found_with_its_line(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(
        "def test_it():\n    from understudy import Nothing, StreamEnvironment\n    from understudy.none import x\n"
        "from understudy.testing import (\n    SimulatedCluster,\n    Simulated,\n)\n"
    )
    assert [found.partition(":")[2] for found in missing(test)] == [
        "4: understudy.testing has no Simulated",
        "2: understudy has no Nothing",
        "3: there is no understudy.none",
    ]


def missing(path: Path) -> Iterator[str]:
    """Imports that are meant to fail say so to type checkers, too."""
    code = path.read_text()
    lines = code.splitlines()
    for node in parsed(code).imports:
        if "type: ignore[attr-defined]" in lines[node.lineno - 1]:
            continue
        for target, names in imported(node, path):
            module = file_of(target)
            if module is None:
                yield f"{path}:{node.lineno}: there is no {target}"
                continue
            for name in names:
                if name not in names_of(module) and file_of(f"{target}.{name}") is None:
                    yield f"{path}:{node.lineno}: {target} has no {name}"


def imported(node: ast.Import | ast.ImportFrom, path: Path) -> Iterator[tuple[str, list[str]]]:
    """Modules of ours that one statement imports, and which of their names."""
    if isinstance(node, ast.Import):
        wanted = [(alias.name, list[str]()) for alias in node.names]
    else:
        package = ".".join(path.relative_to(ROOT).parts[:-1]) if node.level else ""
        wanted = [(imported_from(node, package), [alias.name for alias in node.names])]
    yield from ((target, names) for target, names in wanted if target.partition(".")[0] in FOLDERS)


@cache
def file_of(module: str) -> Path | None:
    first, *rest = module.split(".")
    place = FOLDERS[first].joinpath(*rest)
    files = (place / "__init__.py", place.with_suffix(".py"), place)
    return next((each for each in files if each.exists()), None)


@cache
def names_of(file: Path) -> frozenset[str]:
    """What a module's own statements bind, under TYPE_CHECKING too: there the lazy names of a face stand."""
    return frozenset(_bound(ast.parse(file.read_text()).body)) if file.is_file() else frozenset()


def _bound(statements: Iterable[ast.AST]) -> Iterator[str]:
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        else:
            yield from _bound(ast.iter_child_nodes(node))
