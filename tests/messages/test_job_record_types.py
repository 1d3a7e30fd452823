"""A script's record types as one job has them: a cell of a notebook that is run again replaces them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from understudy.messages import (
    UnsupportedValue,
    pack_plain,
    record_types,
    record_types_of_script,
    register_script_record_types,
    unpack_plain,
    with_record_types,
)
from understudy.messages.job_record_types import types_of_job

HEAD = "from dataclasses import dataclass\nfrom enum import Enum\nfrom typing import NamedTuple\n"
EVENT = HEAD + "@dataclass\nclass Event:\n    a: int\n    def double(self): return self.a * 2\n"
Cell = Callable[[str, str], Any]


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """Runs code as a cell of a notebook does, and gives what stands under a name."""
    main = sys.modules["__main__"]
    monkeypatch.setattr(record_types, "_registered", {})

    def run(code: str, name: str = "Event") -> Any:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(code, names)
        monkeypatch.setattr(main, name, names[name], raising=False)
        return names[name]

    return run


def test_what_a_job_has_packed_is_read_with_its_own_class(cell: Cell) -> None:
    before = cell(EVENT.replace("a: int", "a: int\n    b: int"), "Event")
    types = record_types_of_script()
    packed = with_record_types(types, pack_plain, [before(1, 2)])
    cell(EVENT, "Event")
    register_script_record_types()
    (read,) = with_record_types(types, unpack_plain, packed)
    assert type(read) is before
    assert (read.a, read.b) == (1, 2)


@pytest.mark.parametrize(
    "changed",
    [
        EVENT.replace("a: int", "a: str"),
        EVENT.replace("a: int", "a: int\n    b: int = 0"),
        EVENT.replace("a: int", "a: int = 7"),
        EVENT.replace("* 2", "* 3"),
        EVENT.replace("    def", "    def __post_init__(self): self.a += 1\n    def"),
        HEAD + "class Event(NamedTuple):\n    a: int",
    ],
    ids=["type", "field", "default", "method", "another method", "kind"],
)
def test_a_record_of_the_other_class_is_refused(cell: Cell, changed: str) -> None:
    before = cell(EVENT, "Event")
    types = record_types_of_script()
    after = cell(changed, "Event")
    for job, kind in ((types, after), (record_types_of_script(), before)):
        with pytest.raises(UnsupportedValue, match=r"at .0.: there are two classes Event, as its definition was run"):
            with_record_types(job, pack_plain, [kind(1)])


PLACE = HEAD + "class Event(NamedTuple):\n    a: int\n"
CHILD = HEAD + "@dataclass\nclass Base:\n    a: int\nclass Event(Base):\n    pass\n"


@pytest.mark.parametrize(
    ("code", "was", "becomes"),
    [
        (PLACE, "a: int", "a: str"),
        (EVENT.replace("(self)", "(self, by=2)"), "by=2", "by=3"),
        (EVENT + "    rate = 3\n", "rate = 3", "rate = 4"),
        (EVENT + "    @property\n    def half(self): return self.a / 2\n", "/ 2", "/ 3"),
        (EVENT + "    @classmethod\n    def one(cls): return cls(1)\n", "cls(1)", "cls(2)"),
        (CHILD, "Base", "Other"),
    ],
    ids=["type of a named tuple", "default of a method", "constant", "property", "class method", "base"],
)
def test_one_difference_is_enough_to_tell_two_classes_of_one_name_apart(
    cell: Cell, code: str, was: str, becomes: str
) -> None:
    cell(code, "Event")
    types = record_types_of_script()
    after = cell(code.replace(was, becomes), "Event")
    with pytest.raises(UnsupportedValue, match="there are two classes Event"):
        with_record_types(types, pack_plain, [after(1)])


def test_who_packs_for_another_job_in_between_goes_on_with_the_first_ones_types(cell: Cell) -> None:
    cell(EVENT, "Event")
    types = record_types_of_script()

    def work() -> object:
        with_record_types({}, pack_plain, 1)
        return types_of_job()

    assert with_record_types(types, work) is types
    assert types_of_job() is None


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (EVENT, "Event(1)"),
        (EVENT.replace("@dataclass", "@dataclass(frozen=True, slots=True)"), "Event(1)"),
        (EVENT.replace("self.a * 2", "sum(map(lambda each: each * 2, {self.a} | {1, 2}))"), "Event(1)"),
        (HEAD + "class Event(NamedTuple):\n    a: int = 7", "Event(1)"),
        (HEAD + "class Event(Enum):\n    A = 1", "Event.A"),
        ("import attrs\n@attrs.define\nclass Event:\n    a: int = 7", "Event(1)"),
        ("from pydantic import BaseModel\nclass Event(BaseModel):\n    a: int = 7", "Event(a=1)"),
    ],
    ids=["dataclass", "slots", "function within", "named tuple", "enum", "attrs", "pydantic"],
)
def test_a_cell_that_is_run_again_unchanged_changes_nothing(cell: Cell, code: str, value: str) -> None:
    cell(code, "Event")
    types = record_types_of_script()
    after = cell(f"# in other lines\n{code}", "Event")
    assert with_record_types(types, pack_plain, eval(value, {"Event": after}))


def test_a_class_that_is_defined_after_the_submit_is_refused(cell: Cell) -> None:
    after = cell(EVENT, "Event")
    register_script_record_types()
    with pytest.raises(UnsupportedValue, match="class Event was defined after the job was submitted: submit it again"):
        with_record_types({}, pack_plain, after(1))


def test_a_notebooks_own_names_of_earlier_classes_do_not_count(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """`_3` is what cell 3 has shown, and may stand behind the class that has replaced it."""
    before = cell(EVENT, "Event")
    monkeypatch.setattr(sys.modules["__main__"], "_3", before, raising=False)
    after = cell(EVENT.replace("a: int", "b: int"), "Event")
    assert record_types_of_script()["__main__:Event"] is after
    register_script_record_types()
    assert type(unpack_plain(pack_plain(after(1)))) is after
