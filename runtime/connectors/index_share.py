"""IndexShare: which of the indexes 0, 1, 2, … a source's subtask has still to emit; plain data, and dealt out again.

Indexes are dealt out in chunks of `width`: chunk c belongs to subtask c mod p. When the parallelism changes, subtasks
have come unequally far. From the index B on that none of them has reached, everything is dealt out as on a fresh start;
what the slower ones have left before B is a few runs of chunks, which are cut into even parts and taken first. A change
from p to q subtasks adds at most 2p + q runs, however large they are, and they go when they are done.

Within a run indexes ascend. A run that is taken after another one may begin before it: where event time goes by the
indexes, each has a watermark of its own then, as splits have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Self

from .errors import OffsetMismatch


@dataclass(frozen=True, slots=True)
class Run:
    """Chunks of `width` indexes that begin at start, start + step, … before `stop`; infinity: without end."""

    start: int
    stop: float
    step: int
    width: int

    def chunks_before(self, limit: float) -> float:
        """How many of its chunks begin before both its stop and the limit."""
        end = min(self.stop, limit)
        return end if end == inf else max(0, -(-(int(end) - self.start) // self.step))

    def first(self, chunks: int) -> Run:
        return replace(self, stop=self.start + chunks * self.step)

    def after(self, chunks: int) -> Run:
        return replace(self, start=self.start + chunks * self.step)

    @property
    def name(self) -> str:
        """The same however far it is, and another one than any other run's of the source."""
        if self.width == self.step and self.stop == self.start + 1:
            return f"to {self.start + self.width}"  # the rest of a chunk
        every = f"{self.start % self.step} of {self.step}"
        return every if self.stop == inf else f"{every} to {int(self.stop)}"

    @property
    def end(self) -> float:
        """One more than its last index."""
        chunks = self.chunks_before(inf)
        return inf if chunks == inf else self.start + (int(chunks) - 1) * self.step + self.width

    def to_plain(self) -> list[int]:
        assert self.stop != inf, "only a subtask's own run is without end"
        return [self.start, int(self.stop), self.step, self.width]


class IndexShare:
    """Which of the indexes 0, 1, 2, ... one subtask of a source still has to emit.

    Its own run has no end; a limit says how many indexes there are at the moment.
    """

    def __init__(self, own: Run, left: Sequence[Run] = ()) -> None:
        self._own = own
        self._left = list(left)
        """What earlier parallelisms left behind, and the rest of a chunk; before its own run."""
        self.taken_of = ""
        """The name of the run that the last indexes are of."""

    @classmethod
    def fresh(cls, subtask: int, parallelism: int, width: int = 1, begin: int = 0) -> Self:
        """A subtask's share at the start of a job: every `parallelism`-th block of `width` indexes from `begin` on."""
        return cls(Run(begin + subtask * width, inf, parallelism * width, width))

    @property
    def reached(self) -> int:
        """The last index taken of its own run, or one before its begin."""
        return self._own.start - self._own.step

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its runs, in the order in which they are taken."""
        return tuple(run.name for run in (*self._left, self._own))

    @property
    def first(self) -> int:
        """The first index that is left, of all its runs."""
        return min(run.start for run in (*self._left, self._own))

    @property
    def goes_back(self) -> bool:
        """Whether a run begins before the end of one that is taken before it."""
        furthest: float = 0
        for run in (*self._left, self._own):
            if run.start < furthest:
                return True
            furthest = max(furthest, run.end)
        return False

    def take(self, most: int, limit: float = inf, *, adjacent: bool = False) -> range | None:
        """The next indexes below `limit`, at most `most`, as one range; None when there are none.

        `adjacent`: the range must have step 1.
        """
        for place, run in enumerate((*self._left, self._own)):
            if run.chunks_before(limit):
                taken, rest = _split(run, most, limit, adjacent=adjacent)
                self._replace(place, rest)
                self.taken_of = run.name
                return taken
        return None

    def to_plain(self) -> dict[str, Any]:
        """As plain data, for the `offset` of a source."""
        own = self._own
        left = [run.to_plain() for run in self._left]
        return {"next": own.start, "step": own.step, "width": own.width, "left": left}

    @classmethod
    def from_plain(cls, plain: dict[str, Any], parallelism: int) -> Self:
        """What `to_plain` gave under the same parallelism. Raises OffsetMismatch."""
        share = cls._read(plain)
        recorded = share._own.step // share._own.width
        if recorded != parallelism:
            raise OffsetMismatch(
                f"this offset was recorded with parallelism {recorded} and means nothing to one of {parallelism} "
                "subtasks: wanted all offsets together"
            )
        return share

    @classmethod
    def dealt_out(cls, plains: Sequence[dict[str, Any]], subtask: int, parallelism: int, width: int = 1) -> Self:
        """One new subtask's share of what all old ones have left; `plains` are theirs, in their order."""
        shares = [cls._read(plain) for plain in plains]
        if len(kinds := {(share._own.step, share._own.width) for share in shares}) > 1:
            raise OffsetMismatch(f"these offsets do not belong together: their steps and widths are {sorted(kinds)}")
        begin = max(share._own.start for share in shares)
        behind = [run for share in shares for run in (*share._left, replace(share._own, stop=begin))]
        return cls(cls.fresh(subtask, parallelism, width, begin)._own, _cut(behind, parallelism)[subtask])

    @classmethod
    def _read(cls, plain: dict[str, Any]) -> Self:
        own = Run(plain["next"], inf, plain["step"], plain["width"])
        return cls(own, [Run(*numbers) for numbers in plain["left"]])

    def _replace(self, place: int, rest: list[Run]) -> None:
        """Put what is left of a run in its place. Of the own run the last part is the own run again."""
        if place == len(self._left):
            self._own = rest.pop()
        self._left[place : place + 1] = [run for run in rest if run.chunks_before(inf)]


def _split(run: Run, most: int, limit: float, *, adjacent: bool) -> tuple[range, list[Run]]:
    """The first indexes of a run, and what is left: perhaps the rest of a chunk, and always the chunks after it."""
    if run.width == 1:
        chunks = int(min(most, run.chunks_before(limit)))
        if adjacent and run.step > 1:
            chunks = 1
        return range(run.start, run.start + chunks * run.step, run.step), [run.after(chunks)]
    count = int(min(most, run.width, limit - run.start))
    begun, left = run.start + count, run.width - count
    rest = [Run(begun, begun + 1, left, left)] if left else []
    return range(run.start, begun), [*rest, run.after(1)]


def _cut(runs: Sequence[Run], parts: int) -> list[list[Run]]:
    """All chunks in order, cut into `parts` parts of about equally many indexes."""
    dealt: list[list[Run]] = [[] for _ in range(parts)]
    total = sum(int(run.chunks_before(inf)) * run.width for run in runs)
    done = 0
    for run in runs:
        while chunks := int(run.chunks_before(inf)):
            part = done * parts // total
            room = -(-(part + 1) * total // parts) - done
            taken = min(chunks, -(-room // run.width))
            dealt[part].append(run.first(taken))
            run, done = run.after(taken), done + taken * run.width
    return dealt
