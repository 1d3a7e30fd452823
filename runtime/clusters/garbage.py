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
