"""A script that builds a program and does not submit it says so at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BUILT = "from understudy import StreamEnvironment\nenv = StreamEnvironment()\nstream = env.from_collection([1])\n"
SINK = "stream.print()\n"


def said_by(script: str, folder: Path) -> str:
    path = folder / "job.py"
    path.write_text(script)
    return subprocess.run([sys.executable, path.name], cwd=folder, capture_output=True, text=True, timeout=60).stderr


def test_a_script_that_forgets_to_submit_is_told(tmp_path: Path) -> None:
    said = said_by(BUILT + SINK, tmp_path)
    assert "the program of the StreamEnvironment of " in said
    assert "job.py:2 was not submitted, so nothing of it has run: write `with LocalCluster() as cluster: " in said


@pytest.mark.parametrize(
    "script",
    [
        BUILT,
        BUILT + SINK + "raise SystemExit(1 / 0)\n",
        BUILT + SINK + "import understudy.testing as testing; testing.assert_exactly_once\n",
        BUILT + SINK + "from understudy.runtime.api.never_submitted import used\nused()\n",
        "import other\n",
    ],
    ids=["it has no sink", "it fails", "it is a test", "it submits", "another module builds it"],
)
def test_nothing_is_said_where(script: str, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(BUILT + SINK)
    assert "was not submitted" not in said_by(script, tmp_path)
