"""Another thread that runs in the middle of what looks like one step: a garbage collection lets it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count


@contextmanager
def at_each_collection(act: Callable[[str], object]) -> Iterator[None]:
    """`act` is called with a new name at each collection, and one comes at every fifth object or so."""
    names = map("meanwhile_{}".format, count())

    def run(_phase: str, _info: dict[str, int]) -> None:
        act(next(names))

    thresholds = gc.get_threshold()
    gc.callbacks.append(run)
    gc.set_threshold(5, 5, 5)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(run)
    assert next(names) != "meanwhile_0", "nothing ran meanwhile"
