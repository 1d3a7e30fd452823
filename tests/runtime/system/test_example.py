"""The documented example runs, and says what its docstring promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_processes.py"


def test_two_processes():
    done = subprocess.run([sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    answer, terminated = done.stdout.splitlines()
    assert answer == "6 * 7 = 42"
    assert terminated.startswith("Terminated(address='tcp://127.0.0.1:")
