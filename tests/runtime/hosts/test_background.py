"""Processes that are started in the background."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from understudy.runtime.hosts.background import start_in_background
from understudy.runtime.hosts.settings_sources import load_settings
from understudy.state.errors import UnwritableFolder


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file takes nothing here")
def test_a_disk_of_logs_that_takes_no_bytes_is_named_and_nothing_is_started(tmp_path: Path) -> None:
    """The file was made, took nothing, and "(nothing)" was all that was said of why the process had ended."""
    (tmp_path / "understudy.yaml").write_text(f"log.dir: {tmp_path}/log\nrun.dir: {tmp_path}/run\n")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "jobmanager.start").symlink_to("/dev/full")
    with pytest.raises(UnwritableFolder, match=f"cannot write to {tmp_path}/log: its disk "):
        start_in_background("jobmanager", load_settings(str(tmp_path / "understudy.yaml")))


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.EACCES, "let that user write there"), (errno.ENOSPC, "its disk is full"), (errno.EROFS, "read-only")],
)
def test_a_folder_of_logs_that_takes_no_file_is_named_and_nothing_is_started(
    number: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process in the background would have nowhere to say why it ends."""
    (tmp_path / "understudy.yaml").write_text(f"log.dir: {tmp_path}/log\nrun.dir: {tmp_path}/run\n")
    loaded = load_settings(str(tmp_path / "understudy.yaml"))

    def refused(path: Path, *_: Any) -> None:
        raise OSError(number, "No", str(path))

    monkeypatch.setattr("pathlib.Path.open", refused)
    with pytest.raises(UnwritableFolder, match=f"cannot write to {tmp_path}/log: .*{said}"):
        start_in_background("jobmanager", loaded)
