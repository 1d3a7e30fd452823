"""User code is shipped with the names of its files, whatever cloudpickle leaves out."""

from __future__ import annotations

import importlib
import linecache
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

from understudy.actors.tasks.shipping import CodeOrigins, pickled

SCRIPT = """
def price(record):
    def of(amount):
        return amount / 0  # it fails here
    return [of(each) for each in record]

class Prices:
    def process(self, record):
        return price(record)

double = lambda amount: amount.doubled  # or here
"""


@pytest.fixture
def script(tmp_path: Path) -> dict[str, Any]:
    """What a user's script defines, as `python job.py` would have it: cloudpickle ships all of it by value."""
    path = tmp_path / "job.py"
    path.write_text(SCRIPT)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(SCRIPT, str(path), "exec"), names)
    return names


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (lambda script: script["price"], "it fails here"),
        (lambda script: script["Prices"]().process, "it fails here"),
        (lambda script: script["double"], "or here"),
    ],
    ids=["function", "class", "lambda"],
)
def test_a_traceback_of_shipped_code_shows_file_and_source(script: dict[str, Any], made: Any, line: str) -> None:
    arrived = cloudpickle.loads(pickled(made(script)))
    with pytest.raises((ZeroDivisionError, AttributeError)) as raised:
        arrived([1])
    own = traceback.extract_tb(raised.value.__traceback__)[1:]
    assert {frame.filename for frame in own} == {made(script).__code__.co_filename}
    assert line in str(own[-1].line)


def test_what_has_arrived_is_shipped_on_with_its_file(script: dict[str, Any]) -> None:
    once = cloudpickle.loads(pickled(script["price"]))
    again = cloudpickle.loads(pickled(once))
    assert again.__code__ == script["price"].__code__
    assert again.__code__.co_filename == script["price"].__code__.co_filename


def test_an_imported_function_goes_by_its_name() -> None:
    assert cloudpickle.loads(pickled(traceback.extract_tb)) is traceback.extract_tb


def nameless(record: Any) -> Any:
    """Some decorators and libraries leave functions without the name of their module."""
    return record


def test_a_function_without_the_name_of_its_module_is_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nameless, "__module__", None)
    origins = CodeOrigins()
    assert cloudpickle.loads(pickled([nameless, Path], origins))[0](1) == 1
    assert None not in origins.modules


def test_a_file_that_runpy_runs_under_no_name_is_shipped_by_value(tmp_path: Path) -> None:
    """Its module is called `<run_path>` while it runs; nobody else can import that."""
    path = tmp_path / "job.py"
    path.write_text(f"from understudy.actors.tasks.shipping import pickled\n{SCRIPT}\nshipped = pickled(Prices)\n")
    shipped = runpy.run_path(str(path))["shipped"]
    with pytest.raises(ZeroDivisionError):
        cloudpickle.loads(shipped)().process([1])


def test_an_interval_of_arrow_is_shipped() -> None:
    """Its class is in no module, so pickle alone does not find it."""
    interval = pa.MonthDayNano([1, 2, 3])
    (shipped,) = cloudpickle.loads(pickled([interval]))
    assert (type(shipped), tuple(shipped)) == (pa.MonthDayNano, (1, 2, 3))


TYPE_STATEMENTS = """
type Number = int | float
type Pair[T] = tuple[T, T]
type Json = dict[str, Json] | list[Json] | str
type Later = list[NotThere]

class Sums:
    total: Number = 0
    def add(self, pair: Pair[int], json: Json, later: Later) -> Number:
        return sum(pair)
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no `type` statement before Python 3.12")
@pytest.mark.parametrize("module", ["__main__", "a_module_that_is_gone"])
def test_aliases_of_a_type_statement_are_shipped(module: str) -> None:
    namespace: dict[str, Any] = {"__name__": module}
    exec(compile(TYPE_STATEMENTS, "script.py", "exec", dont_inherit=True), namespace)
    arrived = cloudpickle.loads(pickled(namespace["Sums"]()))
    assert arrived.add((1, 2), "", []) == 3
    wanted = arrived.add.__annotations__
    assert wanted["return"].__value__ == int | float
    (parameter,) = wanted["pair"].__origin__.__type_params__
    assert wanted["pair"].__origin__.__value__ == tuple[parameter, parameter]
    assert wanted["json"].__value__ is wanted["later"].__value__ is Any


def test_an_alias_of_a_module_goes_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("typing_extensions")
    source = "from typing_extensions import TypeAliasType\nNumber = TypeAliasType('Number', int)\n"
    (tmp_path / "module_of_aliases.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    number = importlib.import_module("module_of_aliases").Number
    assert cloudpickle.loads(pickled(number)) is number
    monkeypatch.delitem(sys.modules, "module_of_aliases")
    arrived = cloudpickle.loads(pickled(number))
    assert arrived is not number
    assert (arrived.__name__, arrived.__value__) == ("Number", int)


@pytest.mark.skipif(not hasattr(linecache, "_getlines_from_code"), reason="this Python's prompt keeps no lines")
def test_what_is_typed_at_pythons_prompt_goes_with_its_text() -> None:
    """A prompt whose name, as of `python -c`, is that of other code too has none."""
    typed: Any = linecache
    origins = CodeOrigins()
    for name in ("<python-input-97>", "<string>"):
        code = compile(SCRIPT, name, "exec")
        typed._register_code(code, SCRIPT, name)
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(code, names)
        pickled(names["price"], origins)
    assert origins.cells == {"<python-input-97>": SCRIPT}
