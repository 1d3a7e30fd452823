"""docs/high-availability.md is true: its program runs, by shared storage alone and so without a ZooKeeper, it lists all
settings, and its commands are those of the command line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from understudy.runtime.cli import main
from understudy.runtime.high_availability.settings import KEYS, ZOOKEEPER_KEYS

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "high-availability.md").read_text()
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SHELL,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def test_all_settings_are_listed() -> None:
    for key in KEYS:
        assert f"`{key}`" in PAGE or f"`.{key.removeprefix('high-availability.zookeeper.')}`" in PAGE, key
    assert len(KEYS) > len(ZOOKEEPER_KEYS)


def test_the_commands_are_there() -> None:
    commands = re.findall(r"^understudy (.*?)( &)?$", SHELL, re.MULTILINE)
    assert [command for command, _ in commands] == ["key cluster.key", "zookeeper start"]
    for command, _ in commands:
        answer = CliRunner().invoke(main, [*command.split()[:2], "--help"])
        assert answer.exit_code == 0, answer.output


@pytest.mark.processes
def test_the_program_runs(tmp_path: Path, prepared: Prepared) -> None:
    assert CliRunner().invoke(main, ["key", str(tmp_path / "cluster.key")]).exit_code == 0
    program = PROGRAM.replace("/mnt/shared", str(tmp_path)).replace('"zookeeper"', '"storage"')
    program = re.sub(r'    "high-availability.zookeeper.quorum".*\n', "", program)
    (tmp_path / "page.py").write_text(program)
    done = prepared.run("page.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stderr
    lines = [line for path in (tmp_path / "out").glob("[!._]*") for line in path.read_text().splitlines()]
    assert len(lines) == 2_000
    assert max(json.loads(line)["value"] for line in lines) == sum(range(9, 2_000, 10))
