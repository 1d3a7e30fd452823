"""docs/compiled.md is true: its example runs, compiled and as plain Python, with the same results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared

pytest.importorskip("numba")

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "compiled.md").read_text()


@pytest.mark.processes
def test_the_example_prints_the_same_compiled_and_interpreted(tmp_path: Path, prepared: Prepared) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert block.count("compiled = True") == 1
    printed = []
    for name, code in (("compiled", block), ("interpreted", block.replace("compiled = True", "compiled = False"))):
        (tmp_path / f"{name}.py").write_text(code)
        done = prepared.run(f"{name}.py", folder=tmp_path, timeout=100)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1] == f"{[(s, *r) for s in 'ab' for r in ((1, 3, 3), (2, 6, 9), (3, -5, 9))]}\n"
