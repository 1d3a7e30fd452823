"""Evictors: which records of a window stay in it, before or after a firing. Flink: CountEvictor, TimeEvictor.

A window with an evictor keeps all its records, each with its time, since any of them may go; so nothing is combined as
records come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, Unpack

from ...state.kinds.durations import Duration, Units, duration_ms
from .errors import InvalidWindow
from .window import Window

When: TypeAlias = Literal["before", "after"]
"""Of the function: whether it sees the records that go."""


class TimedRecord(NamedTuple):
    """A record of a window and its event time, None on a stream without."""

    timestamp_ms: int | None
    record: Any


class Evictor:
    """Subclass it for an evictor of your own: each method returns those that stay. It must not remember anything."""

    def before(self, records: Sequence[TimedRecord], window: Window) -> Sequence[TimedRecord]:
        """The records, in the order in which they came, that the function gets, and that stay."""
        return records

    def after(self, records: Sequence[TimedRecord], window: Window) -> Sequence[TimedRecord]:
        """Those that stay when the function has seen them."""
        return records


@dataclass(frozen=True)
class _Evictor(Evictor):
    """One rule, at one of the two moments."""

    limit: int
    when: When = "before"

    def __post_init__(self) -> None:
        if self.when not in ("before", "after"):
            raise InvalidWindow(f"evictor: when: wanted 'before' or 'after' the function, found {self.when!r:.80}")
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit <= 0:
            raise InvalidWindow(f"evictor: wanted a limit above 0, found {self.limit!r:.80}")

    def before(self, records: Sequence[TimedRecord], window: Window) -> Sequence[TimedRecord]:
        return self._staying(records) if self.when == "before" else records

    def after(self, records: Sequence[TimedRecord], window: Window) -> Sequence[TimedRecord]:
        return self._staying(records) if self.when == "after" else records

    def _staying(self, records: Sequence[TimedRecord]) -> Sequence[TimedRecord]:
        raise NotImplementedError  # abstract


@dataclass(frozen=True)
class LastRecords(_Evictor):
    def _staying(self, records: Sequence[TimedRecord]) -> Sequence[TimedRecord]:
        return records[-self.limit :]


@dataclass(frozen=True)
class NewestRecords(_Evictor):
    def _staying(self, records: Sequence[TimedRecord]) -> Sequence[TimedRecord]:
        times = [each.timestamp_ms for each in records if each.timestamp_ms is not None]
        if not times:
            return records
        after_ms = max(times) - self.limit
        return [each for each in records if each.timestamp_ms is None or each.timestamp_ms > after_ms]


def keep_last(n: int, when: When = "before") -> Evictor:
    """Keep the last n records that came."""
    return LastRecords(n, when)


def keep_newest(within: Duration | None = None, when: When = "before", **units: Unpack[Units]) -> Evictor:
    """Keep the records whose time is less than this long before the newest one's: keep_newest(minutes=1). Records
    without a time stay.
    """
    return NewestRecords(duration_ms("keep_newest", within, units, error=InvalidWindow), when)
