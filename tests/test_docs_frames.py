"""docs/connectors/frames.md is true: its job prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "connectors" / "frames.md").read_text()


@pytest.mark.processes
def test_the_job_prints_what_the_page_says(tmp_path: Path, prepared: Prepared) -> None:
    (job,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "sales.py").write_text(job)
    done = prepared.run("sales.py", folder=tmp_path, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
