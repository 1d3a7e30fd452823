"""WatchedFileSource: files that change or vanish, that cannot be read or have other columns, and folders that cannot be
looked into.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.actors.operators.patience import RETRY_MS
from understudy.actors.operators.source import RecordedOffset
from understudy.runtime.connectors import (
    InputChanged,
    NoInput,
    OffsetMismatch,
    UnreadableInput,
    WatchedFileSource,
)
from understudy.runtime.connectors.files import file_look, files_seen, watched_file_source

from .watching import SCHEMA, Attempt, write


def test_a_file_that_is_written_again_after_it_was_read_is_an_error_and_stays_one(tmp_path: Path) -> None:
    path = write(tmp_path, "a", 1)
    os.utime(path, (1_795_957_678.25, 1_795_957_678.25))
    size = path.stat().st_size
    attempt = Attempt(tmp_path)
    assert attempt.polls() == [1]
    before = attempt.recorded()
    write(tmp_path, "a", 1, 2)
    was = rf"a was written again after .* to its end: it was {size} bytes, written at 2026-11-29 13:07:58.250000 UTC"
    with pytest.raises(InputChanged, match=was):
        attempt.look()
    with pytest.raises(InputChanged, match=rf"{was}, and is {path.stat().st_size} bytes, written at .*Move it away"):
        Attempt(tmp_path, recorded=[before]).look()


def restored_after_rewrite(tmp_path: Path) -> tuple[Path, RecordedOffset, str]:
    """A file that was read, covered by a checkpoint, and has the same content again; and what the error says."""
    path = write(tmp_path, "a", 1)
    attempt = Attempt(tmp_path)
    assert attempt.polls() == [1]
    os.utime(path, (1, 1))
    with pytest.raises(InputChanged) as raised:
        Attempt(tmp_path, recorded=[attempt.recorded()]).look()
    return path, attempt.recorded(), str(raised.value)


def test_a_file_that_was_written_again_may_be_moved_away_as_its_rows_were_read(tmp_path: Path) -> None:
    path, recorded, says = restored_after_rewrite(tmp_path)
    assert "Move it away, as its rows were read" in says
    path.unlink()
    write(tmp_path, "b", 2)
    assert Attempt(tmp_path, recorded=[recorded]).polls() == [2]


def test_a_file_that_was_written_again_with_the_same_content_gets_its_time_back(tmp_path: Path) -> None:
    path, recorded, says = restored_after_rewrite(tmp_path)
    moment = re.search(r"put it back as it was, with its time, too \(`touch -d (@[0-9.]+)`\)", says)
    assert moment is not None, says
    subprocess.run(["touch", "-d", moment[1], path], check=True)
    assert Attempt(tmp_path, recorded=[recorded]).polls() == []


def test_state_of_an_earlier_release_knows_no_size_and_time(tmp_path: Path) -> None:
    path, recorded, _ = restored_after_rewrite(tmp_path)
    older = recorded._replace(offset={name: recorded.offset[name] for name in ("path", "begun", "read", "gone")})
    size = path.stat().st_size
    with pytest.raises(InputChanged, match=rf"to its end: it has {size} bytes, .*put it back as it was;"):
        Attempt(tmp_path, recorded=[older]).look()


def test_which_version_of_a_file_is_meant_is_said_by_its_moment() -> None:
    """Seconds since 1970 say little to whoever looks for the file's writer."""
    text = str(files_seen.changed("a", "3300 bytes, 1795957678.832399", '4400 bytes, "7f.1"'))
    assert 'it was 3300 bytes, written at 2026-11-29 13:07:58.832399 UTC, and is 4400 bytes, "7f.1". The' in text
    assert "put it back as it was, with its time, too (`touch -d @1795957678.832399`)" in text


def test_a_file_that_is_changed_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "a", *range(10))
    attempt = Attempt(tmp_path)
    assert attempt.polls(1) == [0, 1]
    write(tmp_path, "a", *range(12))
    with pytest.raises(InputChanged, match="settle_ms"):
        attempt.polls()


def test_a_file_that_is_removed_when_some_of_it_was_read_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "a", *range(10))
    attempt = Attempt(tmp_path)
    assert attempt.polls(1) == [0, 1]
    before = attempt.recorded()
    path.unlink()
    with pytest.raises(InputChanged, match=r"was removed after its first rows had been read.* put it back"):
        Attempt(tmp_path, recorded=[before]).polls()


def test_a_file_that_is_removed_before_it_is_read_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for number, name in enumerate("abc"):
        os.utime(write(tmp_path, name, number), (number, number))
    attempt = Attempt(tmp_path)
    assert attempt.polls(1) == [0]
    (tmp_path / "b").unlink()
    assert attempt.polls() == [2]
    assert [each.getMessage() for each in caplog.records] == [
        f"source 'operator': {tmp_path}/b was removed before it was read"
    ]


