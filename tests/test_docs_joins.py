"""docs/joins.md: its example prints what the page says, and what the page calls is there as it is called."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from understudy import KeyedStream
from understudy.actors.flow.changelog import KINDS

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "joins.md").read_text()


@pytest.mark.processes
def test_the_example_prints_what_is_shown(tmp_path: Path, prepared: Prepared) -> None:
    (program,), (shown,) = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) for kind in ("python", "text"))
    (tmp_path / "orders.py").write_text(program)
    done = prepared.run("orders.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def test_what_is_called_is_there() -> None:
    sections = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    methods = {name for title in sections for name in title.split(" and ") if name.isidentifier() and name.islower()}
    assert methods >= {"join", "interval_join", "temporal_join", "lookup_join", "deduplicate", "top_n", "co_group"}
    for name in methods:
        assert callable(getattr(KeyedStream, name)), name
    parameters = {each for name in methods for each in inspect.signature(getattr(KeyedStream, name)).parameters}
    assert {"ttl_ms", "ttl_time", "suffix", "within_ms", "lower_exclusive", "rank"} <= parameters


def test_all_kinds_of_changes_are_explained() -> None:
    (table,) = re.findall(r"\| `kind` \|.*?\n\n", PAGE, re.DOTALL)
    assert set(re.findall(r'`"(..)"`', table)) == set(KINDS)
