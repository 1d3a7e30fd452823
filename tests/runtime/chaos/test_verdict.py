"""A chaos run that does not notice a wrong result is none: reader, judge and search for leftovers see what we plant."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from understudy.messages import CheckpointCompleted, CheckpointId, JobId
from understudy.runtime.chaos.leftovers import Marked, everything_below, hidden_files, marked
from understudy.runtime.chaos.observer import Observer
from understudy.runtime.chaos.output_reader import OutputReader
from understudy.runtime.chaos.report import Report
from understudy.runtime.chaos.run import Stage, _ahead_s, _judge_output
from understudy.runtime.chaos.small_disk import CannotMount, SmallDisk, small_disk
from understudy.runtime.chaos.workload import Counted, EndFile, counted, expected


def commit(folder: Path, name: str, records: list[Counted]) -> None:
    """As the sink does: whole, at once."""
    folder.mkdir(exist_ok=True)
    draft = folder / f".{name}"
    draft.write_text("".join(json.dumps(asdict(record)) + "\n" for record in records))
    draft.rename(folder / name)


@pytest.mark.parametrize(
    ("records", "is_exact"),
    [
        pytest.param(expected(10), True, id="all"),
        pytest.param(expected(9), False, id="one-lost"),
        pytest.param([*expected(10), counted(3)], False, id="one-twice"),
        pytest.param([*expected(9), Counted(9, 2, 9)], False, id="one-with-a-wrong-number"),
        pytest.param(expected(11), False, id="one-too-many"),
    ],
)
def test_the_verdict_on_the_output(tmp_path: Path, records: list[Counted], is_exact: bool) -> None:
    commit(tmp_path / "output", "part-1", records[:4])
    commit(tmp_path / "output", "part-2", records[4:])
    report = Report("local", 2, 1, finished=True, records=10)
    _judge_output(Stage(tmp_path, tmp_path / "checkpoints", tmp_path / "output", {}), report)
    assert report.exact is report.ok is is_exact
    assert bool(report.violations) is not is_exact


@pytest.mark.parametrize(("records", "violations"), [(expected(9), 0), ([*expected(9), counted(3)], 1)])
def test_the_output_of_a_job_that_did_not_finish_is_not_exact_but_shows_nothing_extra(
    tmp_path: Path, records: list[Counted], violations: int
) -> None:
    commit(tmp_path / "output", "part-1", records)
    report = Report("local", 2, 1, records=10)
    _judge_output(Stage(tmp_path, tmp_path / "checkpoints", tmp_path / "output", {}), report)
    assert not report.exact
    assert len(report.violations) == violations


@pytest.fixture
def look(tmp_path: Path) -> Iterator[Callable[[], OutputReader]]:
    """A reader that has looked at least twice since it was asked."""
    with OutputReader(tmp_path) as reader:

        def looked() -> OutputReader:
            reader.await_look()
            return reader

        yield looked


def test_the_reader_has_nothing_to_say_about_what_is_to_be(tmp_path: Path, look: Callable[[], OutputReader]) -> None:
    commit(tmp_path, "part-1", expected(5))
    commit(tmp_path, "part-2", [counted(7)])
    (tmp_path / ".hidden").write_text("{")
    assert look().violations == []
    assert look().next_index == 8


def test_the_end_of_a_run_is_reckoned_from_what_a_slow_checkpoint_commits(tmp_path: Path) -> None:
    """Else the sources are told an end that a checkpoint, of which nothing is visible yet, has passed already."""
    observer, completed = Observer(), CheckpointCompleted(JobId("job"), CheckpointId(1), 0, 0, 0, "")
    is_over = threading.Event()

    def complete() -> None:
        for number in itertools.takewhile(lambda _: not is_over.wait(0.1), itertools.count()):
            commit(tmp_path, f"part-{number}", [counted(number)])
            observer.on_event(completed)

    with OutputReader(tmp_path) as reader, ThreadPoolExecutor(1) as thread:
        thread.submit(complete)
        before = observer.checkpoints
        _ahead_s(observer, reader)
        seen = reader.next_index
        is_over.set()
    assert seen >= before + 3


def test_the_reader_sees_a_record_that_is_there_twice_for_a_moment(
    tmp_path: Path, look: Callable[[], OutputReader]
) -> None:
    commit(tmp_path, "part-1", expected(5))
    look()
    commit(tmp_path, "part-2", [counted(3)])
    assert [one.oracle for one in look().violations] == ["nothing-extra"]


def test_the_reader_sees_a_record_that_is_not_to_be(tmp_path: Path, look: Callable[[], OutputReader]) -> None:
    commit(tmp_path, "part-1", [Counted(1, 7, 1)])
    assert [one.oracle for one in look().violations] == ["nothing-extra"]


def test_the_reader_sees_a_file_that_is_cut_off(tmp_path: Path, look: Callable[[], OutputReader]) -> None:
    (tmp_path / "part-1").write_text('{"key": 1')
    assert look().violations[0].oracle == "readable"


def test_a_file_that_is_taken_back_may_come_again(tmp_path: Path, look: Callable[[], OutputReader]) -> None:
    commit(tmp_path, "part-1", expected(5))
    look()
    (tmp_path / "part-1").unlink()
    look()
    commit(tmp_path, "part-2", expected(5))
    assert look().violations == []
    assert look().taken_back == 1


def test_hidden_files_and_empty_folders_are_left_over(tmp_path: Path) -> None:
    commit(tmp_path, "part-1", expected(1))
    (tmp_path / ".understudy-x").mkdir()
    assert hidden_files(tmp_path) == [".understudy-x"]
    (tmp_path / ".understudy-x" / "0-0-0").touch()
    assert hidden_files(tmp_path) == [".understudy-x/0-0-0"]
    claim = ".understudy-owner/00000001-b56adf03c68fc19f"
    (tmp_path / ".understudy-owner").mkdir()
    (tmp_path / claim).touch()
    assert hidden_files(tmp_path) == [".understudy-x/0-0-0"], "whose the folder is stays"
    assert everything_below(tmp_path) == [claim, ".understudy-x/0-0-0", "part-1"]
    assert everything_below(tmp_path / "nowhere") == []


def test_a_process_that_is_left_is_found_and_no_other_is_ours(tmp_path: Path) -> None:
    with marked(tmp_path) as mark:
        left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert mark.is_ours(left.pid)
        assert not mark.is_ours(other.pid)
        assert [each.split()[1] for each in mark.processes()] == [str(left.pid)]
        assert not Marked(tmp_path).processes()
    finally:
        for process in (left, other):
            process.communicate(b"\n")
    assert mark.wait_for_processes(5) == []


def test_the_end_is_told_once_it_is_known(tmp_path: Path) -> None:
    end = EndFile(tmp_path / "end")
    assert end.read() is None
    end.write(12)
    assert end.read() == 12


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    try:
        with small_disk(tmp_path / "disk", 1 << 20) as disk:
            yield disk
    except CannotMount as error:
        pytest.skip(f"this takes the right to mount: {error}")


def test_a_small_disk_is_full_until_it_is_freed(disk: SmallDisk) -> None:
    kept = disk.folder / "kept"
    kept.write_text("kept")
    disk.fill()
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        (disk.folder / "new").write_text("new")
    disk.free()
    disk.free()
    (disk.folder / "new").write_text("new")
    assert kept.read_text() == "kept"
