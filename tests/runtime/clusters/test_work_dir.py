"""Machines where no temporary folder can be written, as in a container with a read-only file system."""

from __future__ import annotations

import errno
import tempfile

import pytest
from click.testing import CliRunner

from understudy import LocalCluster
from understudy.runtime.cli import main
from understudy.runtime.clusters.announcement import find_announcements
from understudy.state.errors import UnwritableFolder


@pytest.fixture(autouse=True)
def no_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/var/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", raising)


def test_a_cluster_says_to_set_tmpdir() -> None:
    with pytest.raises(UnwritableFolder, match=r"no temporary folder .*'/var/tmp'\]; set TMPDIR to"):
        LocalCluster().start()


def test_commands_do_without() -> None:
    """They look there for clusters of this machine, and there are none."""
    assert find_announcements().running == ()
    asked = CliRunner().invoke(main, ["list"], catch_exceptions=False)
    assert asked.exit_code == 1
    assert "no JobManager of this user runs here (no temporary folder can be used" in asked.output
