"""Several threads may submit at once: on CPython 3.11 `ast.parse` of two of them together can raise SystemError."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from types import ModuleType
from unittest import mock

import pytest

from understudy.runtime.clusters.replaced_code import replaced_in

TEXT = b"def fetch(n):\n    return n\n\n" + (b"x = [" + b"(1, (2, 3)), " * 300 + b"]\n") * 5


class Slow:
    """Garbage that lets another thread run, when it is collected in the middle of a parse."""

    def __del__(self) -> None:
        time.sleep(0)


@pytest.fixture
def often_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("often_collected")
def test_threads_that_look_at_once_all_find_the_same() -> None:
    module = ModuleType("service")
    module.fetch = mock.Mock()  # type: ignore[attr-defined]
    found: list[object] = []

    def look() -> None:
        for _ in range(10):
            slow = Slow()
            slow.itself = slow  # type: ignore[attr-defined]
            del slow
            try:
                found.append(replaced_in(module, lambda: TEXT))
            except SystemError as error:
                found.append(error)

    threads = [threading.Thread(target=look) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [["fetch"]] * 60
