"""What a vector file is to the runner: named scenarios, each of which says how it differs when it is played."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

Words: TypeAlias = dict[str, Any]
"""A JSON object of a vector file."""

VECTORS = Path(__file__).parent / "vectors"

REMARKS = frozenset(
    {"name", "title", "id", "source", "origin", "note", "notes", "comment", "description", "tags", "semantics"}
    | {"flink_versions", "verified_by", "provenance"}
)
"""Words that say nothing about what is to be played; a table may have them next to its facts."""


class UnknownWord(ValueError):
    """A scenario says something that the adapter of its schema has no translation for."""


class Skipped(Exception):
    """This scenario asks for something that Understudy does not have, or not in this way; the reason is for people."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not as the file says."""

    where: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected!r}, found {self.found!r}"


Differences: TypeAlias = Iterable[Difference]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario of a file. `play` may raise Skipped; whatever else it raises is a difference, too."""

    name: str
    play: Callable[[], Differences]

    def differences(self, most: int | None = None) -> list[Difference]:
        """All, or the first `most`, and not played any further then. Raises Skipped only."""
        try:
            return list(islice(self.play(), most))
        except Skipped:
            raise
        except Exception as error:  # noqa: BLE001  whatever a class of ours raises is what differs
            return [Difference("played to the end", True, f"{type(error).__name__}: {error}")]


def said(words: Words) -> Words:
    """Without what it leaves open: null is as good as not said."""
    return {name: value for name, value in words.items() if value is not None}


def compare(where: str, expected: Any, found: Any) -> Iterator[Difference]:
    if expected != found:
        yield Difference(where, expected, found)


def compare_all(where: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    """Of each fact that is expected; one that the adapter cannot tell is an UnknownWord."""
    for name, wanted in expected.items():
        if name in REMARKS:
            continue
        if name not in found:
            raise UnknownWord(f"{where}: nothing can be said about {name!r}")
        yield from compare(f"{where}: {name}", wanted, found[name])


def scenarios_of(
    document: Words, section: str, play: Callable[[Words], Differences], name_of: Callable[[Words], str] | None = None
) -> Iterator[Scenario]:
    """Those of one section, which may be missing. Without a name of their own they are called by their number."""
    for number, words in enumerate(document.get(section, [])):
        own = name_of(words) if name_of else words.get("name", str(number))
        name = own if section == "scenarios" else f"{section}/{own}"
        yield Scenario(name, lambda words=words: play(words))  # type: ignore[misc]


def facts_of(
    document: Words, section: str, proofs: Mapping[str, Sequence[Callable[[], None]]], skipped: Mapping[str, str]
) -> Iterator[Scenario]:
    """Facts told in words: each is held by tests of ours, which raise AssertionError where it is not so."""

    def prove(words: Words) -> Differences:
        name = words["name"]
        if name in skipped:
            raise Skipped(skipped[name])
        if name not in proofs:
            raise Skipped(f"told in words, and no test is known to hold it: {section}/{name}")
        for proof in proofs[name]:
            proof()
        return ()

    return scenarios_of(document, section, prove)
