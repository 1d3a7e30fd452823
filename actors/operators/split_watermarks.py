"""SplitWatermarks: how far event time has come in one subtask of a source, split by split.

Each split has a generator and a watermark of its own; the subtask is as far as the least of the splits that are waited
for. One that has ended is forgotten. One that is idle is not waited for; when all are, the subtask is as far as the
furthest of them (FLINK-38454), and idle itself, as it is when it has no splits at all (FLINK-32414). One that is
paused, because it runs ahead of its group by more than the drift, is never idle (FLINK-40093): its records are not
looked for. A stream without splits is one split with no name.

A value machine: it emits nothing. Times of arrival are those of an ActivityClock. Flink: WatermarkOutputMultiplexer,
WatermarksWithIdleness, SourceOperator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..flow.elements import NO_WATERMARK, Batch, Times
from .watermark_generators import WatermarkGenerator, WatermarkStrategy, watermarks_before

ONLY_SPLIT = ""
"""The name of the split that a stream without splits is."""


@dataclass(slots=True)
class SplitProgress:
    """One split's."""

    name: str
    generator: WatermarkGenerator
    watermark_ms: int
    heard_ms: float
    """By the activity clock: when it brought its last records, or was looked at first."""
    moved_ms: float
    """By the task's clock: when its watermark came further."""
    records: int = 0
    is_idle: bool = False
    is_paused: bool = False


class SplitWatermarks:
    """One subtask's. `idle_after_ms` None: no split is ever idle."""

    def __init__(self, strategy: WatermarkStrategy, idle_after_ms: int | None = None) -> None:
        self._strategy = strategy
        self._idle_after_ms = idle_after_ms
        self._splits: dict[str, SplitProgress] = {}
        self._restored: dict[str, int] = {}
        self._floor_ms = NO_WATERMARK
        self._limit_ms: int | None = None

    def restore(self, watermarks: Iterable[tuple[str, int]], floor_ms: int) -> None:
        """Where splits were when the snapshot was taken. Those that it does not know begin at `floor_ms`."""
        self._restored, self._floor_ms = dict(watermarks), floor_ms

    def snapshot(self) -> list[tuple[str, int]]:
        """By the name of each split, its watermark."""
        return [(split.name, split.watermark_ms) for split in self._splits.values()]

    def settle(self, names: Collection[str], active_ms: float, now_ms: float) -> None:
        """These are the splits now: new ones begin, those that are missing have ended."""
        if self._splits.keys() == set(names):
            return
        self._splits = {name: self._splits.get(name) or self._begin(name, active_ms, now_ms) for name in names}

    def on_batch(self, name: str, times: Times, records: Batch, active_ms: float, now_ms: float) -> None:
        """Records of this split have come. Its watermark never goes back."""
        split = self._splits.get(name)
        if split is None:
            split = self._splits[name] = self._begin(name, active_ms, now_ms)
        split.heard_ms, split.is_idle = active_ms, False
        split.records += len(times)
        watermark_ms = split.generator.on_batch(times, records)
        if watermark_ms is not None and watermark_ms > split.watermark_ms:
            split.watermark_ms, split.moved_ms = watermark_ms, now_ms
            split.is_paused = self._is_ahead(split)

    def marks(self, name: str, times: Times, records: Batch) -> Times | None:
        """For each record of this split the split's watermark before it, if any is late by that. Before `on_batch`."""
        split = self._splits.get(name)
        if split is None:
            return None
        return watermarks_before(split.generator, times, records, split.watermark_ms)

    def heard(self, name: str) -> None:
        """Records of this split are about to be taken."""
        if (split := self._splits.get(name)) is not None:
            split.is_idle = False

    def look(self, active_ms: float) -> None:
        """See which splits have brought nothing for too long."""
        if self._idle_after_ms is None:
            return
        for split in self._splits.values():
            if not split.is_paused and active_ms - split.heard_ms >= self._idle_after_ms:
                split.is_idle = True

    def idle_in_ms(self, active_ms: float) -> float | None:
        """In how many ms of activity the next split is idle if it brings nothing; None: none will be."""
        if self._idle_after_ms is None:
            return None
        heard = [split.heard_ms for split in self._splits.values() if not (split.is_idle or split.is_paused)]
        return max(min(heard) + self._idle_after_ms - active_ms, 0.0) if heard else None

    def align(self, limit_ms: int | None, active_ms: float) -> None:
        """Splits that are further than the limit are paused from here on, the others are not; None: no limit."""
        self._limit_ms = limit_ms
        for split in self._splits.values():
            was_paused, split.is_paused = split.is_paused, self._is_ahead(split)
            if was_paused and not split.is_paused:
                split.heard_ms = active_ms

    @property
    def all(self) -> tuple[SplitProgress, ...]:
        """Every split that has not ended. For any thread, as are all properties."""
        return tuple(self._splits.values())

    @property
    def watermark_ms(self) -> int:
        """How far the subtask is by its splits of now; it may be less than it was, when one has come."""
        splits = self.all
        active = [split.watermark_ms for split in splits if not split.is_idle]
        if active:
            return min(active)
        return max((split.watermark_ms for split in splits), default=NO_WATERMARK)

    @property
    def is_idle(self) -> bool:
        """Whether no split is waited for."""
        return all(split.is_idle for split in self.all)

    @property
    def is_paused(self) -> bool:
        """Whether there is no split of which records may be taken now, and there is one."""
        return bool(self._splits) and all(split.is_paused for split in self.all)

    @property
    def paused(self) -> frozenset[str]:
        """The names of the splits that are paused."""
        return frozenset(split.name for split in self.all if split.is_paused)

    @property
    def slowest(self) -> SplitProgress | None:
        """The split that holds the subtask back, if one is waited for."""
        active = [split for split in self.all if not split.is_idle]
        return min(active, key=lambda split: split.watermark_ms, default=None)

    @property
    def furthest_ms(self) -> int:
        """The watermark of the split that is furthest."""
        return max((split.watermark_ms for split in self.all), default=NO_WATERMARK)

    def _begin(self, name: str, active_ms: float, now_ms: float) -> SplitProgress:
        generator = self._strategy.generator()
        watermark_ms = self._restored.pop(name, self._floor_ms)
        if watermark_ms != NO_WATERMARK:
            generator.restore(watermark_ms)
        split = SplitProgress(name, generator, watermark_ms, active_ms, now_ms)
        split.is_paused = self._is_ahead(split)
        return split

    def _is_ahead(self, split: SplitProgress) -> bool:
        return self._limit_ms is not None and split.watermark_ms > self._limit_ms
