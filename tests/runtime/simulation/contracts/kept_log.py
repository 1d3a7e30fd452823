"""A service that keeps a log of numbers until they are acknowledged: what a client of a real one is like."""

from __future__ import annotations


class Log:
    def __init__(self, count: int) -> None:
        self.numbers = list(range(count))
        self.acknowledged = 0

    def fetch(self, first: int, most: int) -> list[int]:
        """Those from `first` on that are still there."""
        return self.numbers[max(first, self.acknowledged) :][:most]

    def acknowledge(self, upto: int) -> None:
        """Let go of those before."""
        self.acknowledged = max(self.acknowledged, upto)


LOGS: dict[str, Log] = {}
"""By name, as servers are by address."""


def connect(name: str) -> Log:
    return LOGS[name]
