"""SparkStreamSource on a spool that lies there: the kit's contract, and what it refuses. No Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from understudy import SparkQueryFailed, SpoolMismatch
from understudy.actors.operators.source import END, Source
from understudy.runtime.connectors.errors import UnreadableFile
from understudy.runtime.connectors.spark.spool import Spool
from understudy.runtime.connectors.spark.stream_source import SparkStreamSource, SpooledBatches
from understudy.testing import OperatorHarness, SourceContract

SCHEMA = pa.schema([("id", pa.int64())])
A_FILE = 3


def fill(spool: Spool, batches: Iterable[int]) -> None:
    """Two files a batch, and none in each third."""
    spool.make()
    spool.claim("query-1")
    for batch in batches:
        write(spool, batch, [] if batch % 3 == 2 else [ids(batch, 0), ids(batch, 1)])


def write(spool: Spool, batch: int, files: list[list[int]]) -> bool:
    folder = Path(spool.new_folder(batch))
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    for number, each in enumerate(files):
        parquet.write_table(pa.table({"id": each}, SCHEMA), folder / f"part-{number}.parquet")
    return spool.add(batch, str(folder))


def ids(batch: int, file: int) -> list[int]:
    first = (batch * 2 + file) * A_FILE
    return list(range(first, first + A_FILE))


def all_ids(batches: Iterable[int]) -> list[int]:
    return [each for batch in batches if batch % 3 != 2 for file in (0, 1) for each in ids(batch, file)]


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(str(tmp_path / "spool"))


def reading(spool: Spool, **options: Any) -> OperatorHarness:
    return OperatorHarness(SparkStreamSource(SCHEMA, spool.path, **options))


def read(harness: OperatorHarness) -> list[int]:
    read_all(harness)
    return [row.id for row in harness.take_output()]


def read_all(harness: OperatorHarness) -> None:
    while (polled := harness.poll()) is not None and polled is not END:
        pass


class TestSparkStreamSource(SourceContract):
    outside = ("understudy.runtime.connectors.spark.spool",)
    most_points = 40
    folder: ClassVar[Path]
    spool: ClassVar[Spool]

    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        type(self).folder = tmp_path

    def clear(self) -> None:
        type(self).spool = Spool(str(self.folder / f"spool-{len(list(self.folder.iterdir()))}"))
        fill(self.spool, range(5))
        self.spool.end(None)

    def make_source(self) -> Source:
        return SparkStreamSource(SCHEMA, self.spool.path, bounded=True, batch_rows=2)

    def wanted(self) -> list[int]:
        return all_ids(range(5))

    def compared(self, record: Any) -> Any:
        return record.id


def test_batches_come_in_order_as_they_are_written(spool: Spool) -> None:
    fill(spool, range(2))
    with reading(spool) as source:
        assert read(source) == all_ids(range(2))
        fill(spool, range(2, 5))
        source.advance(100)
        assert read(source) == all_ids(range(2, 5))


def test_a_batch_stays_until_a_checkpoint_is_behind_all_of_it(spool: Spool) -> None:
    fill(spool, range(2))
    with reading(spool, batch_rows=2) as source:
        source.poll()
        first = [row.id for row in source.take_output()]
        snapshot = source.snapshot()
        operator: Any = source.operator
        operator._forget_before(snapshot.checkpoint_id)
        assert spool.batches() == [0, 1]
        source.crash()
        with source.restored(snapshot) as after:
            assert first + read(after) == all_ids(range(2))


class EndsWhileItIsLookedAt(Spool):
    """Its query adds the last batch, and ends, when the source has just seen that there is no more yet."""

    looks = 0

    def batches(self) -> list[int]:
        found = super().batches()
        self.looks += 1
        if self.looks == 2:
            write(self, len(found), [[99]])
            self.end(None)
        return found


class LookingSource(SparkStreamSource):
    def versions(self) -> SpooledBatches:
        return SpooledBatches(EndsWhileItIsLookedAt(self.spool), self.spool)


def test_the_last_batch_is_read_though_the_query_ends_while_the_source_looks(spool: Spool) -> None:
    fill(spool, range(1))
    with OperatorHarness(LookingSource(SCHEMA, spool.path)) as source:
        assert read(source) == all_ids(range(1))
        source.advance(100)
        assert read(source) == [99]
        source.advance(100)
        assert source.poll() is END


def test_of_two_that_write_a_batch_the_first_wins(spool: Spool) -> None:
    fill(spool, range(1))
    assert not write(spool, 0, [[77]])
    with reading(spool) as source:
        assert read(source) == all_ids(range(1))


def test_what_is_removed_is_known_as_a_batch_that_was_whole(spool: Spool) -> None:
    fill(spool, range(4))
    spool.remove_before(3)
    assert spool.batches() == [3]
    assert [spool.has(batch) for batch in (0, 2, 3, 4)] == [True, True, True, False]
    assert {path.name.partition("-")[0] for path in (Path(spool.path) / "data").iterdir()} == {"3"}


def test_a_failed_query_is_said_behind_what_came_before(spool: Spool) -> None:
    fill(spool, range(2))
    spool.end("SparkException: no such luck")
    with reading(spool) as source, pytest.raises(Exception, match="raised") as failed:
        read(source)
    assert isinstance(failed.value.__cause__, SparkQueryFailed)
    assert "no such luck" in str(failed.value.__cause__)
    assert [row.id for row in source.output()] == all_ids(range(2))


def test_a_new_job_in_a_used_spool_is_refused(spool: Spool) -> None:
    fill(spool, range(4))
    spool.remove_before(2)
    said(reading(spool), "a new job needs batch 0, and a later checkpoint has let those before 2 be removed")


def test_a_spool_of_another_query_is_refused(spool: Spool, tmp_path: Path) -> None:
    fill(spool, range(2))
    with reading(spool) as source:
        read(source)
        snapshot = source.snapshot()
    with pytest.raises(SpoolMismatch, match="its batches are of query query-1"):
        spool.claim("query-2")
    (Path(spool.path) / "query.json").write_text('"query-2"')
    said(source.restored(snapshot), "has batches of query query-2, and the state is of query query-1")
    (Path(spool.path) / "query.json").unlink()
    said(source.restored(snapshot), "has no query, and the state is of query query-1")


def test_a_batch_that_is_missing_in_between_is_said(spool: Spool) -> None:
    fill(spool, [0, 1, 3])
    said(reading(spool), "batch 2 is to be read, and is gone")


def test_rows_of_a_query_that_was_changed_since_come_with_the_columns_of_now(
    spool: Spool, caplog: pytest.LogCaptureFixture
) -> None:
    fill(spool, range(2))
    now = pa.schema([("carrier", pa.string())])
    with OperatorHarness(SparkStreamSource(now, spool.path)) as source:
        read_all(source)
        assert [row.asdict() for row in source.output()] == [{"carrier": None}] * len(all_ids(range(2)))
    assert [each.message.partition(" was ")[2] for each in caplog.records] == [
        "written by the query before it had carrier: null there, as in all such rows"
    ]


def test_a_new_column_that_may_not_be_null_is_refused_with_what_to_do(spool: Spool) -> None:
    fill(spool, range(2))
    now = pa.schema([*SCHEMA, pa.field("carrier", pa.string(), nullable=False)])
    with (
        OperatorHarness(SparkStreamSource(now, spool.path)) as source,
        pytest.raises(Exception, match="raised") as failed,
    ):
        read_all(source)
    assert isinstance(failed.value.__cause__, UnreadableFile)
    assert "missing carrier" in str(failed.value.__cause__)
    assert "let new ones be nullable" in str(failed.value.__cause__)


def said(source: OperatorHarness, words: str) -> None:
    with source, pytest.raises(Exception, match="raised") as failed:
        read(source)
    assert isinstance(failed.value.__cause__, SpoolMismatch)
    assert words in str(failed.value.__cause__)
