"""docs/debugging.md is true: its examples run, and print what they are there for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "debugging.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))

PRINTED = {
    "One process, one thread: LocalCluster(debug=True)": r"\A\(1, 25\)\n\Z",
    "A profiler": r"^ +2000 .*example\.py:\d+\(process\)$",
    "What the job says: details, metrics, events": (
        r"(?s)event: CheckpointCompleted\n.*job 'squares' is running after 0\.7 seconds\n"
        r".*task: .*square.* [1-9]\d* in, \d+ out\n.*details: finished after 0 restarts, failures: \(\)\n"
        r"checkpoint: \d+ completed \d+ ms\n\Z"
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("section", PRINTED)
def test_the_example_runs(section: str, tmp_path: Path, prepared: Prepared) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", SECTIONS[section], re.DOTALL)
    (tmp_path / "example.py").write_text(block)
    done = prepared.run("example.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(PRINTED[section], done.stdout, re.MULTILINE), done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "example.py"]
