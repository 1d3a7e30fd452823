"""How often a TaskManager looks for garbage cycles: less often than Python does by itself.

A batch of records is thousands of objects that live for some milliseconds and are in no cycle. Python would look
through them several times a batch, and through all state every now and then.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 20_000
"""The number of new objects that starts a collection: more than a batch of records leaves at a time."""
NEW_OBJECTS_OF_COROUTINES = 200_000
"""The same where operators have coroutines. One that waits is a dozen objects; ten thousand come to more than half of
this. They begin and end in waves, and each would be looked through several times, with nothing found.
"""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Meanwhile collections are rare, and pass over what there was before. The process may go on afterwards."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def rarer_collections() -> None:
    """From now on, until the end of `rare_collections`: some of the process's operators have coroutines."""
    gc.set_threshold(NEW_OBJECTS_OF_COROUTINES, *gc.get_threshold()[1:])
