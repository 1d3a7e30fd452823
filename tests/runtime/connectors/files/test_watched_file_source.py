"""WatchedFileSource: files that come are read once each, whatever restarts and rescales there are in between."""

from __future__ import annotations

import os
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.operators.source import FromSplit, RecordedOffset
from understudy.runtime.connectors.files import file_readers, watched_file_source

from ..harness import ManualClock
from .watching import SCHEMA, Attempt, write


def test_what_comes_is_read_once_in_the_order_in_which_it_was_written(tmp_path: Path) -> None:
    for name, second in [("b", 1), ("a", 2)]:
        os.utime(write(tmp_path, name, second, second + 10, second + 20), (second, second))
    attempt = Attempt(tmp_path)
    assert attempt.polls() == [1, 11, 21, 2, 12, 22]
    assert attempt.polls() == []
    write(tmp_path, "c", 3)
    assert attempt.polls() == [], "it is not time to look yet"
    assert attempt.source.poll_delay_ms() == attempt.source.watch_ms
    assert attempt.look() == [3]
    assert attempt.look() == []


def test_a_file_whose_name_is_no_text_is_read_once_through_a_restart(tmp_path: Path) -> None:
    write(tmp_path, os.fsdecode(b"caf\xe9.csv"), 1)
    attempt = Attempt(tmp_path)
    assert attempt.polls() == [1]
    write(tmp_path, os.fsdecode(b"\xff.csv"), 2)
    successor = Attempt(tmp_path, recorded=[attempt.recorded()])
    assert successor.polls() + successor.look() == [2]


def test_an_old_file_that_is_moved_in_later_is_read(tmp_path: Path) -> None:
    write(tmp_path, "new", 1)
    attempt = Attempt(tmp_path)
    assert attempt.polls() == [1]
    os.utime(write(tmp_path, "old", 2), (0, 0))
    assert attempt.look() == [2]


def test_a_file_is_read_when_it_has_not_changed_for_the_settle_time(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, settle_ms=300, watch_ms=1_000)
    path = write(tmp_path, "a", 1)
    assert attempt.polls() == []
    assert attempt.source.poll_delay_ms() == 300
    write(tmp_path, "a", 1, 2)
    attempt.clock.ms += 300
    assert attempt.polls() == [], "it has grown"
    attempt.clock.ms += 300
    assert attempt.polls() == [1, 2]
    assert path.exists()


@pytest.mark.parametrize("name", [".a.csv", "_a.csv", "a.csv.tmp", "a.csv.part", "a.csv._COPYING_"])
def test_a_file_under_a_name_for_unfinished_ones_is_left_alone_until_it_is_renamed(tmp_path: Path, name: str) -> None:
    attempt = Attempt(tmp_path)
    path = write(tmp_path, name, 1)
    assert attempt.look() == []
    path.rename(tmp_path / "a.csv")
    assert attempt.look() == [1]


def test_a_glob_finds_new_folders_too(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path / "day=*" / "*.csv")
    for day in ("day=1", "day=2", "_day=3", "other"):
        (tmp_path / day).mkdir()
        write(tmp_path / day, "a.csv", len(day))
        write(tmp_path / day, "a.txt", 0)
        assert attempt.look() == ([len(day)] if day.startswith("day") else [])


def test_splits_are_the_files_that_are_read_and_the_first_look_is_waited_for(tmp_path: Path) -> None:
    path = write(tmp_path, "a", 1, 2, 3, 4, 5)
    attempt = Attempt(tmp_path)
    assert attempt.source.current_splits() == ("the first look",)
    polled = attempt.source.poll()
    assert isinstance(polled, FromSplit)
    assert polled.split == str(path)
    assert attempt.source.current_splits() == (str(path),)
    assert attempt.polls() == [3, 4, 5]
    assert attempt.source.current_splits() == ()


def test_of_parquet_files_whole_row_groups_before_the_offset_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"n": range(100)}, SCHEMA), tmp_path / "a.parquet", row_group_size=10)
    before = Attempt(tmp_path, format="parquet", schema=None, batch_rows=7)
    first = before.polls(7)
    groups: list[int] = []
    reader = file_readers.READ_FORMATS["parquet"]

    def batches(file: Any, split: Any, options: Any) -> Any:
        groups.append(split.row_group)
        return reader.batches(file, split, options)

    kind = type(reader)
    spied = kind(reader.schema, reader.splits, batches, reader.guessed)
    monkeypatch.setitem(file_readers.READ_FORMATS, "parquet", spied)
    after = Attempt(tmp_path, format="parquet", schema=None, recorded=[before.recorded()])
    assert first + after.polls() == list(range(100))
    assert groups[0] == len(first) // 10 > 0


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 7)),
        st.tuples(st.just("poll"), st.integers(1, 6)),
        st.tuples(st.just("remove"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("checkpoint"), st.just(0)),
        st.tuples(st.just("rescale"), st.integers(1, 4)),
    ),
    max_size=30,
)


