"""docs/rocksdb.md is true: its example runs and prints what the page says, and its settings are those there are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from understudy import StreamEnvironment

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "rocksdb.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.processes
def test_the_example_prints_what_the_page_says(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "example.py").write_text(EXAMPLE)
    done = prepared.run("example.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (said,) = re.findall(r"print\(.*\)  # (.*)\n", EXAMPLE)
    assert done.stdout == f"{said}\n"


def test_the_defaults_are_those_of_the_page() -> None:
    named = dict(re.findall(r"^\| `(\w+)=([^`]+)` \|", PAGE, re.MULTILINE))
    defaults = {name: str(each.default) for name, each in inspect.signature(StreamEnvironment).parameters.items()}
    del named["state_backend"]
    assert named == {name: defaults[name] for name in named}
    assert len(named) == 3
