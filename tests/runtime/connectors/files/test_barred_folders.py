"""Files in a folder that this user may not look into: the error names the folder, and does not say there are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from understudy import NoInput
from understudy.runtime.connectors import FileSource


@pytest.fixture
def barred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Also for root, whom no folder keeps out."""
    folder, access, scandir = tmp_path / "barred", os.access, os.scandir
    folder.mkdir()

    def scan(path: str) -> object:
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    def may(path: str, mode: int) -> bool:
        if Path(path) == tmp_path:
            return mode == os.X_OK  # one that only lets through
        return Path(path) != folder and access(path, mode)

    monkeypatch.setattr(os, "access", may)
    monkeypatch.setattr(os, "scandir", scan)
    return folder


@pytest.mark.parametrize("name", ["", "*.csv", "a.csv", "deeper/a.csv"])
def test_the_folder_is_named(name: str, barred: Path) -> None:
    with pytest.raises(NoInput, match=rf"{barred}.*: user \d+ of this host may not look into {barred}: let that user"):
        FileSource(str(barred / name), "csv")


def test_of_a_path_that_is_wrong_it_is_said_that_it_is(tmp_path: Path) -> None:
    with pytest.raises(NoInput, match="there is no such file"):
        FileSource(str(tmp_path / "no" / "*.csv"), "csv")


@pytest.mark.usefixtures("barred")
def test_a_folder_that_only_lets_through_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("a\n1\n")
    for name in ("in", "in/*.csv", "in/a.csv"):
        assert FileSource(str(tmp_path / name), "csv").source_schema().names == ["a"]


def test_of_a_named_pipe_it_is_said_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NoInput, match=r"pipe is neither a file nor a folder, .* write them into a file first"):
        FileSource(str(tmp_path / "pipe"), "jsonl")
