"""docs/service.md is true: its program runs and prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "service.md").read_text()
INTO = PAGE.partition("## Into a running job")[2]


@pytest.mark.processes
def test_the_program_that_sends_into_its_job_prints_what_the_page_says(tmp_path: Path, prepared: Prepared) -> None:
    program, *_ = re.findall(r"```python\n(.*?)```", INTO, re.DOTALL)
    printed, *_ = re.findall(r"```text\n(.*?)```", INTO, re.DOTALL)
    (tmp_path / "shop.py").write_text(program)
    done = prepared.run("shop.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found, shown = done.stdout.splitlines(), printed.splitlines()
    assert sorted(found[:2]) == shown[:2]
    assert found[2:] == shown[2:]
