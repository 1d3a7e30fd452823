"""Spans: which files of which versions of a table a subtask of a source has still to read. Plain data, pure functions.

A version has its files in one order, the same for all who ask. A span is every `step`-th of them from `start` on. The
first version that is read has all of the table's files, later ones those that they added. So an offset is small however
many files there are, and subtasks deal them out without asking each other, also when the parallelism has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """`row`: how many rows of its first file are read already."""

    version: int
    is_whole: bool
    """Whether all files of the table as of this version are meant, not only those that it added."""
    start: int
    step: int
    row: int = 0

    def rest(self) -> Span:
        """Behind its first file."""
        return replace(self, start=self.start + self.step, row=0)

    def part(self, index: int, parts: int) -> Span:
        """One of `parts` spans that together hold the same files; the row belongs to the first of them."""
        start, step = self.start + index * self.step, self.step * parts
        return replace(self, start=start, step=step, row=self.row if index == 0 else 0)


@dataclass(frozen=True, slots=True)
class Share:
    """What a subtask has still to read: spans, the first being read, and all that comes after version `seen`."""

    seen: int
    spans: tuple[Span, ...] = ()

    @classmethod
    def of_whole(cls, version: int, subtask: int, parallelism: int) -> Share:
        """A subtask's part of the table as of a version."""
        return cls(version, (Span(version, True, subtask, parallelism),))

    def with_versions(self, versions: Sequence[int], subtask: int, parallelism: int) -> Share:
        """With this subtask's part of what these versions added. Each begins with another subtask than the one before,
        so that small versions do not all go to the first.
        """
        added = [Span(version, False, (subtask - version) % parallelism, parallelism) for version in versions]
        return Share(versions[-1], (*self.spans, *added)) if added else self

    def to_plain(self) -> dict[str, Any]:
        return {"seen": self.seen, "spans": [list(astuple(span)) for span in self.spans]}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Share:
        return cls(plain["seen"], tuple(Span(*span) for span in plain["spans"]))


def dealt_out(shares: Sequence[Share], chain: Sequence[int], subtask: int, parallelism: int) -> Share:
    """What one of `parallelism` subtasks takes of what all old ones have left. `chain`: the versions in their order,
    from the oldest `seen` to the newest at least; an old subtask that was behind has its part of what others had seen.
    """
    newest = max(chain.index(share.seen) for share in shares)
    spans: list[Span] = []
    for old, share in enumerate(shares):
        behind = chain[chain.index(share.seen) + 1 : newest + 1]
        spans += share.with_versions(behind, old, len(shares)).spans
    return Share(chain[newest], tuple(span.part(subtask, parallelism) for span in spans))
