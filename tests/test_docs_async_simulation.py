"""The page's section about breaking a job with coroutines is true: its examples run, one after the other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .prepared import PATIENCE_SECONDS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "async.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text().split("## Break it")[1], re.DOTALL)


@pytest.mark.processes
def test_the_examples_pass(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_charges.py").write_text("\n".join(BLOCKS))
    options = ["-m", "pytest", "-p", "no:cacheprovider", "-rP", "--simulate-seeds", "10"]
    done = subprocess.run(
        [sys.executable, *options], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "survived 10 histories: " in done.stdout
    assert "2 passed" in done.stdout
