"""The log files of a process that stands alone: they rotate, and a full disk ends nothing."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from understudy.runtime.hosts.log_files import log_to_file
from understudy.runtime.hosts.settings import HostSettings
from understudy.runtime.system.remote.remoting import LOST


@pytest.fixture
def own_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is changed of logging and streams is put back."""
    root, lost = logging.getLogger(), logging.getLogger(LOST)
    before, level, level_of_lost = root.handlers.copy(), root.level, lost.level
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    yield
    for handler in root.handlers:
        if handler not in before:
            handler.close()
    root.handlers[:] = before
    root.setLevel(level)
    lost.setLevel(level_of_lost)


@pytest.mark.usefixtures("own_logging")
def test_logs_and_prints_are_put_aside_when_they_are_full_and_the_oldest_go(tmp_path: Path) -> None:
    settings = HostSettings(log_max_bytes=10_000, log_files=3)
    log_to_file(settings, str(tmp_path / "jobmanager.log"), in_background=True)
    for number in range(1_000):
        logging.getLogger("myapp").info("line %d", number)
        print("printed, with some more text", number)
    sys.stdout.flush()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(f"jobmanager.{kind}{which}" for kind in ("log", "out") for which in ("", ".1", ".2"))
    assert all(path.stat().st_size <= 10_000 for path in tmp_path.iterdir())
    assert (tmp_path / "jobmanager.log").read_text().endswith("INFO myapp: line 999\n")
    assert (tmp_path / "jobmanager.out").read_text().endswith("printed, with some more text 999\n")


@pytest.mark.usefixtures("own_logging")
def test_in_the_foreground_logs_are_on_standard_error_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_file(HostSettings(log_level="WARNING"), str(tmp_path / "x.log"), in_background=False)
    logging.getLogger("myapp").info("not this")
    logging.getLogger("myapp").warning("this")
    assert "not this" not in capsys.readouterr().err
    assert (tmp_path / "x.log").read_text().endswith("WARNING myapp: this\n")


@pytest.mark.usefixtures("own_logging")
def test_what_click_prints_is_as_it_is(tmp_path: Path) -> None:
    log_to_file(HostSettings(), str(tmp_path / "x.log"), in_background=True)
    click.echo("ended: SIGTERM", err=True)
    assert (tmp_path / "x.out").read_text() == "ended: SIGTERM\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.usefixtures("own_logging")
def test_a_full_disk_leaves_lines_out_and_says_so_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "x.log", tmp_path / "x.out"]
    for file in files:
        file.symlink_to("/dev/full")
    log_to_file(HostSettings(), str(files[0]), in_background=True)
    for number in range(3):
        logging.getLogger("myapp").info("line %d", number)
        print("printed", number)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(files)
    for file, line in zip(files, said, strict=True):
        assert line.startswith(f"{file} takes no lines, which are left out until it does: [Errno 28] No space left on")
        assert f"cannot write to {tmp_path}: its disk is full" in line
        assert "make space, or choose another folder" in line
        file.unlink()
    logging.getLogger("myapp").info("line 3")
    print("printed 3")
    left_out = "lines before this one, or a few more, are not in this file: it could not be written\n"
    log, out = (file.read_text() for file in files)
    assert "INFO myapp: line 3\n" in log
    assert f"WARNING understudy.runtime.hosts.log_files: 3 {left_out}" in log
    assert out.startswith("printed 3")
    assert left_out in out
    logging.getLogger("myapp").info("line 4")
    assert files[0].read_text().endswith("INFO myapp: line 4\n")


@pytest.mark.usefixtures("own_logging")
def test_a_file_that_somebody_has_put_aside_or_removed_is_begun_again(tmp_path: Path) -> None:
    """As logrotate does it, by renaming, by `copytruncate`, and somebody who removes the whole folder."""
    folder = tmp_path / "log"
    log_to_file(HostSettings(), str(folder / "x.log"), in_background=True)
    file, prints = folder / "x.log", folder / "x.out"

    def write(text: str) -> None:
        logging.getLogger("myapp").info(text)
        print(text)

    write("one")
    file.rename(folder / "x.log-20261129")
    prints.rename(folder / "x.out-20261129")
    write("two")
    assert file.read_text().endswith("INFO myapp: two\n")
    assert prints.read_text() == "two\n"
    assert (folder / "x.out-20261129").read_text() == "one\n"
    os.truncate(file, 0)
    write("three")
    assert file.read_text().endswith("INFO myapp: three\n")
    assert "two" not in file.read_text()
    shutil.rmtree(folder)
    write("four")
    assert file.read_text().endswith("INFO myapp: four\n")


@pytest.mark.usefixtures("own_logging")
def test_what_operators_of_several_jobs_log_can_be_told_apart(tmp_path: Path) -> None:
    log_to_file(HostSettings(), str(tmp_path / "jobmanager.log"), in_background=True)
    origin = {"task_manager": "tm-0-9f3a2c11", "operator": "total", "subtask": 1, "attempt": 0}
    for job in ("orders", "clicks"):
        logging.getLogger("myapp").info("hello", extra={"job_name": job, **origin})
    lines = (tmp_path / "jobmanager.log").read_text().splitlines()
    assert [line.partition(" INFO ")[2] for line in lines] == [
        "myapp [orders: total, subtask 1, attempt 0]: hello",
        "myapp [clicks: total, subtask 1, attempt 0]: hello",
    ]


@pytest.mark.usefixtures("own_logging")
def test_a_folder_that_cannot_be_searched_for_a_while_takes_no_lines_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "x.log"
    log_to_file(HostSettings(), str(log), in_background=True)
    logging.getLogger("myapp").info("before")
    stat = os.stat

    def refused(path: str | os.PathLike[str] | int, **options: Any) -> os.stat_result:
        if str(path) == str(log):
            raise PermissionError(errno.EACCES, "Permission denied", str(log))
        return stat(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refused)
        patch.setattr("builtins.open", lambda *_args, **_options: pytest.fail("it is open"))
        logging.getLogger("myapp").info("meanwhile")
    logging.getLogger("myapp").info("after")
    assert [line.rpartition(" ")[2] for line in log.read_text().splitlines()] == ["before", "meanwhile", "after"]
