"""docs/event-time.md is true: its job prints what the page says, in failures too, and the operator does as it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from understudy import HeldBy
from understudy.testing import assert_exactly_once

from .prepared import PATIENCE_SECONDS, Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "event-time.md").read_text()
JOB, TRIAL, TIMERS, HARNESS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:4]
PRINTED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.mark.processes
def test_the_job_prints_what_the_page_says(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "visits.py").write_text(JOB)
    done = prepared.run("visits.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == PRINTED


def test_the_job_survives_failures() -> None:
    found: dict[str, Any] = {"__name__": "visits"}
    exec(JOB + TRIAL, found)
    late = [{"user": "ann", "at": 12 * found["MINUTE"], "page": "cart"}]
    visits = [tuple(int(part) if part.isdigit() else part for part in line.split()) for line in PRINTED.splitlines()]
    assert "assert_exactly_once(build)" in TRIAL
    survived = assert_exactly_once(found["build"], histories=4, expected={"visits": visits[:-1], "late": late})
    assert survived.histories == 4


def test_the_reminder_comes_after_ten_minutes_without_a_payment() -> None:
    found: dict[str, Any] = {}
    exec(TIMERS + HARNESS, found)
    found["test_an_order_without_a_payment_is_followed_by_a_reminder"]()


@pytest.mark.processes
@pytest.mark.slow
def test_the_example_of_an_empty_partition_runs_as_a_script(tmp_path: Path) -> None:
    block = next(each for each in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "class Partitions" in each)
    (tmp_path / "clicks.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "clicks.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    held, idle = done.stdout.split("idle_after_ms=300:")
    assert "split 'clicks-1' of 2: no watermark yet" in held
    assert "give its assign_timestamps idle_after_ms" in held
    assert "all its inputs are idle" in idle


def test_the_table_names_each_reason() -> None:
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE)) == {each.name for each in HeldBy}
