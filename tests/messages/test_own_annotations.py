"""A class's own annotations are found on each Python, whether names in them can be resolved or not."""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import Any

import pytest

from understudy.messages.own_annotations import own_annotations, signature_of

CLASSES = textwrap.dedent(
    """
    class Base:
        a: int

    class Child(Base):
        b: "int"
        c: str = "x"

    class Bare(Base):
        d = 3
    """
)


def _classes(future: str = "") -> dict[str, Any]:
    """As a program has them whose annotations are evaluated: this file's are texts."""
    names: dict[str, Any] = {}
    exec(compile(future + CLASSES, "<program>", "exec", dont_inherit=True), names)
    return names


def test_only_those_of_the_class_itself_in_their_order() -> None:
    names = _classes()
    assert list(own_annotations(names["Child"])) == ["b", "c"]
    assert own_annotations(names["Child"])["c"] is str
    assert dict(own_annotations(names["Base"])) == {"a": int}
    assert not own_annotations(names["Bare"])


def test_texts_are_texts() -> None:
    names = _classes("from __future__ import annotations\n")
    assert dict(own_annotations(names["Child"])) == {"b": "'int'", "c": "str"}


def test_a_name_that_cannot_be_resolved_is_no_error() -> None:
    class Local:
        there: OnlyForTypeCheckers  # type: ignore[name-defined]  # noqa: F821

    assert list(own_annotations(Local)) == ["there"]


FUNCTION = """
def found(record: OnlyForTypeCheckers, out: int = 3) -> OnlyForTypeCheckers: ...
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are worked out at once")
def test_nor_is_one_of_a_function() -> None:
    names: dict[str, Any] = {}
    exec(compile(FUNCTION, "<program>", "exec", dont_inherit=True), names)
    assert str(signature_of(names["found"])) == "(record: 'OnlyForTypeCheckers', out: int = 3) -> 'OnlyForTypeCheckers'"
    names["OnlyForTypeCheckers"] = str
    assert signature_of(names["found"]).parameters["record"].annotation is str


def test_a_signature_is_that_of_inspect() -> None:
    assert signature_of(textwrap.indent) == inspect.signature(textwrap.indent)
