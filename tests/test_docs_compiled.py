"""docs/compiled.md is true: its example runs, compiled and as plain Python, with the same results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from understudy import KeyedOperator, ValueState
from understudy.testing import OperatorHarness

from .prepared import Prepared

pytest.importorskip("numba")

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "compiled.md").read_text()


class Reading(NamedTuple):
    sensor: str
    value: int


@pytest.mark.processes
def test_the_example_prints_the_same_compiled_and_interpreted(tmp_path: Path, prepared: Prepared) -> None:
    block, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert block.count("compiled = True") == 1
    printed = []
    for name, code in (("compiled", block), ("interpreted", block.replace("compiled = True", "compiled = False"))):
        (tmp_path / f"{name}.py").write_text(code)
        done = prepared.run(f"{name}.py", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1] == f"{[(s, *r) for s in 'ab' for r in ((1, 3, 3), (2, 6, 9), (3, -5, 9))]}\n"


def test_the_sessions_are_the_same_compiled_and_interpreted() -> None:
    _, block = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for is_compiled in (True, False):
        names: dict[str, Any] = {"KeyedOperator": KeyedOperator, "ValueState": ValueState}
        exec(block.replace("compiled = True", f"compiled = {is_compiled}"), names)
        with OperatorHarness(names["Sessions"], key_by="sensor") as harness:
            harness.process([Reading("a", 1)] * 3, timestamps=[0, 59_999, 30_000])
            harness.watermark(119_998)
            assert harness.output() == []
            harness.watermark(119_999)
            assert list(map(tuple, harness.output())) == [("a", 3)]
            harness.process([Reading("a", 1)], timestamps=[200_000])
            harness.watermark(300_000)
            assert list(map(tuple, harness.output())) == [("a", 3), ("a", 1)]
