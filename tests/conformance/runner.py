"""Which adapter plays a vector file, and what came of it. A file is known by its words, not by its name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

from . import (
    back_pressure,
    barrier_buffer,
    barrier_tracker,
    checkpoint_coordinator,
    iterations,
    key_groups,
    restart_strategies,
    scheduling,
    state_backend,
    two_phase_commit,
    windows,
)
from .scenario import Difference, Scenario, Skipped, Words


class NotAVectorFile(ValueError):
    """A file that no adapter knows, or that is no JSON; the text says what was found and what was wanted."""


class Adapter(Protocol):
    """A module per schema: the words that only it has, and the scenarios of a file."""

    KEYS: frozenset[str]

    @property
    def scenarios(self) -> Callable[[Words], Iterator[Scenario]]: ...


ADAPTERS: Mapping[str, Adapter] = {
    "barrier tracker": barrier_tracker,
    "barrier buffer": barrier_buffer,
    "checkpoint coordinator": checkpoint_coordinator,
    "key groups": key_groups,
    "restart strategies": restart_strategies,
    "scheduling": scheduling,
    "state backend": state_backend,
    "two-phase commit": two_phase_commit,
    "back-pressure": back_pressure,
    "windows": windows,
    "iterations": iterations,
}
"""In this order, because a tracker's scenarios share most of their words with a buffer's."""


@dataclass(slots=True)
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


def read(path: Path) -> Words:
    """Raises NotAVectorFile."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotAVectorFile(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise NotAVectorFile(f"{path}: found no JSON ({error}); wanted a vector file") from error
    if not isinstance(document, dict):
        raise NotAVectorFile(f"{path}: found a JSON {type(document).__name__}; wanted an object with scenarios")
    return document


def schema_of(document: Words) -> str | None:
    """The name of its adapter; None for no vector file."""
    words = _words_of(document)
    for name, adapter in ADAPTERS.items():
        if words & adapter.KEYS:
            return name
    return None


def _words_of(document: Words) -> set[str]:
    """Keys of the file, of the tables in its head, and of its scenarios with their settings and steps."""
    words = set(document)
    for part in document.values():
        for table in part if isinstance(part, list) else [part]:
            words |= _keys(table)
            for inner in table.values() if isinstance(table, dict) else ():
                for each in inner if isinstance(inner, list) else [inner]:
                    words |= _keys(each)
    return words


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def scenarios_in(document: Words, path: Path) -> Iterator[Scenario]:
    """Raises NotAVectorFile."""
    schema = schema_of(document)
    if schema is None:
        known = ", ".join(ADAPTERS)
        raise NotAVectorFile(f"{path}: found the keys {', '.join(list(document)[:8])}; wanted one of: {known}")
    return ADAPTERS[schema].scenarios(document)


def run(path: Path, tally: Tally, out: TextIO, most: int | None = None) -> None:
    """Play a file: a line for each scenario that differs. A scenario ends with its `most`-th difference. Raises
    NotAVectorFile.
    """
    for scenario in scenarios_in(read(path), path):
        try:
            differences = scenario.differences(most)
        except Skipped as skipped:
            tally.skipped[str(skipped)] += 1
            continue
        if differences:
            tally.failed += 1
            print(f"{path.name}: {scenario.name}: {_in_a_line(differences)}", file=out)
        else:
            tally.passed += 1


def _in_a_line(differences: list[Difference]) -> str:
    more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
    return f"{differences[0]}{more}".replace("\n", " ")
