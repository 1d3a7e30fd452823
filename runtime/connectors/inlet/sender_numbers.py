"""SenderNumbers: the number of the last record of each sender, so that one that is sent again counts once.

Senders with a name of their user's are remembered permanently. A name that was made up by a client begins with "#" and
is of one object in one process: of these the latest are remembered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

MADE_UP = "#"
"""The beginning of names that no user gives."""
REMEMBERED = 10_000
"""Made-up names, those that sent something last."""


class SenderNumbers:
    """Of one subtask of an inlet."""

    def __init__(self, numbers: Mapping[str, int] | Iterable[tuple[str, int]] = (), *, forgets: bool = True) -> None:
        """`forgets` False: all are remembered."""
        self._most = REMEMBERED if forgets else math.inf
        self._named: dict[str, int] = {}
        self._made_up: dict[str, int] = {}
        for sender, last in dict(numbers).items():
            self.set(sender, last)

    def last(self, sender: str) -> int:
        """0 of one that has sent nothing yet."""
        return self._named.get(sender) or self._made_up.get(sender, 0)

    def set(self, sender: str, last: int) -> None:
        numbers = self._named
        if sender.startswith(MADE_UP):
            numbers = self._made_up
            numbers.pop(sender, None)  # the order is that of their latest records
            if len(numbers) >= self._most:
                del numbers[next(iter(numbers))]
        numbers[sender] = last

    def plain(self) -> dict[str, int]:
        return self._named | self._made_up

    def copy(self) -> SenderNumbers:
        """One that forgets."""
        return SenderNumbers(self.plain())
