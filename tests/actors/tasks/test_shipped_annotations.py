"""Annotations as they are written from Python 3.14 on: of what stands further down, or only a type checker imports."""

from __future__ import annotations

import sys
import threading
import typing
from typing import Any

import cloudpickle
import pytest

from understudy.actors.tasks.shipping import pickled

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are worked out at once")

SCRIPT = """
import threading
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple, TypedDict
from understudy import KeyedOperator, ValueState

if TYPE_CHECKING:
    from nowhere import Missing

lock = threading.Lock()

@dataclass
class Order:
    who: str
    lines: list[Line]
    first: Line | None = None
    before: Order | None = None

@dataclass
class Line:
    count: int

class Place(NamedTuple):
    line: Later

class Options(TypedDict):
    line: Later

class Later:
    pass

@dataclass
class Half:
    line: Line
    other: list[Missing]

class Keep(KeyedOperator):
    last = ValueState(Order)

    def process(self, record: Order, out: Missing) -> None:
        out.append(self.helper(record))

    def helper[T](self, record: T, *, more: Missing = 3) -> T:
        "Its text."
        return record, more, __class__.__name__
"""


@pytest.fixture
def script() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(SCRIPT, "job.py", "exec", dont_inherit=True), names)
    return names


def shipped(value: Any) -> Any:
    return cloudpickle.loads(pickled(value))


def test_a_record_knows_the_types_of_its_fields_where_it_arrives(script: dict[str, Any]) -> None:
    order = shipped(script["Order"])
    hints = typing.get_type_hints(order)
    (line,) = typing.get_args(hints["lines"])
    assert typing.get_type_hints(line) == {"count": int}
    assert hints == {"who": str, "lines": list[line], "first": line | None, "before": order | None}


@pytest.mark.parametrize("name", ["Place", "Options"])
def test_so_do_named_tuples_and_typed_dicts(script: dict[str, Any], name: str) -> None:
    hints = typing.get_type_hints(shipped(script[name]))
    assert hints["line"].__name__ == "Later"


def test_the_variables_of_a_script_stay_where_they_are(script: dict[str, Any]) -> None:
    assert isinstance(script["lock"], type(threading.Lock()))  # which cannot travel
    pickled([script["Order"]("a", [script["Line"](1)]), script["Half"]])


def test_a_name_that_only_a_type_checker_knows_is_left_as_it_is(script: dict[str, Any]) -> None:
    hints = shipped(script["Half"]).__annotations__
    assert hints["line"].__name__ == "Line"
    assert [each.__forward_arg__ for each in typing.get_args(hints["other"])] == ["Missing"]


def test_an_operator_with_such_annotations_does_what_it_did(script: dict[str, Any]) -> None:
    keep, out = shipped(script["Keep"]), []
    keep.process(keep.__new__(keep), "record", out)
    assert out == [("record", 3, "Keep")]
    assert keep.helper.__doc__ == "Its text."
    assert keep.helper.__qualname__ == "Keep.helper"
    assert keep.helper.__annotations__["more"] == typing.ForwardRef("Missing")


def test_what_is_shipped_keeps_its_own_annotations(script: dict[str, Any]) -> None:
    pickled(script["Keep"])
    script["Missing"] = int
    assert script["Keep"].helper.__annotations__["more"] is int


def test_what_has_arrived_is_shipped_on(script: dict[str, Any]) -> None:
    again = shipped(shipped(script["Order"]))
    assert typing.get_type_hints(again)["before"] == again | None
