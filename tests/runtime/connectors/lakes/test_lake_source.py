"""LakeSource over versions of ours: when it looks for the next one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from understudy.runtime.connectors.lakes.lake_source import LakeSource

from ..harness import ManualClock, make_context

SCHEMA = pa.schema([("version", pa.int64())])


class Numbered:
    """Each version adds a file with one row: its number."""

    def __init__(self) -> None:
        self.newest = 0

    def files(self, version: int) -> Sequence[int]:
        return range(1, version + 1)

    def added(self, version: int) -> Sequence[int]:
        return [version]

    def after(self, version: int) -> Sequence[int]:
        return range(version + 1, self.newest + 1)

    def batches(self, file: int, schema: pa.Schema, skipped: int) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([{"version": file}], schema).slice(skipped)


class Source(LakeSource):
    schema = SCHEMA

    def __init__(self, table: Numbered) -> None:
        super().__init__(0, False, 100, None, None)
        self.table = table

    def versions(self) -> Numbered:
        return self.table


def test_it_looks_again_at_once_after_a_version_and_after_a_while_when_there_was_none() -> None:
    table, clock = Numbered(), ManualClock()
    source = Source(table)
    source.context = make_context(clock=clock)
    source.open()

    def read() -> list[int]:
        batch = source.read(10)
        return [] if batch is None else batch.column(0).to_pylist()  # type: ignore[union-attr]

    table.newest = 1
    assert read() == [1]
    table.newest = 2
    assert read() == [2]
    assert read() == []
    table.newest = 3
    clock.ms = 99
    assert read() == []
    clock.ms = 100
    assert read() == [3]
