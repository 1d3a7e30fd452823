"""LakeSinkContract: what a sink into any lake's table does, on real tables. Writer and committer run in one chain here;
that many writers and one committer meet in a job is seen in clusters/test_lakes.py.
"""

from __future__ import annotations

import datetime
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import ColumnConflict, LostDataFile, MarkerMismatch, RecordMismatch, StreamEnvironment
from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness

from .lake import SCHEMA, Lake, rows


def running(sink: Any, **options: Any) -> OperatorHarness:
    return OperatorHarness([sink.writer(), sink.committer()], **options)


def committer(harness: OperatorHarness) -> Any:
    return harness.operators[-1]


class LakeSinkContract:
    @abstractmethod
    def make_lake(self, folder: Path) -> Lake: ...

    @pytest.fixture
    def lake(self, tmp_path: Path) -> Lake:
        return self.make_lake(tmp_path)

    # -- what comes of a job

    def test_each_checkpoint_is_one_commit_of_all_its_rows(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink(file_bytes=100)) as sink:
            for first in (0, 30, 60):
                for start in range(first, first + 30, 10):
                    sink.process(rows(range(start, start + 10)))
                written = sink.snapshot()
                assert lake.keys() == list(range(first)), "nothing is seen before the checkpoint is complete"
                sink.complete(written)
        assert lake.keys() == lake.duckdb() == list(range(90))
        assert lake.commits() == 3
        assert len(lake.data_files()) == 9

    def test_the_table_is_made_if_there_is_none(self, lake: Lake) -> None:
        with running(lake.sink(schema=SCHEMA, partition_by="text")) as sink:
            sink.process(rows([1]))
            sink.complete(sink.snapshot())
        assert lake.read().to_pylist() == rows([1])

    def test_a_checkpoint_without_rows_is_no_commit(self, lake: Lake) -> None:
        lake.make()
        before = lake.version()
        with running(lake.sink()) as sink:
            sink.complete(sink.snapshot())
        assert lake.version() == before

    def test_what_is_not_sent_when_an_attempt_ends_is_removed(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink(file_bytes=1)) as sink:
            sink.process(rows([1]))
            assert lake.data_files()
        assert not lake.data_files()

    def test_values_of_all_kinds_come_back(self, lake: Lake) -> None:
        noon = datetime.datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)
        kinds = {
            "day": (pa.date32(), datetime.date(2026, 1, 1)),
            "at": (pa.timestamp("us", "UTC"), noon),
            "share": (pa.float64(), float("nan")),
            "yes": (pa.bool_(), True),
            "many": (pa.list_(pa.int64()), [1, 2]),
            "raw": (pa.binary(), b"\x00\xff"),
        }
        schema = pa.schema([("key", pa.int64()), *((name, kind) for name, (kind, _) in kinds.items())])
        lake.make(schema)
        full = {"key": 1} | {name: value for name, (_, value) in kinds.items()}
        empty = {"key": 2} | dict.fromkeys(kinds)
        with running(lake.sink()) as sink:
            sink.process([full, empty])
            sink.complete(sink.snapshot())
        found = lake.read().sort_by("key").cast(schema)
        assert repr(found.to_pylist()) == repr(pa.Table.from_pylist([full, empty], schema).to_pylist())

    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            (pa.string(), ["a b/c=ü", "%2F", None, "plain"]),
            (pa.int64(), [1, -1, None]),
            (pa.bool_(), [True, False, None]),
            (pa.date32(), [datetime.date(2026, 1, 1), None]),
            (pa.timestamp("us", "UTC"), [datetime.datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=datetime.UTC), None]),
        ],
        ids=str,
    )
    def test_rows_of_a_partition_come_back_with_its_value(
        self, lake: Lake, kind: pa.DataType, values: list[Any]
    ) -> None:
        lake.make(pa.schema([("key", pa.int64()), ("part", kind)]), ["part"])
        written = [{"key": key, "part": values[key % len(values)]} for key in range(20)]
        with running(lake.sink()) as sink:
            sink.process(written)
            sink.complete(sink.snapshot())
        assert sorted(lake.read().to_pylist(), key=lambda row: row["key"]) == written
        assert len(lake.data_files()) == len(values)
        source = OperatorHarness(lake.source())
        source.drain()
        assert sorted((row.asdict() for row in source.output()), key=lambda row: row["key"]) == written

    # -- columns

    def test_rows_that_do_not_fit_are_refused_with_the_column(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as sink, refused(RecordMismatch, "extra more"):
            sink.process(rows([1], more=1))

    def test_a_stream_that_cannot_fit_is_refused_when_it_is_built(self, lake: Lake) -> None:
        lake.make()
        stream = StreamEnvironment().from_arrow(pa.table({"key": [1], "other": ["x"]}))
        with pytest.raises(Exception, match="missing text; extra other"):
            stream.sink_to(lake.sink())

    def test_new_columns_are_added_and_missing_ones_are_null(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink(evolve=True)) as sink:
            sink.process(rows([1]))
            sink.process(rows([2], new=2.5, unknown=None))
            sink.process([{"key": 3}])
            sink.complete(sink.snapshot())
            sink.process(pa.RecordBatch.from_pydict({"key": [4], "day": [datetime.date(2026, 1, 1)]}))
            sink.complete(sink.snapshot())
        found = sorted(lake.read().to_pylist(), key=lambda row: row["key"])
        nothing = {"text": None, "new": None, "day": None}
        assert found == [
            nothing | rows([1])[0],
            nothing | rows([2])[0] | {"new": 2.5},
            nothing | {"key": 3},
            nothing | {"key": 4, "day": datetime.date(2026, 1, 1)},
        ]

    def test_a_new_column_that_is_there_by_now_with_another_type_is_an_error(self, lake: Lake) -> None:
        lake.make()
        one, other = running(lake.sink(evolve=True)), running(lake.sink(evolve=True), job_id="other")
        one.process(rows([1], new=1))
        other.process(rows([2], new="text"))
        one.complete(one.snapshot())
        with refused(ColumnConflict, "'new' is .*, found"):
            other.complete(other.snapshot())
        one.close()
        other.crash()
        assert lake.keys() == [1]

    # -- exactly once

    def test_what_was_not_committed_is_when_the_checkpoint_is_restored(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as sink:
            sink.process(rows([1]))
            sink.complete(sink.snapshot())
            sink.process(rows([2]))
            staged = sink.snapshot()
            sink.crash()
            with sink.restored(staged) as again:
                assert lake.keys() == [1, 2]
                again.process(rows([3]))
                again.complete(again.snapshot())
        assert lake.keys() == [1, 2, 3]

    def test_a_commit_whose_answer_is_lost_is_not_done_twice(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as sink:
            after(committer(sink), "_commit_now", lost_answer)
            sink.process(rows([1]))
            sink.complete(sink.snapshot())
            sink.advance(1000)
            sink.process(rows([2]))
            sink.complete(sink.snapshot())
        assert lake.keys() == [1, 2]

    def test_a_crash_behind_the_commit_does_not_double_it(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as sink:
            sink.process(rows([1]))
            sink.complete(sink.snapshot())
            sink.process(rows([2]))
            staged = sink.snapshot()
            sink.complete(staged)
            sink.crash()
            with sink.restored(staged) as again:
                again.process(rows([3]))
                again.complete(again.snapshot())
        assert lake.keys() == [1, 2, 3]

    def test_a_zombie_that_wakes_behind_its_successor_commits_nothing(self, lake: Lake) -> None:
        lake.make()
        zombie = running(lake.sink())
        zombie.process(rows([1]))
        staged = zombie.snapshot()
        with zombie.restored(staged) as successor:
            assert lake.keys() == [1]
            successor.process(rows([2]))
            successor.complete(successor.snapshot())
            with refused(MarkerMismatch, "another attempt goes on"):
                zombie.complete(staged)
        zombie.crash()
        assert lake.keys() == [1, 2]

    def test_a_zombie_in_the_middle_of_its_commit_is_refused(self, lake: Lake) -> None:
        """It has read the marker, and its successor commits before it does."""
        lake.make()
        zombie = running(lake.sink())
        zombie.process(rows([1]))
        staged = zombie.snapshot()
        successors = []
        before(committer(zombie), "_commit_now", lambda: successors.append(zombie.restored(staged)))
        zombie.complete(staged)
        assert lake.keys() == [1]
        assert lake.commits() == 1
        zombie.crash()
        successors[0].close()

    def test_two_jobs_write_to_one_table(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as one, running(lake.sink(), job_id="other") as other:
            for number in range(0, 10, 2):
                one.process(rows([number]))
                other.process(rows([number + 1]))
                mine = one.snapshot()
                before(committer(one), "_commit_now", lambda: other.complete(other.snapshot()))
                one.complete(mine)
        assert lake.keys() == list(range(10))
        assert lake.commits() == 10

    def test_jobs_in_threads_write_to_one_table(self, lake: Lake) -> None:
        lake.make()

        def write(job: int) -> None:
            with running(lake.sink(), job_id=f"job-{job}") as sink:
                for number in range(8):
                    sink.process(rows([job * 100 + number]))
                    sink.complete(sink.snapshot())
                    while not committer(sink)._has_applied_all:
                        sink.advance(1000)

        threads = [threading.Thread(target=write, args=(job,)) for job in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert lake.keys() == [job * 100 + number for job in range(3) for number in range(8)]

    def test_a_restored_older_checkpoint_repeats_its_rows_and_loses_none(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as sink:
            sink.process(rows([1]))
            older = sink.snapshot()
            sink.complete(older)
            sink.process(rows([2]))
            sink.complete(sink.snapshot())
            sink.crash()
            with sink.restored(older) as again:
                again.process(rows([2]))
                again.process(rows([3]))
                again.complete(again.snapshot())
        assert lake.keys() == [1, 2, 2, 3], "2 is in the table twice: it was processed twice, and nothing is dropped"

    def test_a_job_that_starts_from_a_savepoint_twice_commits_what_was_staged_once(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as sink:
            sink.process(rows([1]))
            savepoint = sink.snapshot()
            sink.crash()
        for job in ("one", "two"):
            with running(lake.sink(), job_id=job, restore_from=savepoint) as restored:
                restored.process(rows([2]))
                restored.complete(restored.snapshot())
        assert lake.keys() == [1, 2, 2]

    def test_a_file_that_was_removed_before_its_commit_is_an_error(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as sink:
            sink.process(rows([1]))
            staged = sink.snapshot()
            sink.crash()
            for path in lake.data_files():
                path.unlink()
            with refused(LostDataFile, "was written for a checkpoint that is complete, and is gone"):
                sink.restored(staged)

    def test_a_table_that_has_lost_commits_is_noticed(self, lake: Lake, tmp_path: Path) -> None:
        lake.make()
        with running(lake.sink()) as sink:
            sink.process(rows([1]))
            sink.complete(sink.snapshot())
            sink.process(rows([2]))
            staged = sink.snapshot()
            sink.crash()
            self.empty(lake)
            with refused(MarkerMismatch, "has lost what was written"):
                sink.restored(staged)

    def test_the_marker_outlives_the_history_of_the_table(self, lake: Lake) -> None:
        lake.make()
        with running(lake.sink()) as sink:
            sink.process(rows([1]))
            staged = sink.snapshot()
            sink.complete(staged)
            sink.crash()
            self.forget_history(lake)
            with sink.restored(staged):
                assert lake.keys() == [1]

    @abstractmethod
    def empty(self, lake: Lake) -> None:
        """Put an older backup in the table's place, of when it was made. Files of rows stay."""

    @abstractmethod
    def forget_history(self, lake: Lake) -> None:
        """All versions but the newest, as maintenance does."""


@contextmanager
def refused(kind: type[Exception], words: str) -> Iterator[None]:
    """The operator raises this."""
    with pytest.raises(UserCodeError) as failed:
        yield
    assert isinstance(failed.value.__cause__, kind), repr(failed.value.__cause__)
    assert re.search(words, str(failed.value.__cause__))


def lost_answer() -> None:
    raise OSError("the answer was lost")


def after(operator: Any, method: str, do: Callable[[], Any]) -> None:
    """Once, when the method has done its work."""
    own = getattr(operator, method)

    def changed(*arguments: Any) -> Any:
        setattr(operator, method, own)
        own(*arguments)
        do()

    setattr(operator, method, changed)


def before(operator: Any, method: str, do: Callable[[], Any]) -> None:
    """Once, right before it begins."""
    own = getattr(operator, method)

    def changed(*arguments: Any) -> Any:
        setattr(operator, method, own)
        do()
        own(*arguments)

    setattr(operator, method, changed)
