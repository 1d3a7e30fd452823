"""After a change of parallelism a subtask reads what others left, run by run, and none of it is late by another run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import monotonous
from understudy.actors.flow.elements import TimedBatch, Watermark
from understudy.actors.operators.assign_timestamps import AssignTimestamps
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.source import END
from understudy.actors.operators.source_reader import SourceReader
from understudy.runtime.connectors import CollectionSource, GeneratorSource
from understudy.runtime.connectors.files.file_readers import FileSplit
from understudy.runtime.connectors.files.split_source import SplitSource
from understudy.runtime.connectors.paced_source import PacedSource
from understudy.runtime.connectors.table_source import TableSource

from ...examples import examples
from .harness import Running, Snapshot, make_context

RECORDS = 400
SCHEMA = pa.schema([("time", pa.int64())])


class Splits(SplitSource):
    """Of ten rows each, the last of five."""

    def __init__(self) -> None:
        super().__init__(7, None)
        sizes = [10] * (RECORDS // 10 - 1) + [5, 5]
        self.settle("here", [FileSplit("file", place, size) for place, size in enumerate(sizes)], SCHEMA)

    def open_split(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        begin = sum(each.size for each in self.splits[: split.row_group])
        yield columns(begin, split.size)


def columns(start: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"time": pa.array(range(start, start + rows), pa.int64())}, SCHEMA)


class Subtask:
    """A source whose records are their own event times, in order, and what assigns these."""

    def __init__(self, source: PacedSource, where: tuple[int, int], state: Snapshot | None = None) -> None:
        subtask, parallelism = where
        self.source = source
        source.context = make_context(subtask, parallelism)
        source.open()
        self.running = Running(
            AssignTimestamps(_time_of, monotonous()), state, subtask=subtask, parallelism=parallelism
        )
        self.reader = SourceReader(source, [self.running.operator])
        self.late: list[int] = []
        self.read: list[int] = []
        self.watermark_ms = self.running.operator.emitted_ms

    def poll(self) -> bool:
        """Whether there was anything more."""
        polled = self.reader.poll()
        if polled is None or polled is END:
            return False
        out = Collector()
        self.running.operator.process_batch(polled, out)
        for element in out.taken():
            if isinstance(element, Watermark):
                assert element.timestamp_ms > self.watermark_ms
                self.watermark_ms = element.timestamp_ms
            elif isinstance(element, TimedBatch):
                times = element.times.tolist()
                self.read += times
                marks = element.watermarks if element.watermarks is not None else [self.watermark_ms] * len(element)
                self.late += [time for time, mark in zip(times, marks, strict=True) if time <= mark]
        return True


def _time_of(record: Any) -> int:
    return record if isinstance(record, int) else int(record.time)


def rescaled(subtasks: list[Subtask], parallelism: int, made: Any) -> list[Subtask]:
    offsets = [each.source.offset() for each in subtasks]
    state = tuple(handle for each in subtasks for handle in each.running.checkpoint(1))
    fresh = [Subtask(made(), (subtask, parallelism), state) for subtask in range(parallelism)]
    for each in fresh:
        if parallelism == len(subtasks):
            each.source.seek(offsets[each.source.context.subtask_index])
        else:
            each.source.rescale(offsets)
        each.reader.settle()
    return fresh


@pytest.mark.parametrize(
    "made",
    [
        lambda: CollectionSource(range(RECORDS), batch_rows=7),
        lambda: GeneratorSource(int, RECORDS, batch_rows=7),
        lambda: GeneratorSource(columns, RECORDS, batch_rows=7),
        lambda: TableSource(pa.Table.from_batches([columns(0, RECORDS)]), batch_rows=7),
        Splits,
    ],
    ids=["collection", "generator", "columns", "table", "splits"],
)
@examples(60)
@given(
    stages=st.lists(
        st.tuples(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), max_size=4)),
        min_size=2,
        max_size=4,
    )
)
def test_no_record_is_late_by_a_change_of_parallelism(made: Any, stages: Any) -> None:
    """`stages`: parallelisms, and how many batches which subtask reads."""
    subtasks: list[Subtask] = []
    read: list[int] = []
    for parallelism, polls in stages:
        before = subtasks
        subtasks = (
            rescaled(before, parallelism, made)
            if before
            else [Subtask(made(), (subtask, parallelism)) for subtask in range(parallelism)]
        )
        for subtask, times in polls:
            for _ in range(times):
                subtasks[subtask % parallelism].poll()
        read += [number for each in subtasks for number in each.read]
    for each in subtasks:
        del each.read[:]
        while each.poll():
            pass
        read += each.read
        assert not each.late
    assert sorted(read) == list(range(RECORDS))
