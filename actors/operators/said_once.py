"""SaidOnce: what is logged once for an operator in this process, as each subtask and attempt would say it again."""

from __future__ import annotations

from typing import Final

MOST: Final = 1_000
"""When so much was said, all is forgotten."""


class SaidOnce:
    """Of one kind of warning."""

    def __init__(self) -> None:
        self._said: set[tuple[str, ...]] = set()

    def is_new(self, *about: str) -> bool:
        """Whether nothing was said about it so far; from now on it was."""
        if about in self._said:
            return False
        if len(self._said) >= MOST:
            self._said.clear()
        self._said.add(about)
        return True

    def clear(self) -> None:
        self._said.clear()
