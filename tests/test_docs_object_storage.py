"""docs/object-storage.md is true: the job prints what the page says, and variables have these defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from understudy.state.store_requests import TIMEOUT_MS, TRIES, Patience

from .prepared import Prepared
from .systems.s3 import S3Server, s3, s3_server

__all__ = ["s3", "s3_server"]

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "object-storage.md").read_text()


@pytest.mark.processes
def test_the_job_prints_what_the_page_says(tmp_path: Path, prepared: Prepared, s3: S3Server) -> None:
    s3.fs.call_s3("create_bucket", Bucket="states")
    (job,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "page.py").write_text(job)
    done = prepared.run("page.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_the_variables_have_these_defaults() -> None:
    assert f"| `{TRIES}` | {Patience().tries} |" in TEXT
    assert f"| `{TIMEOUT_MS}` | {Patience().timeout_ms} |" in TEXT
