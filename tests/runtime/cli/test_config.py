"""`understudy config` shows what holds, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from understudy.runtime.cli import main


@pytest.mark.every_run
def test_the_password_of_a_url_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "understudy.yaml").write_text("storage.dir: s3://key:hunter2@bucket/folder\n")
    shown = CliRunner().invoke(main, ["config", "storage"])
    assert (shown.exit_code, "hunter2" in shown.output, "s3://key:***@bucket/folder" in shown.output) == (
        0,
        False,
        True,
    )
    as_json = CliRunner().invoke(main, ["config", "storage", "--json"])
    assert json.loads(as_json.stdout)["storage.dir"]["value"] == "s3://key:***@bucket/folder"
