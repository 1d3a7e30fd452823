"""The house: every module of the library, the room it lies in, and which module imports which.

A room is a folder; a few modules are rooms of their own, where one module joins what stands beside it. `ROOMS` lists
the rooms from the ground up: a room may import those before it in the list and nothing else. Imports count wherever
they stand: at the top, in a function, under TYPE_CHECKING, relative or not, and through a face (an `__init__`), whose
names are followed to the module that defines them. Nothing of the library is imported to find that out.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from .parsed import imported_from, parsed

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "understudy"
FLOORS = ("messages", "state", "actors", "runtime")

ROOMS = (
    "messages",
    "state",
    "state.columns",
    "state.keys",
    "state.kinds",
    "state.backends",
    "state.columnar",
    "state.rocks",
    "state.checkpoints",
    "state.outlets",
    "actors",
    "actors.flow",
    "actors.barriers",
    "actors.operators",
    "actors.windows",
    "actors.joins",
    "actors.async_calls",
    "actors.compiled",
    "actors.tasks",
    "actors.checkpoints",
    "actors.restore",
    "actors.jobs",
    "actors.job_manager",
    "runtime",
    "runtime.system",
    "runtime.system.remote",
    "runtime.system.system",
    "runtime.coroutines",
    "runtime.connectors",
    "runtime.connectors.files",
    "runtime.connectors.inlet",
    "runtime.connectors.kafka",
    "runtime.connectors.lakes",
    "runtime.connectors.redis",
    "runtime.connectors.spark",
    "runtime.connectors.sql",
    "runtime.connectors.sql.changes",
    "runtime.connectors.web",
    "runtime.transport",
    "runtime.api",
    "runtime.output",
    "runtime.metrics",
    "runtime.high_availability",
    "runtime.web",
    "runtime.clusters",
    "runtime.hosts",
    "runtime.savepoints",
    "runtime.oracles",
    "runtime.simulation.world",
    "runtime.simulation.harness",
    "runtime.simulation.contracts",
    "runtime.simulation.debugging",
    "runtime.simulation.histories",
    "runtime.simulation.trials",
    "runtime.chaos",
    "runtime.cli",
)
"""From the ground up. A folder without modules of its own but an `__init__` is no room."""

TASK_MANAGERS = (
    "actors.flow",
    "actors.barriers",
    "actors.operators",
    "actors.windows",
    "actors.joins",
    "actors.async_calls",
    "actors.compiled",
    "actors.tasks",
)
JOB_MANAGERS = ("actors.checkpoints", "actors.restore", "actors.jobs", "actors.job_manager")
"""The two sides on actors' ground: what a TaskManager's process runs, and what the JobManager's does. They exchange
messages and import nothing of each other."""

Sources = Mapping[str, str]
"""Module name without `understudy.` -> its text; a folder's `__init__` has the folder's name and a trailing dot."""


class Arrow(NamedTuple):
    """One module imports another."""

    importer: str
    imported: str
    line: int


@lru_cache
def sources() -> Sources:
    """The library as it is on disk."""
    found: dict[str, str] = {}
    for floor in FLOORS:
        for path in sorted((ROOT / floor).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1]) + "." if parts[-1] == "__init__" else ".".join(parts)
            found[name] = path.read_text()
    return found


def room_of(module: str) -> str:
    """The room of a module: itself if it is one, or its folder."""
    return module if module in ROOMS else module.rpartition(".")[0]


def violations(of: Sources) -> list[str]:
    """All that breaks the rules of ROOMS, in words; empty when the house is in order."""
    arrows = list(_Imports(of).arrows())
    modules = [name for name in of if not name.endswith(".")]
    return [
        *(f"no room: {name} lies in {room_of(name)}" for name in modules if room_of(name) not in ROOMS),
        *filter(None, map(_wrong_way, arrows)),
        *(f"circle: {' -> '.join(circle)}" for circle in _circles(modules, arrows)),
    ]


def _wrong_way(arrow: Arrow) -> str:
    source, target = room_of(arrow.importer), room_of(arrow.imported)
    where = f"{arrow.importer}:{arrow.line} imports {arrow.imported}"
    if arrow.imported == PACKAGE:
        return f"{where}: that is the face above all rooms"
    if source not in ROOMS or target not in ROOMS or source == target:
        return ""
    sides = (TASK_MANAGERS, JOB_MANAGERS)
    if any(source in one and target in other for one, other in (sides, sides[::-1])):
        return f"{where}: from one side to the other, which exchange messages only"
    if ROOMS.index(source) < ROOMS.index(target):
        return f"{where}: {source} stands below {target}"
    return ""


class _Imports:
    """Who imports which names from where."""

    def __init__(self, of: Sources) -> None:
        self._modules = {name.rstrip(".") for name in of}
        self._faces = {name.rstrip(".") for name in of if name.endswith(".")}
        self._found = {name.rstrip("."): _imports_in(name, text) for name, text in of.items()}

    def arrows(self) -> Iterator[Arrow]:
        for importer, imports in self._found.items():
            if importer in self._faces:
                continue
            seen: set[str] = set()
            for target, names, line in imports:
                for home in {self._home(target, name) for name in names} if names else {target}:
                    if home != importer and home not in seen and (home in self._modules or home == PACKAGE):
                        seen.add(home)
                        if home not in self._faces or home == PACKAGE:
                            yield Arrow(importer, home, line)

    def _home(self, target: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> str:
        """The module that defines a name which is imported from `target`."""
        inner = name if target == PACKAGE else f"{target}.{name}"
        if target in self._faces and (target, name) not in seen:
            for source, names, _ in self._found.get(target, ()):
                if name in names:
                    return self._home(source, name, seen | {(target, name)})
        return inner if inner in self._modules else target


@lru_cache(maxsize=2000)
def _imports_in(name: str, text: str) -> list[tuple[str, list[str], int]]:
    """(module, names, line) of each import of something in the package."""
    found: list[tuple[str, list[str], int]] = []
    package = f"{PACKAGE}.{name}".rpartition(".")[0]
    for node in parsed(text).imports:
        if isinstance(node, ast.Import):
            ours = [alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE]
            found.extend((name.removeprefix(f"{PACKAGE}."), [], node.lineno) for name in ours)
        else:
            target = imported_from(node, package)
            if target.split(".")[0] == PACKAGE:
                names = [alias.name for alias in node.names]
                found.append((target.removeprefix(f"{PACKAGE}."), names, node.lineno))
    return found


def _circles(modules: Iterable[str], arrows: Iterable[Arrow]) -> list[list[str]]:
    """One circle of imports for each knot of modules that reach each other, from its first module round to it."""
    to: dict[str, set[str]] = defaultdict(set)
    for arrow in arrows:
        to[arrow.importer].add(arrow.imported)
    reach = {module: _reachable(module, to) for module in modules}
    found: list[list[str]] = []
    done: set[str] = set()
    for module in modules:
        if module in reach[module] and module not in done:
            knot = {other for other in reach[module] if module in reach.get(other, ())}
            done |= knot
            found.append(_way_round(module, to, knot))
    return found


def _reachable(start: str, to: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        new = to.get(todo.pop(), set()) - found
        found |= new
        todo.extend(new)
    return found


def _way_round(start: str, to: Mapping[str, set[str]], within: set[str]) -> list[str]:
    """The shortest way from `start` back to it."""
    ways = [[start]]
    for way in ways:
        for target in sorted(to[way[-1]] & within):
            if target == start:
                return [*way, start]
            if target not in way:
                ways.append([*way, target])
    raise AssertionError(f"{start} is in no circle")
