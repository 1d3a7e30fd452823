"""What docs/debugging.md shows of prints, logs and steps that block is what comes out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .prepared import Prepared

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "debugging.md").read_text()


def _section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def _run(section: str, folder: Path, prepared: Prepared) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The section's script, and the texts that it says come out."""
    (script,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (folder / "job.py").write_text(script)
    done = prepared.run("job.py", folder=folder)
    assert done.returncode == 0, done.stderr
    return done, re.findall(r"```text\n(.*?)```", section, re.DOTALL)


@pytest.mark.processes
def test_prints_and_logs_come_out_as_shown(tmp_path: Path, prepared: Prepared) -> None:
    done, (out, err) = _run(_section("Where prints and logs go"), tmp_path, prepared)
    assert (done.stdout, done.stderr) == (out, err)


@pytest.mark.processes
def test_a_step_that_blocks_is_logged_as_shown(tmp_path: Path, prepared: Prepared) -> None:
    done, (shown,) = _run(_section("A step that blocks"), tmp_path, prepared)
    assert _timeless(done.stderr, tmp_path) == _timeless(shown, tmp_path)


@pytest.mark.processes
def test_a_coroutine_that_blocks_is_logged_as_shown(tmp_path: Path, prepared: Prepared) -> None:
    done, (shown,) = _run(_section("A coroutine that blocks"), tmp_path, prepared)
    assert _timeless(done.stderr, tmp_path) == _timeless(shown, tmp_path)


def _timeless(text: str, folder: Path) -> str:
    return re.sub(r"for \d+\.\d s", "for some s", text.replace(f"{folder}/", ""))


@pytest.mark.parametrize("attribute", ["job_name", "operator", "subtask", "attempt", "task_manager"])
def test_the_attributes_of_records_are_named(attribute: str) -> None:
    assert f"`{attribute}`" in _section("Where prints and logs go")
