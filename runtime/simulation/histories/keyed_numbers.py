"""The numbers that go through our own jobs: from all subtasks of a source, and the keys that they have.

What jobs beyond the standard ones share; those get their numbers from `one_source`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Literal

from ....actors.flow.elements import Batch
from ....actors.operators.source import END, SourceState
from ....state.keys.key_groups import key_group
from ...api.environment import StreamEnvironment
from ...connectors.paced_source import PacedSource
from .topologies import MAX_PARALLELISM, Workload

_GROUPS = (0, 15, 7, 8, 5, 10, 3, 12, 6, 11, 1, 14, 4, 9, 2, 13)
"""All, those first between which a rescale divides."""

_KEYS = tuple(next(key for key in count() if key_group(key, MAX_PARALLELISM) == group) for group in _GROUPS)
"""One of each key group."""


class Ragged(PacedSource):
    """Numbers one by one; the first of several subtasks has a quarter of them. Its offset is what is left."""

    left: list[int]

    def __init__(self, records: int, records_per_second: float) -> None:
        super().__init__(1, records_per_second)
        self.records = records

    def open(self) -> None:
        super().open()
        self._take_share_of(list(range(self.records)))

    def read(self, max_records: int) -> Batch | Literal[SourceState.END]:
        if not self.left:
            return END
        taken, self.left = self.left[:max_records], self.left[max_records:]
        return taken

    def offset(self) -> list[int]:
        return self.left

    def seek(self, offset: list[int]) -> None:
        self.left = offset

    def rescale(self, offsets: Sequence[list[int]]) -> None:
        self._take_share_of(sorted(number for left in offsets for number in left))

    def _take_share_of(self, numbers: list[int]) -> None:
        index, others = self.context.subtask_index, self.context.parallelism - 1
        quarter = len(numbers) // 4
        if others == 0:
            self.left = numbers
        else:
            self.left = numbers[:quarter] if index == 0 else numbers[quarter:][index - 1 :: others]


def everywhere(env: StreamEnvironment, workload: Workload) -> Any:
    """The numbers from as many subtasks as the job has: the first one has the smallest, and ends first."""
    numbers = Ragged(workload.records, workload.records_per_second)
    return env.from_source(numbers, name="numbers", parallelism=workload.parallelism)


def key_of(number: int, keys: int) -> int:
    """One of this number of keys: the first ones are of all key groups."""
    place = number % keys
    return _KEYS[place] if place < len(_KEYS) else 1_000 + place


def by_key(stream: Any, workload: Workload) -> Any:
    keys = workload.keys
    return stream.key_by(lambda number: key_of(number, keys))


def with_keys(workload: Workload) -> list[tuple[int, int]]:
    """Each number, behind its key."""
    return [(key_of(number, workload.keys), number) for number in range(workload.records)]
