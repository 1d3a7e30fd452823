"""docs/event-time.md is true: its example runs, and its table names each reason once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from understudy import HeldBy

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "event-time.md").read_text()


@pytest.mark.processes
@pytest.mark.slow
def test_the_example_of_an_empty_partition_runs_as_a_script(tmp_path: Path) -> None:
    block = next(each for each in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "class Partitions" in each)
    (tmp_path / "clicks.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "clicks.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    held, idle = done.stdout.split("idle_after_ms=300:")
    assert "split 'clicks-1' of 2: no watermark yet" in held
    assert "give its assign_timestamps idle_after_ms" in held
    assert "all its inputs are idle" in idle


def test_the_table_names_each_reason() -> None:
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE)) == {each.name for each in HeldBy}
