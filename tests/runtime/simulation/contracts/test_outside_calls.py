"""A killed thread does nothing outside any more, however often its code tries to put things in order."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from understudy.runtime.simulation.contracts.outside_calls import CallPlan, Fault, Killed, OutsideCalls

LIBRARY = """
done = []

def act(what):
    done.append(what)

class Lasting:
    def __enter__(self):
        done.append("entered")
        return self

    def __exit__(self, *_):
        done.append("left")
"""


@pytest.fixture
def library() -> Any:
    module = ModuleType("outside_of_this")
    exec(LIBRARY, vars(module))
    return module


def killed(outside: str, number: int, when: Any, connector: Callable[[], None]) -> OutsideCalls:
    """The calls of a connector that was killed at one of them."""
    calls = OutsideCalls(CallPlan([outside], (), Fault(number, when, "kill"), lambda: None, RuntimeError))
    calls.install()
    try:
        with pytest.raises(Killed):
            connector()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("when", ["before", "after"])
def test_whatever_a_killed_thread_does_to_put_things_in_order_is_refused(library: Any, when: Any) -> None:
    def connector() -> None:
        try:
            try:
                with library.Lasting():
                    library.act("write")
            finally:
                library.act("roll back")
        except BaseException:
            library.act("close")
            raise

    calls = killed("outside_of_this", 2, when, connector)
    assert library.done == ["entered", "write"][: 1 if when == "before" else 2]
    assert calls.is_dead


@pytest.mark.parametrize("when", ["before", "after"])
def test_so_it_is_with_a_library_in_c(when: Any) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (n)")

    def connector() -> None:
        try:
            try:
                connection.execute("INSERT INTO t VALUES (1)")
            finally:
                connection.commit()
        except BaseException:
            connection.close()
            raise

    killed("sqlite3", 1, when, connector)
    assert connection.in_transaction == (when == "after")
    connection.close()
