"""docs/connectors/your-own.md: the sink and the source pass their contracts, and mistakes are told as shown."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .prepared import PATIENCE_SECONDS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "connectors" / "your-own.md").read_text()
OF_SINKS, OF_SOURCES = PAGE.split("## A source with a thread of its own")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
IN_MEMORY = "/dev/shm"
"""SQLite waits for the disk at each commit."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if Path(IN_MEMORY).is_dir() else None) as made:
        for name, text in FILES.items():
            (Path(made) / name).write_text(text)
        yield Path(made)


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ["-q", "-rP", "-p", "no:cacheprovider", f"--basetemp={folder / 'tables'}"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def test_the_sink_has_some_fifty_lines() -> None:
    lines = [line for line in FILES["orders_sink.py"].splitlines() if line.strip()]
    assert 30 < len(lines) <= 50


def test_the_sink_passes(folder: Path) -> None:
    done = pytest_in(folder, "test_orders_sink.py")
    assert done.returncode == 0, done.stdout + done.stderr
    (said,) = re.findall(r"^    (TestOrdersSink: \d+ points at which it was killed)$", PAGE, re.MULTILINE)
    assert said in done.stdout
    tests = re.findall(r"^\| `(test_\w+)` \|", OF_SINKS, re.MULTILINE)
    assert f"{len(tests)} passed" in done.stdout


def test_the_mistake_is_told_as_shown(folder: Path) -> None:
    proof = FILES["test_orders_sink.py"].replace("orders_sink", "hasty_sink").replace("OrdersSink", "HastySink")
    (folder / "test_hasty_sink.py").write_text(proof)
    done = pytest_in(folder, "test_hasty_sink.py", "-k", "a_kill_before")
    assert done.returncode == 1, done.stdout + done.stderr
    (story,) = re.findall(r"```text\n(.*?)```", OF_SINKS, re.DOTALL)
    shown = [re.sub(r"^E\s*(AssertionError: )?", "", line) for line in done.stdout.splitlines() if line.startswith("E")]
    wanted = [line.strip() for line in story.splitlines()]
    assert shown[: len(wanted)] == wanted


def test_the_source_passes_and_its_threads_are_seen(folder: Path) -> None:
    """With fewer moments than the page has: its threads' own tests try more."""
    proof = folder / "test_readings_source.py"
    proof.write_text(FILES[proof.name].replace("most_points = 40", "most_points = 6"))
    done = pytest_in(folder, proof.name)
    assert done.returncode == 0, done.stdout + done.stderr
    for test in re.findall(r"^\| `(test_\w+)` \|", OF_SOURCES, re.MULTILINE):
        assert f"TestReadingsSource.{test}" in done.stdout
    assert re.search(r"6 moments of its threads at which a checkpoint was taken, of \d+ at \d+ places", done.stdout)


def test_the_hasty_source_is_found(folder: Path) -> None:
    proof = FILES["test_readings_source.py"].replace("readings_source", "hasty_source")
    (folder / "test_hasty_source.py").write_text(proof.replace("ReadingsSource", "HastySource"))
    done = pytest_in(folder, "test_hasty_source.py", "-k", "a_checkpoint_at_each_moment")
    assert done.returncode == 1, done.stdout + done.stderr
    (story,) = re.findall(r"```text\n(.*?)```", OF_SOURCES, re.DOTALL)
    for told in (story, done.stdout):
        assert "HastySource: it gave other records." in told
        assert re.search(r"attempt 1 takes checkpoint \d+ while its thread 'readings' is (before|after) ", told)
        assert re.search(r"\(\d+, 'value \d+'\) is missing", told)
