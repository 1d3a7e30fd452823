"""docs/records.md is true: its example runs, and its table says what can be a record and what can be a key."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "records.md").read_text()


@pytest.mark.processes
@pytest.mark.slow
def test_the_example_runs_as_a_script(tmp_path: Path, prepared: Prepared) -> None:
    (block,) = (each for each in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "register_serializer" in each)
    (tmp_path / "images.py").write_text(block)
    done = prepared.run("images.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = ast.literal_eval(done.stdout)
    assert (1, [9]) in printed
    assert (2, [3, 4]) in printed
