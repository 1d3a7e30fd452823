"""Part of the tests of state and of operators, again, with the library in small pieces: tests/small_pieces.py.

In processes of their own: the sizes hold for all of a process. `make small` runs many more tests so.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from . import small_pieces
from .small_pieces import ASKED_FOR_BY, PACKAGE, ROOT, SIZES, LostSize, install, path_of, with_small_sizes

STATE = ("tests/state/rocks", "tests/state/backends", "tests/state/keys", "tests/state/columns")
OPERATORS = ("tests/actors/joins", "tests/actors/windows", "tests/actors/operators")
LEFT_OUT = (
    "Thoroughly", "TestExpiring", "mutant", "flipped", "flat", "grow", "takes_no_more", "leave_little_behind",
    "is_forgotten", "share_no_total", "long_batches", "ledger_sink", "idempotent_sink", "committer", "super_calls",
)  # fmt: skip
"""In the names of tests that take the processor for long, or meet no pieces: `make small` runs them."""


@pytest.mark.drawn
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("paths", [STATE, OPERATORS], ids=["state", "operators"])
def test_it_works_in_small_pieces(paths: Sequence[str]) -> None:
    names = " or ".join(LEFT_OUT)
    options = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=few"]
    run = _run("pytest", *options, "-m", "not slow", "-k", f"not ({names})", *paths)
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr
    assert re.search(r"^\d+ passed", run.stdout, re.MULTILINE)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, ASKED_FOR_BY: "1", "UNDERSTUDY_CASES": "500"}
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True)


def test_a_size_holds_in_its_module_its_defaults_its_classes_and_where_it_is_imported() -> None:
    code = "\n".join(
        (
            "from tests import small_pieces",
            "small_pieces.install()",
            "from inspect import signature",
            f"from {PACKAGE}.actors.operators.aggregate import LocalAggregate",
            f"from {PACKAGE}.runtime.savepoints.state_table import BATCH_ROWS, StateTable",
            f"from {PACKAGE}.state.columnar import pane_table, window_rows",
            "print(BATCH_ROWS, signature(StateTable.batches).parameters['rows'].default)",
            "print(window_rows.MOST_ROWS, pane_table.MOST_ROWS, LocalAggregate.MOST_KEYS)",
        )
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    rows, most = SIZES["runtime.savepoints.state_table"]["BATCH_ROWS"], SIZES["state.columnar.window_rows"]["MOST_ROWS"]
    keys = SIZES["actors.operators.aggregate"]["LocalAggregate.MOST_KEYS"]
    assert run.stdout.split() == [str(each) for each in (rows, rows, most, most, keys)], run.stderr


@pytest.mark.parametrize("module", SIZES)
def test_each_size_of_the_table_is_there(module: str) -> None:
    with_small_sizes(module, path_of(module).read_text())


def test_a_size_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_pieces, "SIZES", {"state.storage": {"_LOST": 1}})
    with pytest.raises(LostSize, match=r"sets _LOST of state\.storage, which has no such constant"):
        install()


def test_a_module_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_pieces, "SIZES", {"state.lost": {"_PIECE_BYTES": 1}})
    with pytest.raises(LostSize, match=r"sizes of state\.lost, and there is no such module"):
        install()


def test_a_library_that_was_imported_earlier_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import understudy.state.storage  # noqa: F401

    monkeypatch.setattr(small_pieces, "SIZES", {"state.storage": SIZES["state.storage"]})
    with pytest.raises(LostSize, match=r"state\.storage was imported earlier"):
        install()
