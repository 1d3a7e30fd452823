"""The pages of simulator and harness are true: examples run, or fail as they say; each fault and oracle is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.testing import ACTIONS, FAULTS

from .prepared import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent
PAGE = "\n".join(
    (ROOT / "docs" / page).read_text() for page in ("simulation.md", "operator-tests.md", "simulated-histories.md")
)
BLOCKS = re.findall(r"```python( fails)?\n(.*?)```", PAGE, re.DOTALL)


def _pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rP", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


@pytest.mark.processes
def test_the_examples_that_should_pass_do(tmp_path: Path) -> None:
    passing = [block for fails, block in BLOCKS if not fails]
    for index, block in enumerate(passing):
        (tmp_path / f"test_example_{index}.py").write_text(block)
    done = _pytest(tmp_path, "--simulate-seeds", "10")
    assert done.returncode == 0, done.stdout
    assert "survived 10 histories: " in done.stdout
    assert "simulated 30 histories, 0 violations" in done.stdout
    survived = re.findall(r"^(?:    )?survived \d+ histories: .*", f"{PAGE}{done.stdout}", re.MULTILINE)
    assert len(set(map(_form, survived))) == 1, survived


REPORTS = re.findall(r"```python fails\n(.*?)```\n\n((?:    [^\n]*\n|\n)+)", PAGE, re.DOTALL)
"""Each mistake, and the report on it that the page shows."""


def _form(line: str) -> str:
    """A line of a report without its numbers, times and lists of records, which change with the runtime."""
    form = re.sub(r"\d+(?:,\d{3})*|\(.*|[0-9a-f]{16}", "#", line.strip().partition("…")[0])
    return re.sub(r"(# (?:fault|checkpoint|rescale|record))\b", r"\1s", form).replace("# recovery", "# recoveries")


@pytest.mark.processes
def test_the_mistakes_are_caught_as_the_page_says(tmp_path: Path) -> None:
    assert len(REPORTS) == len([block for fails, block in BLOCKS if fails])
    for block, report in REPORTS:
        (tmp_path / re.findall(r"pytest '(\w+\.py)::", report)[0]).write_text(block)
    done = _pytest(tmp_path)
    lines = (line.removeprefix("E").strip() for line in done.stdout.splitlines())
    printed = [_form(line.removeprefix("AssertionError: ")) for line in lines]
    for _, report in REPORTS:
        stale = [line for line in report.splitlines() if not any(each.startswith(_form(line)) for each in printed)]
        assert not stale, "\n".join(["the page shows what no report has any more:", *stale])
    assert len(re.findall(r"^E +AssertionError: exactly-once: sink ", done.stdout, re.MULTILINE)) == 3, done.stdout
    assert len(re.findall(r"^E +Shrunk from \d+ faults? to [12],", done.stdout, re.MULTILINE)) == 3
    assert re.search(r"simulated \d+ histories, 3 violations\n", done.stdout)


def test_every_kind_of_fault_and_of_client_action_is_described() -> None:
    described = re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)
    assert sorted(described) == sorted(kind.__name__ for kind in (*FAULTS, *ACTIONS))


def test_every_oracle_is_described() -> None:
    sources = [ROOT / "runtime" / "oracles.py", *(ROOT / "runtime" / "simulation").rglob("*.py")]
    broken = {
        name for source in sources for name in re.findall(r'(?:Violation|report)\(\s*"([a-z-]+)"', source.read_text())
    }
    assert {"exactly-once", "liveness"} <= broken
    assert not {name for name in broken if f"`{name}`" not in PAGE}


def test_the_first_example_takes_fifteen_lines() -> None:
    code = [line for line in BLOCKS[0][1].splitlines() if line.strip()]
    assert len(code) <= 15
