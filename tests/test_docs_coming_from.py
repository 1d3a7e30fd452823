"""The programs of docs/coming-from.md print what stands below them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "coming-from.md").read_text()
PROGRAMS = re.findall(r"## ([^\n]*)\n[^#]*?```python\n(.*?)```\n\n    (.*?)\n", PAGE, re.DOTALL)


def test_each_program_has_its_output() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") == 6


@pytest.mark.processes
@pytest.mark.parametrize(("program", "said"), [each[1:] for each in PROGRAMS], ids=[each[0] for each in PROGRAMS])
def test_it_prints_what_is_said(program: str, said: str, tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "program.py").write_text(program)
    done = prepared.run("program.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [said]
