"""The pages of docs/connectors/ that one job explains are true: the job prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared

PAGES = Path(__file__).resolve().parent.parent / "docs" / "connectors"


@pytest.mark.processes
@pytest.mark.parametrize("page", ["files-that-come", "frames"])
def test_the_job_prints_what_the_page_says(tmp_path: Path, prepared: Prepared, page: str) -> None:
    text = (PAGES / f"{page}.md").read_text()
    (job,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "page.py").write_text(job)
    done = prepared.run("page.py", folder=tmp_path, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
