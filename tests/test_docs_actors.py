"""docs/actors.md: its programs do what the page says, and its table has what a context has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from understudy import ActorContext

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "actors.md").read_text()
PROGRAMS = re.findall(r"```python\n(from understudy import .*?)```", PAGE, re.DOTALL)


@pytest.mark.processes
@pytest.mark.parametrize(("number", "last"), [(0, "Hello, Ada"), (1, "31.0")])
def test_the_examples_print_what_is_said(number: int, last: str, tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "actors.py").write_text(PROGRAMS[number])
    done = prepared.run("actors.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == last


def test_the_table_has_what_actors_use_of_their_context() -> None:
    (table,) = re.findall(r"through `self.context`.*?\n\n(.*?)\n\n", PAGE, re.DOTALL)
    said = {name for cell in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", cell)}
    there = {name for name in vars(ActorContext) if not name.startswith("_")}
    assert said == there - {"wake"}
