"""Tracebacks as text: what Python prints, or the same wherever the package lies."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

import pytest

from understudy.actors.traceback_text import (
    chained_traceback_text,
    formatting,
    placeless_traceback,
    traceback_text,
)


def raised_in(folder: Path) -> Exception:
    """What a module `below.here` raises, which lies in this folder."""
    path = folder / "below" / "here.py"
    path.parent.mkdir(parents=True)
    path.write_text("def broken():\n    return 1 / 0\n")
    names = {"__name__": "below.here"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    try:
        names["broken"]()  # type: ignore[operator]
    except ZeroDivisionError as error:
        return error
    raise AssertionError("it does not raise")


def frames_of(error: Exception) -> TracebackType | None:
    """Without that of this test."""
    assert error.__traceback__ is not None
    return error.__traceback__.tb_next


def test_it_is_what_python_prints(tmp_path: Path) -> None:
    error = raised_in(tmp_path)
    assert traceback_text(error, error.__traceback__) == "".join(traceback.format_exception(error))
    assert chained_traceback_text(error) == "".join(traceback.format_exception(error))


def test_a_placeless_one_says_the_same_wherever_the_package_lies(tmp_path: Path) -> None:
    told = set()
    for folder in ("a", "a longer name/and another"):
        error = raised_in(tmp_path / folder)
        with formatting(placeless_traceback):
            told.add(traceback_text(error, frames_of(error)))
    (text,) = told
    assert text == (
        "Traceback (most recent call last):\n"
        '  File "below/here.py", line 2, in broken\n'
        "    return 1 / 0\n"
        "ZeroDivisionError: division by zero\n"
    )


@pytest.mark.parametrize("is_cause", [True, False])
def test_a_placeless_chain_begins_with_what_was_raised_first(is_cause: bool) -> None:
    first, second = ValueError("first"), KeyError("second")
    if is_cause:
        second.__cause__ = first
    else:
        second.__context__ = first
    first.__context__ = second  # as nobody should make it
    with formatting(placeless_traceback):
        assert chained_traceback_text(second) == "ValueError: first\n\nwhich led to:\n\nKeyError: 'second'\n"


def test_the_format_ends_with_its_block() -> None:
    error = ValueError("x")
    with formatting(placeless_traceback):
        pass
    assert traceback_text(error, None) == "".join(traceback.format_exception(type(error), error, None))
