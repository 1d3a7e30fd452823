"""What state that expires holds for a key: a pair of the value and of the times of its last updates, in ms.

A value, or an accumulator, has one time; a list has one for each item, and a map one for each entry. What was last
updated at a limit, or before it, has expired. Pairs with parts that expire by themselves are never changed in place
here: a snapshot may be looking at them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, Protocol, TypeAlias

from ...messages import MalformedMessage

Timed: TypeAlias = tuple[Any, Any]


class Shape(Protocol):
    """How one kind of state holds times."""

    def times(self, timed: Timed) -> Collection[int]:
        """All of them, in the order of the parts."""
        ...

    def with_times(self, value: Any, times: Sequence[int]) -> Timed:
        """The value with these times, one for each part. Raises MalformedMessage if there are more or fewer."""
        ...

    def parts(self, value: Any) -> int:
        """How many times it has."""
        ...

    def live_part(self, timed: Timed, limit_ms: int) -> Timed:
        """What has not expired, of a pair of which only a part has."""
        ...

    def stored(self, timed: Timed) -> Any:
        """Its times as a snapshot has them; `with_stored` takes them back."""
        ...

    def with_stored(self, value: Any, stored: Any) -> Timed:
        """Raises MalformedMessage."""
        ...


def live(shape: Shape, timed: Timed, limit_ms: int) -> Timed | None:
    """What has not expired: the pair itself if nothing has, None if all has."""
    times = shape.times(timed)
    if min(times) > limit_ms:
        return timed
    return shape.live_part(timed, limit_ms) if max(times) > limit_ms else None


class _Whole:
    def times(self, timed: Timed) -> Collection[int]:
        return timed[1:]

    def with_times(self, value: Any, times: Sequence[int]) -> Timed:
        return value, times[0]

    def parts(self, value: Any) -> int:
        return 1

    def live_part(self, timed: Timed, limit_ms: int) -> Timed:
        raise AssertionError("a value has one time")

    def stored(self, timed: Timed) -> Any:
        return timed[1]

    def with_stored(self, value: Any, stored: Any) -> Timed:
        if type(stored) is not int:
            raise MalformedMessage(f"wanted the time of a value, found {stored!r:.60}")
        return value, stored


class _Parts:
    """What a list and a map have in common."""

    def parts(self, value: Any) -> int:
        return len(value)

    def times(self, timed: Timed) -> Collection[int]:
        raise NotImplementedError  # abstract

    def with_times(self, value: Any, times: Sequence[int]) -> Timed:
        raise NotImplementedError  # abstract

    def stored(self, timed: Timed) -> Any:
        return list(self.times(timed))

    def with_stored(self, value: Any, stored: Any) -> Timed:
        if type(stored) is not list or len(stored) != len(value) or not stored:
            raise MalformedMessage(f"wanted the times of {len(value)} items, found {stored!r:.60}")
        return self.with_times(value, stored)


class _Items(_Parts):
    def times(self, timed: Timed) -> Collection[int]:
        return timed[1]  # type: ignore[no-any-return]

    def with_times(self, value: Any, times: Sequence[int]) -> Timed:
        return value, list(times)

    def live_part(self, timed: Timed, limit_ms: int) -> Timed:
        items, times = timed
        kept = [at for at, time_ms in enumerate(times) if time_ms > limit_ms]
        return [items[at] for at in kept], [times[at] for at in kept]


class _Entries(_Parts):
    def times(self, timed: Timed) -> Collection[int]:
        return timed[1].values()  # type: ignore[no-any-return]

    def with_times(self, value: Any, times: Sequence[int]) -> Timed:
        return value, dict(zip(value, times, strict=True))

    def live_part(self, timed: Timed, limit_ms: int) -> Timed:
        entries, times = timed
        kept = {key: time_ms for key, time_ms in times.items() if time_ms > limit_ms}
        return {key: entries[key] for key in kept}, kept


WHOLE: Final[Shape] = _Whole()
ITEMS: Final[Shape] = _Items()
"""(list, list of times)."""
ENTRIES: Final[Shape] = _Entries()
"""(dict, dict of times with the same keys in the same order)."""
