"""The data of the demo: it is read without a word of the package that brings it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WRITE = (
    "import sys; from pathlib import Path; from understudy.runtime.cli.demo_job import write_flights; "
    "write_flights(Path(sys.argv[1]))"
)


@pytest.mark.processes
def test_the_flights_are_written_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WRITE, str(tmp_path)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert (tmp_path / "flights.parquet").exists()
