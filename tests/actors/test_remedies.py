"""What an error's own text leaves open, the failure says: what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from understudy.actors.failure import describe


def _imports() -> None:
    import a_library_that_is_nowhere  # type: ignore[import-not-found]  # noqa: F401


def _reads_a_dict_by_attribute() -> Any:
    record: Any = {"delay": 1}
    return record.delay


@pytest.mark.parametrize(
    ("fail", "text"),
    [
        (_imports, "install it where TaskManagers run"),
        (_imports, sys.executable),
        (_reads_a_dict_by_attribute, "write record['delay']"),
    ],
)
def test_the_failure_says_what_to_do(fail: Callable[[], Any], text: str) -> None:
    with pytest.raises((ImportError, AttributeError)) as raised:
        fail()
    assert text in describe(raised.value).error_message


def test_an_error_that_says_all_itself_is_left_alone() -> None:
    assert describe(ValueError("as it is")).error_message == "as it is"
