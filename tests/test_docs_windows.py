"""docs/windows.md is true: its examples print what it says, and its tables name all there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import understudy
from understudy.actors import windows

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "windows.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", PAGE, re.DOTALL)


@pytest.mark.processes
@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=["bids", "visits", "late", "own"])
def test_an_example_prints_what_is_shown(code: str, printed: str, tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "example.py").write_text(code)
    done = prepared.run("example.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    wanted = sorted(line.strip() for line in printed.splitlines())
    assert sorted(done.stdout.splitlines()) == wanted


def test_every_assigner_trigger_and_evictor_is_named() -> None:
    functions = [name for name in windows.__all__ if name.islower() and hasattr(understudy, name)]
    assert len(functions) > 15
    assert [name for name in functions if f"`{name}(" not in PAGE and f".evictor({name}(" not in PAGE] == []
