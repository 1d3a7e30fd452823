"""docs/upgrades.md is true: its program prints what it shows, and each row of its table names a test that there is."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from understudy.state.kinds.state_descriptions import describe_states, state_misfit

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "upgrades.md").read_text()
PROGRAM = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
(SHOWN,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def test_the_program_prints_what_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)
    program = PROGRAM.replace("/data/checkpoints", str(tmp_path))
    exec(compile(program, "upgrades.md", "exec", dont_inherit=True), vars(page))
    assert capsys.readouterr().out == SHOWN
    (today,) = describe_states(page.Accounts)
    stored = {"record": "Account", "fields": {"cents": "int"}}
    assert not state_misfit(today, replace(today, schema=stored)), "a savepoint of when the class had the old field"


def test_each_row_of_the_table_names_a_test() -> None:
    rows = re.findall(r"^\|.*\| `(test_\w+)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 12
    code = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in rows:
        assert f"def {name}(" in code, name
