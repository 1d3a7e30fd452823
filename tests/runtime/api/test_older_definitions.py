"""In a notebook a stream that was built before an edit says at submit that it has the older code."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from understudy import StreamEnvironment
from understudy.runtime.api.translation import translate

HEAD = "from understudy import KeyedOperator, StreamEnvironment, ValueState"
TOTAL = """
class Total(KeyedOperator):
    n = ValueState(int, default=0)

    def process(self, record, out):
        out.collect({})
"""
BUILD = """
env = StreamEnvironment()
env.from_collection([1]).key_by(lambda n: n).process(Total, name="total").collect(name="out")
"""
MAP = """
def doubled(n):
    return n * {}
"""
BUILD_MAP = """
env = StreamEnvironment()
env.from_collection([1]).map(doubled, name="double").collect(name="out")
"""


class Notebook:
    """Cells that run in `__main__`."""

    def __init__(self) -> None:
        self.main = ModuleType("__main__")
        self.run(HEAD)

    def run(self, *cells: str) -> None:
        for cell in cells:
            exec(cell, vars(self.main))

    def submit(self) -> None:
        env: Any = vars(self.main)["env"]
        assert isinstance(env, StreamEnvironment)
        translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setitem(sys.modules, "__main__", made.main)
    return made


@pytest.mark.parametrize(
    ("first", "build", "edited", "said"),
    [
        (TOTAL.format("record"), BUILD, TOTAL.format("2"), "operator 'total' has Total as it was when"),
        (MAP.format(2), BUILD_MAP, MAP.format(3), "operator 'double' has doubled as it was when"),
    ],
    ids=["class", "function"],
)
def test_an_edit_without_the_cell_that_builds_is_warned_of(
    notebook: Notebook, first: str, build: str, edited: str, said: str
) -> None:
    notebook.run(first, build, edited)
    with pytest.warns(UserWarning, match=f"{said}.*run the cell that builds the stream again"):
        notebook.submit()


@pytest.mark.filterwarnings("error")
def test_a_cell_that_is_run_again_as_it_was_is_not(notebook: Notebook) -> None:
    notebook.run(TOTAL.format("record"), BUILD, "\n\n" + TOTAL.format("record"))
    notebook.submit()
    notebook.run(TOTAL.format("2"), BUILD)
    notebook.submit()
    notebook.run(TOTAL.format("2"))
    notebook.submit()


@pytest.mark.filterwarnings("error")
def test_a_script_may_have_two_of_a_name(notebook: Notebook) -> None:
    notebook.main.__file__ = "job.py"
    notebook.run(TOTAL.format("record"), BUILD, TOTAL.format("2"))
    notebook.submit()
