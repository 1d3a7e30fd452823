"""Wrong arguments: one clear line and exit code 1 or 2, and no traceback."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from understudy.runtime.cli import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, a folder, a key and programs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("UNDERSTUDY_CONFIG", raising=False)
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "three.py").write_text("def build(): return 3")
    assert CliRunner().invoke(main, ["key", "key"]).exit_code == 0
    return tmp_path


SET = "-D security.key-file=key -D storage.dir=storage"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("cluster key -D security.key-file=file/key", 1, r"security\.key-file: the folder \S+/file cannot be made: .+"),
        ("cluster key -D security.key-file=folder", 1, r"security\.key-file: \S+/folder is a folder, and wanted is"),
        ("jobmanager -D security.key-file=folder -D storage.dir=s", 1, r"security\.key-file: \S+ cannot be read: Is a"),
        (f"jobmanager {SET} -D run.dir=file", 1, r"run\.dir: the folder \S+/file cannot be made: "),
        (f"jobmanager {SET} -D log.dir=file/log", 1, r"log\.dir: the folder \S+/file/log cannot be made: "),
        (f"taskmanager --detach {SET} -D log.dir=file", 1, r"log\.dir: the folder \S+/file cannot be made: "),
        ("jobmanager --stop -D run.dir=file", 1, r"run\.dir: \S+/file is no folder"),
        ("taskmanager --status -D run.dir=file", 1, r"run\.dir: \S+/file is no folder"),
        ("zookeeper start --port 1025 --folder file", 1, r"--folder: \S+/file cannot be made: "),
        ("config jobmanager.prot", 2, r"there is no setting that begins with 'jobmanager\.prot'; did you mean 'jobman"),
        ("jobmanager --status --stop", 2, r"wanted one of --detach, --stop and --status, found --stop and --status"),
        ("taskmanager --json", 2, r"--json goes with --status"),
        ("state keys folder", 2, r"no such command 'keys'; there are cat, diff, export, ls, "),
        ("state verfy folder", 2, r"no such command 'verfy'; did you mean 'understudy state verify'\?"),
        ("statsu", 2, r"no such command 'statsu'; did you mean 'understudy list' or 'understudy top'\?"),
        ("jobs", 2, r"no such command 'jobs'; did you mean 'understudy list'\?"),
        ("savepiont", 2, r"no such command 'savepiont'; did you mean 'understudy savepoint'\?"),
        ("stat", 2, r"no such command 'stat'; did you mean 'understudy state'\?"),
        ("cluster strat", 2, r"no such command 'strat'; did you mean 'understudy cluster start'\?"),
        ("simulate nosuch", 2, r"no such command 'nosuch'; there are "),
        ("simulate --topology asked paid", 2, r"--topology takes one name, and 'paid' is a second one: write --topo"),
        (
            "--jobmanager tcp://h:1 list",
            2,
            r"no such option '--jobmanager' here: options of a command stand behind its",
        ),
        ("run nosuch.py:build", 1, r"no file nosuch\.py \(looked for /\S+/nosuch\.py\): wanted path/to/file\.py:build"),
        ("dashboard --history file", 2, r"Directory 'file' is a file"),
        ("info folder:build", 1, r"folder is a folder without a module; name a file in it, as in folder/job\.py:build"),
        ("info three.py:build", 1, r"three\.py:build returned an int \(3\); wanted a StreamEnvironment"),
    ],
)
def test_it_is_one_line(here: Path, command: str, code: int, said: str) -> None:
    done = CliRunner().invoke(main, command.split())
    assert (done.exit_code, type(done.exception)) == (code, SystemExit), done.output
    lines = [line for line in done.output.splitlines() if line and not line.startswith(("Usage:", "Try "))]
    assert len(lines) == 1, done.output
    assert re.search(said, lines[0]), lines[0]
