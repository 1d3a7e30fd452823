"""docs/iterations.md is true: its examples print what it says, and survive failures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from understudy import DataStream
from understudy.testing import assert_exactly_once

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "iterations.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", PAGE, re.DOTALL)
NAMES = ["attempts", "ranks", "components"]


@pytest.mark.processes
@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=NAMES)
def test_an_example_prints_what_is_shown(code: str, printed: str, tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "example.py").write_text(code)
    done = prepared.run("example.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(line.strip() for line in printed.splitlines())


@pytest.mark.parametrize("code", [code for code, _ in EXAMPLES], ids=NAMES)
def test_an_example_is_exactly_once_with_two_subtasks(code: str) -> None:
    build, cluster, _ = code.partition("with LocalCluster")
    assert cluster
    program = build.replace(".print()", '.collect(name="out")').replace("(checkpoint", "(parallelism=2, checkpoint")
    made: dict[str, Any] = {"__name__": "example"}
    exec(compile(program, "example.py", "exec"), made)
    survived = assert_exactly_once(made["env"], histories=6)
    assert survived.recoveries > 0


def test_the_loops_that_there_are_are_named() -> None:
    methods = {name for name in dir(DataStream) if "iterate" in name and not name.startswith("_")}
    assert methods == {"iterate", "bulk_iterate", "delta_iterate"}
    assert {name for name in methods if f".{name}(step" in PAGE} == methods
