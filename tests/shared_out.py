"""How tests are shared out among testers: tests/testers.py."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Tests that share what takes long to start: one tester runs them, one after the other."""

    name: str
    tests: Sequence[int]
    """Their places in `session.items`."""
    whole: bool = False
    """No other tester helps with it."""


class Queue:
    """Which test each tester of one kind runs next."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._waiting = deque(groups)
        self._own: dict[int, deque[int]] = {}
        self._whole: set[int] = set()
        """Testers that have a group that stays whole."""
        self._closed = False

    def next(self, tester: int) -> int | None:
        own = self._own.setdefault(tester, deque())
        if not own and not self._closed:
            self._whole.discard(tester)
            if self._waiting:
                group = self._waiting.popleft()
                own.extend(group.tests)
                if group.whole:
                    self._whole.add(tester)
            else:
                self._help(own)
        return own.popleft() if own else None

    def _help(self, own: deque[int]) -> None:
        others = [theirs for tester, theirs in self._own.items() if tester not in self._whole]
        busiest = max(others, key=len, default=own)
        own.extendleft([busiest.pop() for _ in range((len(busiest) + 1) // 2)])

    def put_back(self, tester: int, test: int) -> None:
        """It has not begun."""
        if not self._closed:
            self._own[tester].appendleft(test)

    def close(self) -> None:
        """No other test begins."""
        self._closed = True
        for own in self._own.values():
            own.clear()


def grouped(items: Iterable[tuple[int, str, bool]]) -> Iterator[Group]:
    """`items`: each one's place, the name of its group, and whether that stays whole."""
    tests: dict[str, list[int]] = {}
    wholes: dict[str, bool] = {}
    for place, name, whole in items:
        tests.setdefault(name, []).append(place)
        wholes[name] = whole
    for name, places in tests.items():
        yield Group(name, places, wholes[name])
