"""The sources pass the contract, and what is each one's own."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from understudy import StreamEnvironment
from understudy.actors.errors import CannotRescale
from understudy.actors.operators.source import END, RecordedOffset, Source, continue_source
from understudy.messages import DictRow
from understudy.runtime.connectors import (
    CollectionSource,
    FileSource,
    GeneratorSource,
    InputChanged,
    NoInput,
    OffsetMismatch,
    PartitionFeed,
    SparkSource,
    UnreadableFile,
    UnreadableInput,
)
from understudy.runtime.connectors.files.file_source import unreadable

from ...contracts.source import RECORDS, SourceContract
from .files.reading import TABLE, FileContract, all_rows, opened
from .harness import ManualClock, make_context


class TestCollectionSource(SourceContract):
    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        return CollectionSource(range(RECORDS), batch_rows=batch_rows, records_per_second=records_per_second)


class TestGeneratorSource(SourceContract):
    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        return GeneratorSource(lambda index: (index, str(index)), RECORDS, records_per_second, batch_rows=batch_rows)


def _columns(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())})


class TestColumnarGeneratorSource(SourceContract):
    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        return GeneratorSource(_columns, RECORDS, records_per_second, batch_rows=batch_rows)


class TestSparkSource(SourceContract):
    """A plain iterator stands in for Spark; every attempt gets a new process, so it skips and checks."""

    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        return SparkSource(TABLE.schema, records_per_second=records_per_second)

    def resources(self, subtask: int, parallelism: int, batch_rows: int) -> dict[str, Any]:
        share = TABLE.take(list(range(subtask, RECORDS, parallelism)))
        self.feed = PartitionFeed(iter(share.to_batches(batch_rows)), 1 << 20, "")
        return {"spark-partition": self.feed}

    def test_after_any_change_of_parallelism_every_record_has_come_once(self) -> None:  # type: ignore[override]
        """It cannot: Spark would partition the DataFrame otherwise, into other rows."""
        source = self.make_source(10, None)
        source.context = make_context(0, 2, resources=self.resources(0, 2, 10))
        source.open()
        recorded = [RecordedOffset(subtask, 3, source.offset()) for subtask in range(3)]
        with pytest.raises(CannotRescale, match=r"parallelism 3 and cannot continue with 2.*parallelism=3"):
            continue_source(source, recorded)

    def advance(self, source: Source, clock: ManualClock) -> None:
        if source.poll_delay_ms() is None:
            self.feed.pump_once()
        else:
            super().advance(source, clock)


class TestParquetSource(FileContract):
    format = "parquet"

    @classmethod
    def write(cls, rows: pa.Table, path: Path) -> None:
        pq.write_table(rows, path, row_group_size=11)


@pytest.mark.parametrize("polls", [(1, 1), (3, 0), (0, 0), (2, 5)], ids=repr)
def test_a_collection_that_two_subtasks_read_goes_on_in_one(polls: tuple[int, int]) -> None:
    records, seen, recorded = list(range(40)), [], []
    for subtask, count in enumerate(polls):
        source = CollectionSource(records, batch_rows=4)
        source.context = make_context(subtask, 2)
        source.open()
        for _ in range(count):
            seen += source.poll()
        recorded.append(RecordedOffset(subtask, 2, source.offset()))
    alone = opened(CollectionSource(records, batch_rows=4))
    continue_source(alone, recorded)
    while (batch := alone.poll()) is not END:
        seen += batch
    assert sorted(seen) == records


def test_a_collection_gives_its_dicts_as_rows_and_keeps_them_as_they_are() -> None:
    records: list[Any] = [{"delay": 1}, 2]
    source = opened(CollectionSource(records))
    batch: Any = source.poll()
    assert batch == records
    assert (type(batch[0]), batch[0].delay) == (DictRow, 1)
    assert type(records[0]) is dict


@pytest.mark.parametrize("source", [CollectionSource(range(9)), GeneratorSource(abs, 9), GeneratorSource(_columns, 9)])
def test_a_single_offset_of_another_parallelism_is_refused_rather_than_losing_records(source: Source) -> None:
    offset = opened(source, 2).offset()
    with pytest.raises(OffsetMismatch, match="parallelism 2"):
        opened(source, 3).seek(offset)


def test_a_generator_without_count_is_unbounded_and_paced_from_its_first_poll() -> None:
    clock = ManualClock()
    clock.ms = 5000
    source = opened(GeneratorSource(lambda index: index, None, 2), clock=clock)
    assert not source.bounded
    assert (source.poll(), source.poll(), source.poll_delay_ms()) == ([0], None, 500)
    clock.ms = 5500
    assert source.poll() == [1]


def test_a_stall_is_made_up_for_by_one_second_at_most() -> None:
    clock = ManualClock()
    source = opened(GeneratorSource(lambda index: index, None, 10), clock=clock)
    assert source.poll() == [0]
    clock.ms = 60_000
    batch = source.poll()
    assert isinstance(batch, list)
    assert len(batch) == 11


def test_a_columnar_generator_must_keep_to_the_count() -> None:
    source = opened(GeneratorSource(lambda start, count: _columns(start, count + 1), 10))
    with pytest.raises(TypeError, match="of 10 rows"):
        source.poll()
    with pytest.raises(TypeError, match=r"wanted a pa.RecordBatch of 1 rows, found \[0\]"):
        GeneratorSource(lambda start, count: list(range(start, start + count)), 10).source_schema()


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_that_makes_no_sense_is_refused_at_once(rate: float) -> None:
    with pytest.raises(ValueError, match="records_per_second"):
        CollectionSource([], records_per_second=rate)


# -- files


def test_what_is_not_there_is_told_when_the_source_is_made(tmp_path: Path) -> None:
    with pytest.raises(NoInput, match="no such file"):
        FileSource(str(tmp_path / "absent"))
    with pytest.raises(NoInput, match="no file matches"):
        FileSource(str(tmp_path / "*.parquet"))
    with pytest.raises(NoInput, match="found none"):
        FileSource(str(tmp_path))
    (tmp_path / "day=1").mkdir()
    with pytest.raises(NoInput, match=r"only folders such as .*day=1"):
        FileSource(str(tmp_path))


def test_mixed_schemas_are_told_with_both_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(UnreadableInput, match=r"1\.parquet and .*2\.parquet.*a int64.*a string"):
        FileSource(str(tmp_path))


def test_a_file_of_another_format_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("n\n1\n")
    with pytest.raises(UnreadableInput, match=r"a\.parquet cannot be read as parquet"):
        FileSource(str(tmp_path))


@pytest.mark.parametrize(
    ("format", "texts"), [("csv", ("n\n1\n", "n\nx\n")), ("jsonl", ('{"n": "1"}', '{"n": {"x": 1}}'))]
)
def test_types_that_do_not_fit_each_other_want_a_schema_and_are_read_with_one(
    format: str, texts: tuple[str, str], tmp_path: Path
) -> None:
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.{format}").write_text(text)
    with pytest.raises(UnreadableInput, match=r"columns of different types: .* Give a schema= that fits both"):
        FileSource(str(tmp_path), format)
    assert FileSource(str(tmp_path), format, schema=pa.schema([("n", pa.string())]))


def test_columns_are_chosen_and_ordered(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2], "c": [3]}), tmp_path / "1.parquet")
    assert all_rows(FileSource(str(tmp_path), columns=["c", "a"])) == [{"c": 3, "a": 1}]
    with pytest.raises(UnreadableInput, match=r"no column 'd'; it has a, b, c$"):
        FileSource(str(tmp_path), columns=["d"])


def test_a_column_that_is_misspelt_names_the_one_that_may_be_meant(tmp_path: Path) -> None:
    pq.write_table(pa.table({"miles": [1], "hour": [2]}), tmp_path / "1.parquet")
    with pytest.raises(UnreadableInput, match=r"no column 'mile'; it has miles, hour; did you mean 'miles'\?"):
        StreamEnvironment().from_parquet(str(tmp_path), columns=["hour", "mile"])


def test_an_offset_among_other_files_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    offset = opened(FileSource(str(tmp_path))).offset()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "0.parquet")
    with pytest.raises(OffsetMismatch, match="other files") as caught:
        opened(FileSource(str(tmp_path))).seek(offset)
    said = str(caught.value)
    assert f"it had 1 file, 1 row: {tmp_path}/1.parquet;" in said
    assert f"it has 2 files, 2 rows: {tmp_path}/0.parquet, {tmp_path}/1.parquet." in said


def test_an_offset_names_a_few_of_many_files(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number:02}.jsonl").write_text('{"n": 1}\n')
    source: Any = opened(FileSource(str(tmp_path), "jsonl"))
    offset = source.offset()
    source.splits = source.splits[:1]
    source.settle(source.place, source.splits, source.schema)
    with pytest.raises(OffsetMismatch) as caught:
        source.seek(offset)
    names = ", ".join(f"{tmp_path}/{number:02}.jsonl" for number in range(3))
    assert f"it had 12 files, 108 bytes: {names}, ... (9 more);" in str(caught.value)
    assert f"it has 1 file, 9 bytes: {tmp_path}/00.jsonl." in str(caught.value)


def test_an_offset_of_an_earlier_release_names_the_files_of_today(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    source = opened(FileSource(str(tmp_path), "jsonl"))
    offset = {**source.offset(), "inputs": 0}
    del offset["files"]
    with pytest.raises(OffsetMismatch, match="what it had is not recorded; it has 1 file, 9 bytes"):
        source.seek(offset)


def test_a_file_with_a_line_that_is_none_of_its_format_is_of_no_use_to_a_restart(tmp_path: Path) -> None:
    """One that cannot be reached now is: a disk or a network may come back."""
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n' * 200_000 + "{broken\n")
    source = FileSource(str(tmp_path), "jsonl")
    with pytest.raises(UnreadableInput) as caught:
        all_rows(source)
    assert type(caught.value) is UnreadableFile
    refused = unreadable("a", "jsonl", OSError("no answer"))
    assert type(refused) is UnreadableInput


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("is_begun", [False, True], ids=["before it is read", "while it is read"])
def test_a_file_of_the_same_size_with_other_rows_is_never_mixed_in(format: str, is_begun: bool, tmp_path: Path) -> None:
    path = tmp_path / f"1.{format}"

    def write(number: int) -> None:
        rows = pa.table({"n": [number] * 9_000})
        if format == "jsonl":
            path.write_text("".join(f'{{"n": {number}}}\n' for _ in range(9_000)))
        elif format == "csv":
            pa.csv.write_csv(rows, path)
        else:
            pq.write_table(rows, path)

    def read_all() -> None:
        while source.poll() is not END:
            pass

    write(1)
    source = opened(FileSource(str(tmp_path), format, batch_rows=1_000))
    if is_begun:
        first = source.poll()
        assert isinstance(first, pa.RecordBatch)
        assert first.num_rows == 1_000
    write(2)
    with pytest.raises(InputChanged, match=rf"1\.{format} was changed: .* after the stream had been built"):
        read_all()


def test_a_file_that_was_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("n\n1\n")
    source = opened(FileSource(str(tmp_path), "csv"))
    (tmp_path / "1.csv").unlink()
    with pytest.raises(
        InputChanged, match=r"1\.csv was removed after the stream had been built, and before its end was read"
    ):
        source.poll()


def rest(source: Source) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while (batch := source.poll()) is not END:
        assert isinstance(batch, pa.RecordBatch)
        rows += batch.to_pylist()
    return rows


def test_no_checkpoint_covers_rows_of_a_file_that_has_changed_meanwhile(tmp_path: Path) -> None:
    """It was seen at the end of the file only, when checkpoints had published rows of both versions."""
    path = tmp_path / "1.jsonl"
    path.write_text("".join(f'{{"n": {number}}}\n' for number in range(9_000)))
    source = opened(FileSource(str(path), "jsonl", batch_rows=1_000))
    source.poll()
    source.offset()
    path.write_text("".join(f'{{"n": {number}}}\n' for number in range(9_000, 18_000)))
    source.poll()
    with pytest.raises(InputChanged, match=r"1\.jsonl was changed: "):
        source.offset()


@pytest.mark.parametrize("read", [1, 3], ids=["within a row group", "between two row groups"])
def test_a_stream_that_is_built_again_does_not_go_on_in_another_version_of_a_file(read: int, tmp_path: Path) -> None:
    """As a driver does that is started again with resume="latest": as many rows, and the same row groups."""
    path = tmp_path / "prices.parquet"
    pq.write_table(pa.table({"n": [1] * 9_000}), path, row_group_size=3_000)
    source = opened(FileSource(str(path), batch_rows=1_000))
    for _ in range(read):
        source.poll()
    offset = source.offset()
    written = path.stat()
    pq.write_table(pa.table({"n": [2] * 9_000}), path, row_group_size=3_000)
    built_again = opened(FileSource(str(path), batch_rows=1_000))
    said = (
        r"had read a part of .*prices\.parquet, and it is another one now: it was \d+ bytes, written at 20.*, and is "
        r".* bytes, .*file put back as it was, with its time, too \(`touch -d @[\d.]+`\), or"
    )
    with pytest.raises(OffsetMismatch, match=said):
        built_again.seek(offset)
    with pytest.raises(OffsetMismatch, match=said):
        built_again.rescale([offset])
    pq.write_table(pa.table({"n": [1] * 9_000}), path, row_group_size=3_000)
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    put_back = opened(FileSource(str(path), batch_rows=1_000))
    put_back.seek(offset)
    assert rest(put_back) == [{"n": 1}] * (9_000 - read * 1_000)


def test_files_that_were_read_to_their_end_or_not_begun_may_be_others(tmp_path: Path) -> None:
    for name in ("1.csv", "2.csv", "3.csv"):
        (tmp_path / name).write_text("n\n1\n2\n")
    source = opened(FileSource(str(tmp_path), "csv", batch_rows=1))
    for _ in range(3):
        source.poll()
    offset = source.offset()
    assert list(offset["versions"]) == [str(tmp_path / "2.csv")]
    for name in ("1.csv", "3.csv"):
        os.utime(tmp_path / name, (1, 1))
    built_again = opened(FileSource(str(tmp_path), "csv", batch_rows=1))
    built_again.seek(offset)
    assert len(rest(built_again)) == 3


def test_an_offset_of_an_earlier_release_says_no_versions(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("n\n1\n2\n")
    source = opened(FileSource(str(tmp_path), "csv", batch_rows=1))
    source.poll()
    offset = source.offset()
    del offset["versions"]
    again = opened(FileSource(str(tmp_path), "csv", batch_rows=1))
    again.seek(offset)
    assert len(rest(again)) == 1


def test_the_source_in_the_documentation_keeps_the_contract() -> None:
    page = (Path(__file__).parents[3] / "docs" / "savepoints.md").read_text()
    (block,) = (each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Numbers" in each)
    names: dict[str, Any] = {}
    exec(block, names)

    def restored(recorded: list[RecordedOffset], parallelism: int) -> list[Source]:
        sources = [names["Numbers"]() for _ in range(parallelism)]
        for subtask, source in enumerate(sources):
            source.context = make_context(subtask, parallelism)
            source.open()
            continue_source(source, recorded)
        return sources

    seen: list[int] = []
    recorded: list[RecordedOffset] = []
    for parallelism, polls in [(2, [1, 3]), (3, [0, 2, 1]), (3, [1, 0, 0]), (1, [20])]:
        sources = restored(recorded, parallelism)
        for source, times in zip(sources, polls, strict=True):
            seen += [record for _ in range(times) if (batch := source.poll()) is not END for record in batch or ()]
        recorded = [RecordedOffset(subtask, parallelism, source.offset()) for subtask, source in enumerate(sources)]
    assert sorted(seen) == list(range(1000))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\ntwo", ["one", "two"]),
        (b"\n\nlast", ["", "", "last"]),
        (b"\xef\xbb\xbfmarked\n", ["marked"]),
        ("\u00e4\u2028in one line\x0b\n".encode(), ["\u00e4\u2028in one line\x0b"]),
        (b"", []),
    ],
)
def test_text_comes_in_lines(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    source = FileSource(str(tmp_path / "a.txt"), "text")
    assert [row["line"] for row in all_rows(source)] == lines


def test_text_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    blocks = b"fine\n" * 300_000
    (tmp_path / "a.txt").write_bytes(blocks + b"\xff\n")
    source = FileSource(str(tmp_path / "a.txt"), "text")
    with pytest.raises(UnreadableInput, match=r"a\.txt cannot be read as text .*line 300001 is not UTF-8: .* 0xff"):
        all_rows(source)
