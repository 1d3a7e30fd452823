"""GroupProgress: how far the windows of each key group had fired and closed, where a restore has left some ahead.

After a rescale a subtask has key groups of several, of which some had come further than the one whose watermark all go
on from. For those, windows that had fired do not fire again, and rows for windows that had closed are late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..keys.word_table import Slots
from .pane_windows import Rows

GroupsOf: TypeAlias = "Callable[[Sequence[pa.Array]], npt.NDArray[Any]]"
"""The key group of each row of key columns."""

ByPane: TypeAlias = "Sequence[tuple[int, Rows]]"


class Progress(NamedTuple):
    """Bounds: windows that end here or before have fired, or closed."""

    fired: int
    closed: int


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """By key group."""

    fired: npt.NDArray[np.int64]
    closed: npt.NDArray[np.int64]
    groups_of: GroupsOf

    @classmethod
    def of(cls, known: Mapping[int, Progress], groups: int, groups_of: GroupsOf) -> GroupProgress:
        """Groups of which nothing is known may be as far behind as any, so that none of their rows is lost."""
        both = np.array(list(known.values()), np.int64).T
        by_group = np.repeat(both.min(axis=1, keepdims=True), groups, axis=1)
        by_group[:, list(known)] = both
        return cls(by_group[0], by_group[1], groups_of)

    @property
    def least(self) -> Progress:
        return Progress(int(self.fired.min()), int(self.closed.min()))

    def is_behind(self, progress: Progress) -> bool:
        """Whether no group is ahead of this."""
        return bool(self.fired.max() <= progress.fired and self.closed.max() <= progress.closed)

    @property
    def is_even(self) -> bool:
        return bool(self.fired.max() == self.fired.min() and self.closed.max() == self.closed.min())

    def levels(self, keys: Sequence[pa.Array], by_pane: ByPane, least: Progress) -> Iterator[tuple[Progress, ByPane]]:
        """The rows of each pane, by how far their groups are, which is at least as far as all are by now."""
        groups = self.groups_of(keys)
        of_rows = np.stack((np.maximum(self.fired, least.fired), np.maximum(self.closed, least.closed)))[:, groups]
        levels, level_of = np.unique(of_rows, axis=1, return_inverse=True)
        for number, (fired, closed) in enumerate(levels.T.tolist()):
            found = [(pane, _at(rows)[level_of.reshape(-1)[rows] == number]) for pane, rows in by_pane]
            yield Progress(fired, closed), [(pane, rows) for pane, rows in found if len(rows)]

    def not_fired(self, keys: Sequence[pa.Array], end: int) -> Slots:
        """The positions of keys for which the window of this end has not fired."""
        return np.flatnonzero(self.fired[self.groups_of(keys)] < end)


def _at(rows: Rows) -> Slots:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
