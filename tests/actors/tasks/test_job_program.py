"""JobProgram: user code that a TaskManager cannot load is an error that says where the driver has it from."""

from __future__ import annotations

import importlib
import linecache
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from understudy import Operator
from understudy.actors.errors import CannotLoad
from understudy.actors.failure import chain_of
from understudy.actors.passing_errors import is_repeatable
from understudy.actors.tasks.job_program import JobProgram, ProgramOperator
from understudy.messages import OperatorId, VertexId

VERTEX = VertexId("vertex")
SHAPES = "class Shape:\n    sides = 4\n"


class Holder(Operator):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Where the driver looks for modules, and where the TaskManager does; the driver has a module `shapes_of_test`."""
    drivers, other = tmp_path / "drivers", tmp_path / "other"
    drivers.mkdir()
    other.mkdir()
    (drivers / "shapes_of_test.py").write_text(SHAPES)
    monkeypatch.syspath_prepend(str(drivers))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield drivers, other
    sys.modules.pop("shapes_of_test", None)


def program() -> JobProgram:
    held = importlib.import_module("shapes_of_test").Shape
    return JobProgram.of({VERTEX: [ProgramOperator(OperatorId("op"), Holder(held))]}, {}, 128)


def in_another_process(path: Path | None) -> None:
    """From here on the module is what lies there."""
    del sys.modules["shapes_of_test"]
    importlib.invalidate_caches()
    sys.path[0] = str(path)


def test_the_driver_says_which_files_it_has_the_named_modules_from(folders: tuple[Path, Path]) -> None:
    assert program().modules["shapes_of_test"] == str(folders[0] / "shapes_of_test.py")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (
            "",
            "the driver imported 'shapes_of_test' from {drivers}/shapes_of_test.py, this TaskManager from "
            "{other}/shapes_of_test.py: rename one of the two",
        ),
        (None, "from {drivers}/shapes_of_test.py, which this TaskManager does not have: install it here"),
        ("1 / 0", "division by zero"),
    ],
)
def test_another_module_of_the_same_name_is_named(folders: tuple[Path, Path], module: str | None, said: str) -> None:
    made = program()
    drivers, other = folders
    if module is not None:
        (other / "shapes_of_test.py").write_text(module)
    in_another_process(other)
    with pytest.raises(CannotLoad) as caught:
        made.chain(VERTEX)
    assert said.format(drivers=drivers, other=other) in str(caught.value)
    assert is_repeatable(chain_of(caught.value))


def test_an_import_that_waits_for_a_service_may_succeed_later(folders: tuple[Path, Path]) -> None:
    made = program()
    (folders[1] / "shapes_of_test.py").write_text("raise ConnectionError('down')")
    in_another_process(folders[1])
    with pytest.raises(CannotLoad, match="down") as caught:
        made.chain(VERTEX)
    assert not is_repeatable(chain_of(caught.value))


def test_a_record_type_that_cannot_be_loaded_fails_the_task_and_not_the_process(folders: tuple[Path, Path]) -> None:
    made = program()
    broken = replace(made, record_types=(made.chains[VERTEX],))
    in_another_process(folders[1])
    loaded = JobProgram.loads(broken.dumps())
    with pytest.raises(CannotLoad, match="No module named 'shapes_of_test'"):
        loaded.chain(VERTEX)


def test_code_of_another_python_is_refused_before_it_is_unpickled(folders: tuple[Path, Path]) -> None:
    """Byte code of 3.11 ends an interpreter of 3.12 with SIGSEGV, again and again: a lost TaskManager is no reason to
    end a job.
    """
    trap = cloudpickle.dumps(Trap())
    other = replace(program(), python="2.7", record_types=(trap,), chains={VERTEX: trap})
    loaded = JobProgram.loads(other.dumps())
    with pytest.raises(
        CannotLoad, match=r"submitted with Python 2\.7, .* runs Python 3\.\d+ \(.*\).*same Python"
    ) as caught:
        loaded.chain(VERTEX)
    assert is_repeatable(chain_of(caught.value))


def test_the_driver_says_which_python_it_has(folders: tuple[Path, Path]) -> None:
    assert program().python == "{}.{}".format(*sys.version_info[:2])


class Trap:
    """Must not be unpickled."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("it was unpickled",)


def test_tracebacks_of_a_cells_code_show_its_lines_where_it_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """As IPython has them, and Python for what is typed into it: no file, and the text in memory."""
    name, text = "/tmp/ipykernel_1/2.py", "def half(record):\n    return record / 0  # far too little\n"
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(keepends=True), name))
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), cell)
    made = JobProgram.of({VERTEX: [ProgramOperator(OperatorId("op"), Holder(cell["half"]))]}, {}, 128)
    assert made.cells == {name: text}
    data = made.dumps()
    monkeypatch.delitem(linecache.cache, name)
    (holder,) = JobProgram.loads(data).chain(VERTEX)
    assert isinstance(holder, Holder)
    with pytest.raises(ZeroDivisionError) as raised:
        holder.held(1)
    assert "return record / 0  # far too little" in "".join(traceback.format_exception(raised.value))


def test_files_do_not_travel() -> None:
    assert not JobProgram.of({VERTEX: [ProgramOperator(OperatorId("op"), Holder(lambda: 1))]}, {}, 128).cells
