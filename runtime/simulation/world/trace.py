"""Trace: all that happened in a world, in order. The story is what of it a person wants to read.

An entry is kept as it was added and becomes text only when somebody reads it, since most histories are never read.
What is added must not change afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

Entry = tuple[float, str, str, tuple[Any, ...]]
"""Virtual time in ms, who, what, and the details."""


class VirtualTime(Protocol):
    """Who knows the time of an entry: the world."""

    now_ms: float


class Trace:
    """Everybody may add; `lines` is the whole of it, one line per entry."""

    def __init__(self, world: VirtualTime) -> None:
        self._world = world
        self.entries: list[Entry] = []

    def add(self, who: str, what: str, *details: Any) -> None:
        self.entries.append((self._world.now_ms, who, what, details))

    def lines(self) -> Iterator[str]:
        for entry in self.entries:
            yield text_of(entry)


def text_of(entry: Entry) -> str:
    """One entry as a line of text: seconds with microseconds, who, what."""
    now_ms, who, what, details = entry
    told = " ".join(_one_line(detail) for detail in details)
    return f"{now_ms / 1000:13.6f} {who:<14} {what}{': ' if told else ''}{told}"


def _one_line(detail: Any) -> str:
    return " ".join(str(detail).split())
