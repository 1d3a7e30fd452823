"""docs/savepoints.md is true: its Python is one program that runs, and its source can be rescaled."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from understudy.runtime.simulation.harness.harness import OperatorHarness

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "savepoints.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SHELL,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
(SOURCE,) = (block for block in BLOCKS if "class Numbers(Source)" in block)
SHOWN = "/data/checkpoints"


def shown_path(comment: str, folder: Path) -> str:
    """A regular expression for the paths that a comment of the page shows, where the checkpoints are in `folder`."""
    (path,) = re.findall(rf"# ({SHOWN}\S+)", comment)
    path = re.escape(path.replace(SHOWN, str(folder)))
    return re.sub(r"[0-9a-f]{8,}|chk\\-\d+|3f9c", lambda part: "chk-\\d+" if "chk" in part[0] else "[0-9a-f]+", path)


@pytest.mark.processes
def test_the_program_runs_and_paths_look_as_shown(tmp_path: Path, prepared: Prepared) -> None:
    folder = tmp_path / "checkpoints"
    shown = "print(path, daily)\n", "print(path)\n"
    assert [len(re.findall(r"path = .*#", block)) for block in BLOCKS] == [1, 0, 0, 1, 0]
    program = BLOCKS[0] + shown[0] + BLOCKS[1] + BLOCKS[2] + BLOCKS[3] + shown[1] + BLOCKS[4]
    assert program.count(SHOWN) >= 2
    (tmp_path / "page.py").write_text(program.replace(SHOWN, str(folder)))
    done = prepared.run("page.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    savepoints, restored, operators, retained, fresh, resumed = done.stdout.splitlines()
    path, daily = savepoints.split()
    first, second = (line for line in BLOCKS[0].splitlines() if f"# {SHOWN}" in line)
    assert re.fullmatch(shown_path(first, folder), path)
    assert daily.startswith(f"{folder}/savepoints/daily/savepoint-")
    assert f"# {SHOWN}/savepoints/daily/savepoint-" in second
    assert re.fullmatch(r"\d+ \('numbers', 'count', 'out'\)", restored)
    assert operators == "('numbers', 'count', 'out')"
    assert re.fullmatch(rf"{folder}/job-[0-9a-f]+/chk-\d+/_metadata", retained)
    assert fresh == "None"
    assert re.fullmatch(rf"\d+ {folder}/job-[0-9a-f]+/chk-\d+/_metadata", resumed)
    newest = subprocess.run(
        ["bash", "-c", SHELL.splitlines()[0].replace(SHOWN, str(folder))], capture_output=True, text=True, check=True
    )
    assert newest.stdout.strip().endswith("/_metadata")


def numbers_left_by(subtasks: int, next_subtasks: int) -> list[Any]:
    """What subtasks of the page's source emit when each has polled twice, and those that are restored the rest."""
    found: dict[str, Any] = {}
    exec(SOURCE, found)
    emitted: list[Any] = []
    old = [OperatorHarness(found["Numbers"], subtask_index=each, parallelism=subtasks) for each in range(subtasks)]
    for harness in old:
        harness.poll()
        harness.poll()
        emitted += harness.take_output()
    snapshots = [harness.snapshot() for harness in old]
    for index in range(next_subtasks):
        with old[0].restored(snapshots, subtask_index=index, parallelism=next_subtasks) as after:
            assert after.drain()
            emitted += after.take_output()
    return emitted


@pytest.mark.parametrize(("subtasks", "next_subtasks"), [(1, 1), (2, 2), (2, 3), (3, 1)])
def test_the_source_emits_each_number_once_after_any_change_of_parallelism(subtasks: int, next_subtasks: int) -> None:
    assert sorted(numbers_left_by(subtasks, next_subtasks)) == list(range(1000))
