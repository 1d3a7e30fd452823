"""Demanding topologies: jobs whose output shows more than how many records there were. The mix of histories draws them
where a situation needs them.

`ordered` shows the order in which the records of a key come, and that of a user's list. `held` has items in an operator
list, which a rescale deals out with a remainder, and emits them when its data has ended, into a vertex that counts.
`tallied` emits from keyed state when its data has ended, into another keyed vertex. `splits` reads as a file source
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Literal

import pyarrow as pa

from ....actors.flow.elements import Batch
from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.operator import Operator
from ....actors.operators.source import END, SourceState
from ....state import ListState, OperatorListState, ValueState
from ....state.keys.key_groups import key_group
from ...api.environment import StreamEnvironment
from ...connectors.files.file_readers import FileSplit
from ...connectors.files.split_source import SplitSource
from ...connectors.paced_source import PacedSource
from .topologies import MAX_PARALLELISM, OUTPUT, Counter, Same, Topology, Workload, by_name, counted, environment

_REMEMBERED = 3

_SPLIT_ROWS, _READ_ROWS = 7, 3
_NUMBERS = pa.schema([("number", pa.int64())])

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


class Splits(SplitSource):
    """The numbers as a file source has them: in splits of several rows, read in batches that do not divide these."""

    def __init__(self, records: int, records_per_second: float) -> None:
        super().__init__(1, records_per_second)
        starts = range(0, records, _SPLIT_ROWS)
        splits = [FileSplit(f"numbers-{start}", start, min(_SPLIT_ROWS, records - start)) for start in starts]
        self.settle("numbers", splits, _NUMBERS)

    def open_split(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        for start in range(0, split.size, _READ_ROWS):
            rows = range(split.row_group + start, split.row_group + min(start + _READ_ROWS, split.size))
            yield pa.record_batch([list(rows)], schema=_NUMBERS)


class Follows(KeyedOperator):
    """With each number the last ones of its key, in the order in which they came."""

    seen = ListState(int)

    def process(self, record: int, out: Collector) -> None:
        self.seen.add(record)
        out.collect((self.key, *list(self.seen.get())[-_REMEMBERED:]))


class Hold(Operator):
    """Keeps every second number until its data has ended; lets the others through."""

    held = OperatorListState(int)

    def process_batch(self, batch: list[int], out: Collector) -> None:
        for number in batch:
            if number % 2:
                self.held.add(number)
            else:
                out.collect(number)

    def on_end(self, out: Collector) -> None:
        for number in self.held.get():
            out.collect(number)
        self.held.clear()


class Tally(KeyedOperator):
    """(key, how many there were), when its data has ended."""

    count = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.count.update(self.count.value() + 1)

    def on_end(self, out: Collector) -> None:
        for key in self.keys():
            out.collect((key, self.count.value()))


def _key(number: int, keys: int) -> int:
    """One of this number of keys: the first ones are of all key groups."""
    place = number % keys
    return _KEYS[place] if place < len(_KEYS) else 1_000 + place


def _everywhere(env: StreamEnvironment, workload: Workload) -> Any:
    """The numbers, from as many subtasks as the job has: the first one ends long before the others."""
    numbers = Ragged(workload.records, workload.records_per_second)
    return env.from_source(numbers, name="numbers", parallelism=workload.parallelism)


def _ordered(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    numbers = env.from_collection(
        range(workload.records), records_per_second=workload.records_per_second, name="numbers", parallelism=1
    )
    numbers.key_by(lambda number: _key(number, keys)).process(Follows, name="follows").collect(name=OUTPUT)
    return env


def _held(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    held = _everywhere(env, workload).process(Hold, name="hold")
    held.key_by(lambda number: _key(number, keys)).process(Counter, name="count").collect(name=OUTPUT)
    return env


def _tallied(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    tallies = _everywhere(env, workload).key_by(lambda number: _key(number, keys)).process(Tally, name="tally")
    tallies.key_by(lambda tally: tally[0]).process(Same, name="same").collect(name=OUTPUT)
    return env


def _splits(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    numbers = env.from_source(
        Splits(workload.records, workload.records_per_second), name="numbers", parallelism=workload.parallelism
    )
    plain = numbers.map(lambda row: row["number"], name="plain")
    plain.key_by(lambda number: _key(number, keys)).process(Counter, name="count").collect(name=OUTPUT)
    return env


def _followed(workload: Workload) -> list[tuple[int, ...]]:
    """Of each number, it and those before it that have its key."""
    step = workload.keys
    return [
        (
            _key(number, step),
            *(each for each in range(number - (_REMEMBERED - 1) * step, number + 1, step) if each >= 0),
        )
        for number in range(workload.records)
    ]


def _tallies(workload: Workload) -> list[tuple[int, int]]:
    keys = range(min(workload.keys, workload.records))
    return [(_key(key, workload.keys), len(range(key, workload.records, workload.keys))) for key in keys]


def _counts(workload: Workload) -> list[tuple[int, int]]:
    return [(_key(key, workload.keys), seen) for key, seen in counted(range(workload.records), workload.keys)]


DEMANDING = by_name(
    Topology("ordered", _ordered, _followed, counts_up=True),
    Topology("held", _held, _counts),
    Topology("splits", _splits, _counts),
    Topology("tallied", _tallied, _tallies, tells_at_the_end=True),
)
