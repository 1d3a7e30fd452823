"""LakeSourceContract: what a source of any lake's table does beyond what every source does, on real tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import END, ColumnConflict, NoTable, RowsChanged, VersionGone
from understudy.messages import pack_plain, unpack_plain
from understudy.testing import OperatorHarness

from ....contracts.source import RECORDS
from .lake import SCHEMA, Lake, rows
from .sink_contract import refused


def filled(lake: Lake) -> Lake:
    """RECORDS rows in files of different sizes, of several versions, in partitions."""
    lake.make(partition_by=["text"])
    for start, stop in ((0, 1), (1, 30), (30, RECORDS)):
        lake.append([{"key": number, "text": f"part {number % 2}"} for number in range(start, stop)])
    return lake


class LakeSourceContract:
    @abstractmethod
    def make_lake(self, folder: Path) -> Lake: ...

    @pytest.fixture
    def lake(self, tmp_path: Path) -> Lake:
        lake = self.make_lake(tmp_path)
        lake.make()
        return lake

    def test_one_version_is_read_to_its_end(self, lake: Lake) -> None:
        lake.append(rows([1, 2]))
        source = lake.source()
        lake.append(rows([3]))
        with OperatorHarness(source) as reading:
            assert read_all(reading)
            assert keys(reading) == [1, 2]

    def test_an_older_version_can_be_read(self, lake: Lake) -> None:
        lake.append(rows([1]))
        older = lake.version()
        lake.append(rows([2]))
        with OperatorHarness(lake.source(version=older)) as reading:
            assert read_all(reading)
            assert keys(reading) == [1]

    def test_an_empty_table_has_an_end(self, lake: Lake) -> None:
        with OperatorHarness(lake.source()) as reading:
            assert reading.poll() is END

    def test_new_versions_follow(self, lake: Lake) -> None:
        lake.append(rows([1]))
        with OperatorHarness(lake.source(watch_ms=50)) as reading:
            assert not read_all(reading)
            assert keys(reading) == [1]
            for number in (2, 3):
                lake.append(rows([number]))
            reading.advance(50)
            read_all(reading)
            assert keys(reading) == [1, 2, 3]
            reading.advance(50)
            assert reading.poll() is None
            assert reading.operator.poll_delay_ms() == 50

    def test_only_what_is_new_may_be_wanted(self, lake: Lake) -> None:
        lake.append(rows([1]))
        with OperatorHarness(lake.source(watch_ms=50, only_new=True)) as reading:
            read_all(reading)
            lake.append(rows([2]))
            reading.advance(50)
            read_all(reading)
            assert keys(reading) == [2]

    def test_an_empty_table_is_followed(self, lake: Lake) -> None:
        with OperatorHarness(lake.source(watch_ms=50)) as reading:
            read_all(reading)
            lake.append(rows([1]))
            reading.advance(50)
            read_all(reading)
            assert keys(reading) == [1]

    def test_an_offset_leads_to_what_is_left(self, lake: Lake) -> None:
        """After each batch of one row, of the first version and of those that follow."""
        for number in range(3):
            lake.append(rows([number, number + 10]))
        source = lake.source(watch_ms=50, batch_rows=1)
        lake.append(rows([3, 13]))
        offsets, seen = [], []
        with OperatorHarness(source) as reading:
            offsets.append(reading.offset())
            while len(seen) < 8:
                if reading.poll() is None:
                    reading.advance(50)
                seen = in_order(reading)
                offsets += [reading.offset()] if len(seen) == len(offsets) else []
        assert sorted(seen) == [0, 1, 2, 3, 10, 11, 12, 13]
        for taken, offset in enumerate(offsets):
            with OperatorHarness(lake.source(watch_ms=50, batch_rows=1)) as again:
                again.operator.seek(unpack_plain(pack_plain(offset)))
                read_all(again)
                assert in_order(again) == seen[taken:]

    @pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5), (4, 2)])
    def test_a_change_of_parallelism_loses_and_repeats_nothing(self, lake: Lake, before: int, after: int) -> None:
        """Each subtask has come as far as it likes, also through versions that others have not looked for."""
        for number in range(5):
            lake.append(rows([number, number + 100]))
        source = lake.source(watch_ms=50, batch_rows=1)
        old = [OperatorHarness(source, subtask_index=subtask, parallelism=before) for subtask in range(before)]
        for number in range(5, 10):
            lake.append(rows([number, number + 100]))
            for subtask, reading in enumerate(old):
                if subtask % 2 == number % 2:
                    reading.advance(50)
                    for _ in range(subtask + 2):
                        reading.poll()
        seen = [key for reading in old for key in keys(reading)]
        snapshots = [reading.snapshot() for reading in old]
        for subtask in range(after):
            with old[0].restored(snapshots, parallelism=after, subtask_index=subtask) as new:
                read_all(new)
                new.advance(50)
                read_all(new)
                seen += keys(new)
        assert sorted(seen) == [*range(10), *range(100, 110)]
        for reading in old:
            reading.crash()

    def test_columns_are_chosen_and_ordered(self, lake: Lake) -> None:
        lake.append(rows([1]))
        source = lake.source(columns=["text"])
        assert source.source_schema() == pa.schema([SCHEMA.field("text")])
        with OperatorHarness(source) as reading:
            read_all(reading)
            assert [row.asdict() for row in reading.output()] == [{"text": "row 1"}]
        with pytest.raises(ColumnConflict, match="has no column 'other'; it has key, text"):
            lake.source(columns=["other"])

    def test_columns_that_come_later_are_left_out_until_the_job_starts_again(self, lake: Lake) -> None:
        lake.append(rows([1]))
        with OperatorHarness(lake.source(watch_ms=50)) as reading:
            read_all(reading)
            self.add_column(lake, "new")
            lake.append(rows([2], new=5))
            reading.advance(50)
            read_all(reading)
            assert [row.asdict() for row in reading.output()] == rows([1, 2])
        with OperatorHarness(lake.source()) as again:
            read_all(again)
            assert sorted((row.key, row.new) for row in again.output()) == [(1, None), (2, 5)]

    @abstractmethod
    def add_column(self, lake: Lake, name: str) -> None:
        """Of int64."""

    def test_a_version_that_removed_rows_is_an_error(self, lake: Lake) -> None:
        lake.append(rows([1, 2]))
        with OperatorHarness(lake.source(watch_ms=50)) as reading:
            read_all(reading)
            lake.delete(1)
            reading.advance(50)
            with refused(RowsChanged, "removed or rewrote rows .*changes='skip'"):
                read_all(reading)
            reading.crash()

    def test_or_it_is_passed_over(self, lake: Lake) -> None:
        lake.append(rows([1, 2]))
        with OperatorHarness(lake.source(watch_ms=50, changes="skip")) as reading:
            read_all(reading)
            lake.delete(1)
            lake.append(rows([3]))
            reading.advance(50)
            read_all(reading)
            assert keys(reading) == [1, 2, 3]

    def test_deleted_rows_are_not_read(self, lake: Lake) -> None:
        lake.append(rows([1, 2, 3]))
        lake.delete(2)
        with OperatorHarness(lake.source()) as reading:
            read_all(reading)
            assert keys(reading) == [1, 3]

    def test_a_version_that_is_gone_is_an_error(self, lake: Lake) -> None:
        lake.append(rows([1]))
        older = lake.version()
        with OperatorHarness(lake.source(watch_ms=50)) as reading:
            read_all(reading)
            offset = reading.offset()
            for number in (2, 3):
                lake.append(rows([number]))
            self.forget_history(lake)
        with OperatorHarness(lake.source(watch_ms=50)) as behind:
            behind.operator.seek(offset)
            with refused(VersionGone, "is gone|are gone"):
                read_all(behind)
            behind.crash()
        with pytest.raises(VersionGone, match=f"version {older} "):
            lake.source(version=older)

    @abstractmethod
    def forget_history(self, lake: Lake) -> None:
        """All versions but the newest, as maintenance does."""

    def test_a_file_that_is_gone_is_an_error(self, lake: Lake) -> None:
        lake.append(rows([1]))
        with OperatorHarness(lake.source()) as reading:
            for path in lake.data_files():
                path.unlink()
            with refused(VersionGone, "a file of the version that is read is gone"):
                read_all(reading)
            reading.crash()

    def test_without_a_table_there_is_nothing_to_read(self, tmp_path: Path) -> None:
        with pytest.raises(NoTable, match=r"there is no .* table"):
            self.make_lake(tmp_path / "nowhere").source()

    @pytest.mark.parametrize("options", [{"watch_ms": 0}, {"changes": "ignore"}, {"only_new": True}])
    def test_settings_that_make_no_sense_are_refused(self, lake: Lake, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=r"watch_ms|changes"):
            lake.source(**options)


def read_all(reading: OperatorHarness) -> bool:
    """All that there is now; whether that is the end."""
    while (polled := reading.poll()) is not None and polled is not END:
        pass
    return polled is END


def in_order(reading: OperatorHarness) -> list[int]:
    return [row.key for row in reading.output()]


def keys(reading: OperatorHarness) -> Sequence[int]:
    return sorted(in_order(reading))