def test_the_columns_are_those_of_the_oldest_file_and_a_file_with_others_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1], "m": ["x"]}), tmp_path / "a.parquet")
    os.utime(tmp_path / "a.parquet", (1, 1))
    attempt = Attempt(tmp_path, format="parquet", schema=None)
    assert attempt.source.source_schema().names == ["n", "m"]
    assert attempt.polls() == [1]
    pq.write_table(pa.table({"n": [2]}), tmp_path / "b.parquet")
    with pytest.raises(UnreadableInput, match=r"b\.parquet has other columns than the stream: missing m"):
        attempt.look()
    (tmp_path / "b.parquet").unlink()
    pq.write_table(pa.table({"n": [2.5], "m": ["y"]}), tmp_path / "c.parquet")
    after = Attempt(tmp_path, format="parquet", schema=None, recorded=[attempt.recorded()])
    assert after.polls() == [], "the file that could not be read is gone"
    with pytest.raises(UnreadableInput, match="n is double, wanted int64"):
        after.look()


@pytest.mark.parametrize("is_first", [False, True])
def test_a_file_that_comes_later_with_leading_zeros_in_a_column_of_numbers_is_refused(
    is_first: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("n,00\n99999,1\n" if is_first else "00,n\n1,99999\n")
    attempt = Attempt(tmp_path, schema=None)
    assert attempt.polls() == [99999]
    (tmp_path / "b.csv").write_text("n,00\n01234,1\n" if is_first else "00,n\n1,01234\n")
    with pytest.raises(UnreadableInput, match=r"b\.csv .*column 'n' was taken for numbers, and later it has '01234'"):
        attempt.look()
    wanted = pa.schema([("00", pa.int64()), ("n", pa.string())][:: -1 if is_first else 1])
    assert Attempt(tmp_path, schema=wanted).polls() == ["99999", "01234"]


@pytest.mark.parametrize(("format", "text"), [("csv", "n\nx\n"), ("jsonl", '{"n": "x"}\n'), ("parquet", "PAR")])
def test_a_file_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path, format: str, text: str) -> None:
    attempt = Attempt(tmp_path, format=format)
    (tmp_path / "broken").write_text(text)
    with pytest.raises(UnreadableInput, match=r"broken cannot be read as.*; put that file right, or take it away"):
        attempt.look()


def test_a_file_that_this_user_may_not_read_says_whom_to_let_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root, who may read everything, there is no such file."""
    attempt = Attempt(tmp_path)
    path = write(tmp_path, "a", 1)

    def forbidden(*_: object, **__: object) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("fsspec.implementations.local.LocalFileSystem.open", forbidden)
    with pytest.raises(UnreadableInput, match=rf"user {os.getuid()} of this host may not read {path}: let that user"):
        attempt.look()


@pytest.mark.parametrize(
    ("path", "options", "match"),
    [
        ("missing/*.csv", {}, "there is no folder .*missing"),
        ("", {"schema": None}, "no file says the columns yet"),
    ],
)
def test_what_cannot_begin_is_refused_when_it_is_made(
    tmp_path: Path, path: str, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(NoInput, match=match):
        Attempt(tmp_path / path, **options)


def test_two_stars_are_refused() -> None:
    with pytest.raises(ValueError, match="a \\* for each level"):
        WatchedFileSource("/in/**/a.csv", "csv", schema=SCHEMA)


def test_another_path_is_refused(tmp_path: Path) -> None:
    before = Attempt(tmp_path).recorded()
    (tmp_path / "other").mkdir()
    with pytest.raises(OffsetMismatch, match="another name"):
        Attempt(tmp_path / "other", recorded=[before])


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[OSError | None], None]:
    raised: list[OSError] = []

    def look(url: str) -> Any:
        if raised:
            raise raised[0]
        return file_look.look(url)

    monkeypatch.setattr(watched_file_source, "look", look)

    def fail(error: OSError | None) -> None:
        raised[:] = [] if error is None else [error]

    return fail


def test_a_look_that_fails_is_tried_again_and_logged_once(
    tmp_path: Path, failing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = Attempt(tmp_path)
    write(tmp_path, "a", 1)
    failing(OSError("the network is away"))
    for _ in range(10):
        assert attempt.look() == []
    assert attempt.source.current_splits() == ("the first look",)
    failing(None)
    assert attempt.look() == [1]
    levels = [(each.levelno, "network" in each.getMessage()) for each in caplog.records]
    assert levels == [(logging.WARNING, True), (logging.WARNING, False)]


def test_looks_that_fail_for_a_minute_fail_the_source(tmp_path: Path, failing: Any) -> None:
    attempt = Attempt(tmp_path)
    failing(OSError("the network is away"))
    assert attempt.polls() == []
    attempt.clock.ms += RETRY_MS
    with pytest.raises(OSError, match="the network is away"):
        attempt.polls()


def test_looks_that_fail_for_a_minute_in_all_with_one_that_succeeds_in_between_do_not(
    tmp_path: Path, failing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = Attempt(tmp_path)
    failing(OSError("the network is away"))
    assert attempt.look() == []
    failing(None)
    assert attempt.look() == attempt.look() == []
    assert len(caplog.records) == 2, "that it fails, and that it does no more"
    attempt.clock.ms += RETRY_MS
    failing(OSError("the network is away"))
    assert attempt.look() == []


def test_a_look_that_is_forbidden_fails_at_once(tmp_path: Path, failing: Any) -> None:
    attempt = Attempt(tmp_path)
    failing(PermissionError("not yours"))
    with pytest.raises(PermissionError):
        attempt.polls()
