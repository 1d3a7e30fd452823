"""docs/savepoint-data.md is true: its Python is one program that prints what its comments say, and its commands run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from understudy.runtime.cli import main

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "savepoint-data.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = "/data/checkpoints"


def test_the_program_prints_what_its_comments_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "".join(BLOCKS).replace(SHOWN, str(tmp_path))
    names: dict[str, object] = {"__name__": "page"}
    exec(compile(program, "savepoint-data.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    told = re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
    assert len(told) == 7
    for line in told:
        assert line in printed
    assert "delays 1 ['flights: ValueState of int', 'worst: ValueState of float']" in printed
    assert "[{'key': 'JFK', 'n': 1000}]" in printed
    commands_run(str(names["path"]), str(names["later"]), tmp_path)


def commands_run(path: str, later: str, folder: Path) -> None:
    """Each command that the page lists, with its arguments."""
    values = {
        "PATH": path, "BEFORE": path, "AFTER": later, "OPERATOR": "delays", "STATE": "worst",
        "FILE": str(folder / "worst.parquet"), "SQL": "SELECT * FROM delays.worst", "K": "JFK", "N": "1", "U": "delays",
        "S": "flights",
    }  # fmt: skip
    commands = re.findall(r"^\| `understudy (state .*?)` \|", PAGE, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        words = [values.get(word, word) for word in re.sub(r"[\[\]]", " ", command).split()]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, (command, result.output)
