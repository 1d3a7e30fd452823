"""docs/notebooks.md is true: its cells run one after another, as a kernel runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "notebooks.md").read_text()
CELLS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

KERNEL = """
import ast
import asyncio
import inspect
import linecache
import sys

from cells import CELLS


async def run():
    for number, cell in enumerate(CELLS):
        name = f"<cell {number}>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
        tree = ast.parse(cell)
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
        code = compile(ast.fix_missing_locations(tree), name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        returned = eval(code, globals())
        if inspect.iscoroutine(returned):
            await returned
        if isinstance(last, ast.Expr):
            print(_)


asyncio.run(run())
print(squares)
"""


@pytest.mark.processes
def test_the_cells_run_one_after_another(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "cells.py").write_text(f"CELLS = {CELLS!r}\n")
    (tmp_path / "kernel.py").write_text(KERNEL)
    done = prepared.run("kernel.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        r" +shop +cents\n0 +north +250\n1 +south +100\n2 +north +300\nNone\n\[0, 1, 4\]\n", done.stdout
    ), done.stdout
