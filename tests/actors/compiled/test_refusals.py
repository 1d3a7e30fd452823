"""What cannot be compiled is told at submit, with the line and in words of the user's own program."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import KeyedOperator, ListState, OperatorListState, ValueState
from understudy.actors.compiled import CannotCompile, NullRead, NumbaMissing, emitted_schema
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.key_selector import NullKey

from .operators import Running
from .stage import Stage, interpreted

pytest.importorskip("numba")

SCHEMA = pa.schema({"key": pa.string(), "n": pa.int32(), "f": pa.float64(), "name": pa.string()})
HUGE = 2**70
SHARED = [1, 2]


class Base(KeyedOperator):
    compiled = True
    count = ValueState(int, default=0)
    pair = ValueState(tuple, default=(0, 0.0))
    maybe = ValueState(float)
    label = "text"


def compares_text(self: Any, record: Any, out: Any) -> None:
    out.collect(record.name == "x")


def measures_text(self: Any, record: Any, out: Any) -> None:
    out.collect(len(record.name))


def asks_for_none(self: Any, record: Any, out: Any) -> None:
    out.collect(record.name is None)


def keeps_text(self: Any, record: Any, out: Any) -> None:
    self.count.update(record.name)


def narrows(self: Any, record: Any, out: Any) -> None:
    self.count.update(record.f)


def has_too_few(self: Any, record: Any, out: Any) -> None:
    self.pair.update((1,))


def mixes(self: Any, record: Any, out: Any) -> None:
    out.collect((1, True))
    out.collect((1, 2))


def mixes_forms(self: Any, record: Any, out: Any) -> None:
    out.collect(1)
    out.collect((1,))


def collects_none(self: Any, record: Any, out: Any) -> None:
    out.collect(self.maybe.value())


def collects_text(self: Any, record: Any, out: Any) -> None:
    out.collect("late")


def misspells(self: Any, record: Any, out: Any) -> None:
    out.collect(record.nnn)


def takes_an_item(self: Any, record: Any, out: Any) -> None:
    out.collect(record["nn"])


def sets_an_attribute(self: Any, record: Any, out: Any) -> None:
    self.total = record.n


def reads_a_text(self: Any, record: Any, out: Any) -> None:
    out.collect(self.label == "x")


def uses_a_large_number(self: Any, record: Any, out: Any) -> None:
    out.collect(HUGE)


def uses_a_list(self: Any, record: Any, out: Any) -> None:
    out.collect(SHARED[0])


def sums(self: Any, record: Any, out: Any) -> None:
    out.collect(sum((1, 2)))


def catches(self: Any, record: Any, out: Any) -> None:
    try:
        out.collect(1 // record.n)
    except ZeroDivisionError:
        out.collect(0)


def names_at_once(self: Any, record: Any, out: Any) -> None:
    if (number := record.n) > 3:
        out.collect(number)


def emits(self: Any, record: Any, out: Any) -> None:
    out.emit(record)


@pytest.mark.parametrize(
    ("process", "line", "told"),
    [
        (compares_text, 1, "column 'name' is of type string: a compiled function can only pass it on"),
        (measures_text, 1, "column 'name' is of type string: a compiled function can only pass it on"),
        (asks_for_none, 1, "column 'name' is of type string: a compiled function can only pass it on"),
        (keeps_text, 1, "self.count is of type int, update gives column 'name' of type string"),
        (narrows, 1, "self.count is of type int, update gives float: declare a default of 0.0"),
        (has_too_few, 1, "self.pair.update takes 2 items, found 1"),
        (mixes, 2, "all records that are collected must be alike, found (int, bool) and (int, int)"),
        (mixes_forms, 2, "all records that are collected must be alike, found int and (int)"),
        (collects_none, 1, "item value is float or None"),
        (collects_text, 1, "item value is str"),
        (misspells, 1, "record has no column 'nnn'; it has key, n, f, name"),
        (takes_an_item, 1, "record has no item 'nn'; its columns are key, n, f, name; did you mean 'n'?"),
        (sets_an_attribute, 1, "total is set: what a function remembers must be state"),
        (reads_a_text, 1, "self.label cannot be used: a compiled function sees self's numbers and states"),
        (uses_a_large_number, 1, "HUGE is 1180591620717411303424, which does not fit into 64 bits"),
        (uses_a_list, 1, "it uses SHARED, of type list"),
        (sums, 1, "it uses the function sum"),
        (catches, 3, "a compiled function can catch Exception, and no narrower class"),
        (names_at_once, 1, "a value that is given a name and used at once: write the assignment in a line before"),
        (emits, 1, "out.emit: a compiled function has only out.collect"),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_the_line_and_the_reason_are_told_at_submit(process: Callable[..., None], line: int, told: str) -> None:
    cls = type("Op", (Base,), {"process": process})
    with pytest.raises(CannotCompile) as raised:
        Stage(cls(), schema=SCHEMA)
    text = str(raised.value)
    assert told in text
    assert text.startswith(
        f"{process.__qualname__} cannot be compiled: line {process.__code__.co_firstlineno + line}: "
    )
    assert "\n" not in text


def test_without_a_known_schema_it_is_told_with_the_first_batch() -> None:
    stage = Stage(type("Op", (Base,), {"process": compares_text})())
    with pytest.raises(CannotCompile, match="can only pass it on"):
        stage.process(pa.record_batch({"key": ["a"], "name": ["b"]}))


def test_what_no_input_makes_possible_is_told_without_a_schema() -> None:
    def process(self: Any, record: Any, out: Any) -> None: ...

    def generator(self: Any, record: Any, out: Any) -> Any:
        yield 1

    for body, told in (
        ({"process": process, "inputs": 2}, "a compiled operator has one"),
        ({"process": process, "process_batch": process}, "defines process_batch"),
        ({"process": generator}, "generator"),
        ({}, "is no plain method"),
        ({"process": process, "items": ListState(int)}, "ListState of list\\[int\\]|ListState"),
        ({"process": process, "texts": ValueState(str)}, "the state of a compiled operator is"),
    ):
        cls = type("Op", (KeyedOperator,), {"compiled": True, **body})
        with pytest.raises(CannotCompile, match=told):
            emitted_schema(cls(), None)


def test_a_list_state_of_the_operator_is_left_to_python() -> None:
    class WithList(Running):
        notes = OperatorListState(int)

        def on_checkpoint(self, checkpoint_id: Any) -> None:
            self.notes.update([int(checkpoint_id)])

    stage = Stage(WithList())
    stage.process(pa.record_batch({"key": ["a"], "n": [1]}))
    stage.operator.on_checkpoint(7)  # type: ignore[arg-type]
    assert stage.operator.notes.get() == [7]  # type: ignore[attr-defined]


def test_a_null_is_told_only_where_it_is_read() -> None:
    class Reads(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            if record.guard > 0:
                out.collect((record.n, record.name))

    columns = {"key": ["a"] * 3, "n": [1, None, None], "guard": [1, 0, 1], "name": [None, "x", "y"]}
    given = pa.record_batch(columns)
    stage = Stage(Reads())
    assert stage.records(given.slice(0, 2)) == Stage(interpreted(Reads)()).records(given.slice(0, 2)) == [(1, None)]
    with pytest.raises(UserCodeError) as raised:
        stage.process(given)
    assert raised.value.record_position == 4
    assert isinstance(raised.value.__cause__, NullRead)
    assert str(raised.value.__cause__) == "column 'n' is null here: a compiled function has no None"


def test_a_key_that_is_null_is_told_as_for_an_interpreted_operator() -> None:
    given = pa.record_batch({"key": ["a", None], "n": [1, 2]})
    told = []
    for cls in (Running, interpreted(Running)):
        with pytest.raises(UserCodeError) as raised:
            Stage(cls()).process(given)
        assert isinstance(raised.value.__cause__, NullKey)
        told.append((raised.value.record_position, str(raised.value.__cause__)))
    assert told[0] == told[1]


def test_an_exception_of_the_user_is_the_cause_at_its_record() -> None:
    class Strict(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            if record.n < 0:
                raise KeyError("negative")
            out.collect(record.n)

    stage = Stage(Strict())
    assert stage.records(pa.record_batch({"key": ["a", "b"], "n": [1, 2]})) == [1, 2]
    with pytest.raises(UserCodeError) as raised:
        stage.process(pa.record_batch({"key": ["a", "b"], "n": [3, -1]}))
    assert raised.value.record_position == 3
    assert isinstance(raised.value.__cause__, KeyError)
    assert raised.value.__cause__.args == ("negative",)


def test_the_schema_of_what_is_collected_is_known_at_submit() -> None:
    assert Stage(Running(), schema=SCHEMA).schema == pa.schema(
        {"_1": pa.string(), "_2": pa.int64(), "_3": pa.int64(), "_4": pa.int64()}
    )


def test_without_numba_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(NumbaMissing, match=re.escape("pip install 'understudy[compiled]'")):
        emitted_schema(Running(), None)


def test_numba_is_not_imported_before_something_is_compiled() -> None:
    code = "import sys, understudy, understudy.actors.compiled; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
