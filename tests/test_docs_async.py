"""docs/async.md is true: its job prints what the page says, and survives failures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from understudy import AsyncSettings, Retry
from understudy.testing import assert_exactly_once

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "async.md").read_text()
JOB = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
TESTS = re.findall(r"```python\n(.*?)```", PAGE.split("## Test it")[1].split("## Break it")[0], re.DOTALL)[0]
PRINTED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.mark.processes
def test_the_job_prints_what_the_page_says(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "rated.py").write_text(JOB)
    done = prepared.run("rated.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == PRINTED


def test_every_setting_is_described_with_its_default() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    described = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(described) == sorted(AsyncSettings.__dataclass_fields__)


def test_the_defaults_of_retry_are_those_of_the_page() -> None:
    (shown,) = re.findall(r"its defaults are `(Retry\(.*?\))`", PAGE)
    assert eval(shown) == Retry()
    assert all(f"{name}=" in shown for name in Retry.__dataclass_fields__)


def test_the_tests_of_one_operator_pass() -> None:
    found: dict[str, Any] = {"__name__": "test_charging"}
    exec(TESTS, found)
    tests = [value for name, value in found.items() if name.startswith("test_")]
    for test in tests:
        test()
    assert len(tests) == 2


def test_the_job_survives_failures() -> None:
    found: dict[str, Any] = {"__name__": "rated"}
    exec(JOB.replace("range(1000)", "range(60)"), found)
    counts = [(f"c{number}", count) for number in range(50) for count in ((1, 2) if number < 10 else (1,))]
    expected = [(customer, count, "low") for customer, count in counts]
    survived = assert_exactly_once(found["build"], histories=3, expected={"rated": expected, "given up": []})
    assert survived.histories == 3
