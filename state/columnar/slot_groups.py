"""The key groups of slots, and what a snapshot has of each: which slots, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import StateNotStorable
from ..keys.key_groups import KeyGroupRange

Groups: TypeAlias = "npt.NDArray[np.uint16]"
"""Key groups. NumPy sorts 16 bits by radix."""
Share: TypeAlias = "tuple[int, int, int]"
"""Key group, begin and end in the rows."""


class SlotGroups:
    """The key group of each slot, kept from snapshot to snapshot: it does not change. Two writers at a time find it
    twice.
    """

    def __init__(self) -> None:
        self._known: tuple[object, Groups] = (None, np.empty(0, np.uint16))

    def first(self, count: int, keys: object, groups_of: Callable[[int, int], npt.NDArray[Any]]) -> Groups:
        """Those of the first `count` slots of these keys (None: there are no others). `groups_of(start, end)` is called
        for slots that are new, or for all if the keys are not those of the last call; what it raises is raised.
        """
        whose, known = self._known
        if whose is not keys:
            known = np.empty(0, np.uint16)
        if len(known) < count:
            known = np.concatenate((known, groups_of(len(known), count).astype(np.uint16)))
            self._known = keys, known
        return known[:count]


def shares_of(groups: Groups) -> tuple[npt.NDArray[np.int64], list[Share]]:
    """The order by key group of rows that are of these groups, and what each group has in that order."""
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups))
    starts = np.concatenate((np.zeros(1, np.int64), ends))[:-1]
    return order, [(group, int(starts[group]), int(ends[group])) for group in np.flatnonzero(ends > starts).tolist()]


def check_owned(groups: npt.NDArray[Any], owned: KeyGroupRange, keys: Sequence[str]) -> None:
    """Raises StateNotStorable for a key group that the subtask does not own."""
    if len(groups) and (groups.min() < owned.first or groups.max() > owned.last):
        raise StateNotStorable(
            f"keys {tuple(keys)}: some are of key groups {groups.min()} to {groups.max()}, and this subtask owns "
            f"{owned.first} to {owned.last}: the stream is not partitioned by these columns"
        )