@given(steps=steps)
def test_whatever_happens_every_row_comes_once(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    """A restart goes back to the last checkpoint, and forgets what came after it; a rescale follows a checkpoint. Files
    that a checkpoint covers are removed now and then."""
    folder = tmp_path_factory.mktemp("in")
    clock = ManualClock()
    names = count()  # of a file that was removed none comes back
    written: list[int] = []
    seen: list[int] = []
    attempts = [Attempt(folder, clock=clock)]
    kept: tuple[list[int], list[RecordedOffset]] = ([], [])
    for what, number in steps:
        if what == "write":
            rows = range(len(written), len(written) + number)
            write(folder, str(next(names)), *rows)
            written += rows
        elif what == "poll":
            clock.ms += 1_000
            for attempt in attempts:
                seen += attempt.polls(number)
        elif what == "remove":
            for path in folder.iterdir():
                if {int(line) for line in path.read_text().split()[1:]} <= set(kept[0]) and _is_read(attempts, path):
                    path.unlink()
        elif what == "restart":
            seen = list(kept[0])
            attempts = (
                [Attempt(folder, each.where, kept[1], clock) for each in attempts]
                if kept[1]
                else [Attempt(folder, each.where, (), clock) for each in attempts]
            )
        elif what == "checkpoint":
            kept = (list(seen), [each.recorded() for each in attempts])
        else:
            recorded = [each.recorded() for each in attempts]
            attempts = [Attempt(folder, (index, number), recorded, clock) for index in range(number)]
            kept = (list(seen), [each.recorded() for each in attempts])
    for _ in range(3):
        clock.ms += 1_000
        for attempt in attempts:
            seen += attempt.polls()
    assert Counter(seen) == Counter(written)


def _is_read(attempts: list[Attempt], path: Path) -> bool:
    """Whether its reader has done with it, and not only with its rows."""
    return all(str(path) != name for each in attempts for name, *_ in each.source.offset()["begun"])


def test_what_is_in_the_state_is_bounded_by_what_lies_in_the_folder(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    sizes = []
    for turn in range(5):
        for number in range(20):
            write(tmp_path, f"{turn}-{number}", number)
        assert len(attempt.look()) == 20
        for path in tmp_path.iterdir():
            path.unlink()
        attempt.look()
        attempt.look()
        sizes.append(len(attempt.source.offset()["read"]))
    assert sizes == [16 * 20] * 5, "those before went when the next ones were found"
    write(tmp_path, "last", 0)
    attempt.look()
    assert len(attempt.source.offset()["read"]) == 16


@pytest.mark.parametrize("restarts", [False, True])
def test_files_of_a_mount_that_was_away_are_not_read_again(tmp_path: Path, restarts: bool) -> None:
    """An empty folder lies where it was."""
    folder, away = tmp_path / "in", tmp_path / "away"
    folder.mkdir()
    for number in range(3):
        write(folder, str(number), number)
    attempt = Attempt(folder)
    assert attempt.polls() == [0, 1, 2]
    folder.rename(away)
    folder.mkdir()
    for _ in range(4):
        assert attempt.look() == []
    if restarts:
        attempt = Attempt(folder, recorded=[attempt.recorded()])
        for _ in range(3):
            assert attempt.look() == []
    folder.rmdir()
    away.rename(folder)
    write(folder, "3", 3)
    assert attempt.look() == [3]
    assert attempt.look() == []


@pytest.mark.parametrize("restarts", [False, True])
def test_a_name_that_comes_again_after_two_looks_without_it_is_a_new_file(tmp_path: Path, restarts: bool) -> None:
    path = write(tmp_path, "today", 1)
    attempt = Attempt(tmp_path, settle_ms=500)
    attempt.look()
    assert attempt.look() == [1]
    path.unlink()
    attempt.look()
    attempt.look()
    if restarts:
        attempt = Attempt(tmp_path, recorded=[attempt.recorded()], settle_ms=500)
    write(tmp_path, "today", 2, 3)
    assert attempt.look() + attempt.look() == [2, 3]
    assert attempt.look() == []


def test_a_large_folder_is_in_the_state_by_16_bytes_a_file(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path, f"{number:03d}", number)
    attempt = Attempt(tmp_path)
    assert attempt.polls() == list(range(300))
    assert len(attempt.source.offset()["read"]) == 16 * 300


def test_a_file_that_one_look_misses_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a", 1)
    attempt = Attempt(tmp_path)
    assert attempt.polls() == [1]
    with monkeypatch.context() as patch:
        patch.setattr(watched_file_source, "look", lambda _: [])
        assert attempt.look() == []
    assert attempt.look() == []


def test_a_file_that_grows_before_it_is_read_settles_again(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, settle_ms=100)
    for number, name in enumerate("ab"):
        write(tmp_path, name, number)
    assert attempt.polls() == []
    attempt.clock.ms += 100
    assert attempt.polls(1) == [0]
    write(tmp_path, "b", 1, 2)
    assert attempt.polls() == []
    for _ in range(2):
        attempt.clock.ms += 100
        last = attempt.polls()
    assert last == [1, 2]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_an_empty_file_of_text_holds_nothing(tmp_path: Path, format: str) -> None:
    (tmp_path / "empty").touch()
    attempt = Attempt(tmp_path, format=format)
    assert attempt.polls() == []
    assert attempt.source.offset()["read"]


def test_chosen_columns_are_read_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("m,n\n5,1\n")
    attempt = Attempt(tmp_path, schema=None, columns=["n"])
    (tmp_path / "b.csv").write_text("k,n\n6,2\n")
    assert attempt.polls() == [1, 2]
    assert attempt.source.for_columns(["n"]).source_schema() == SCHEMA


def test_a_url_is_watched_as_well() -> None:
    fs = fsspec.filesystem("memory")
    fs.makedirs("/watched")
    try:
        attempt = Attempt("memory://watched")
        fs.pipe_file("/watched/a", b"n\n1\n")
        assert attempt.look() == [1]
        fs.pipe_file("/watched/b", b"n\n2\n")
        assert attempt.look() == [2]
    finally:
        fs.rm("/watched", recursive=True)
