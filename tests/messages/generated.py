"""Which messages the codec has its short cut for."""

from __future__ import annotations

from understudy.messages.usual_fields import _READERS, _WRITERS


def generated() -> frozenset[type]:
    """The classes whose messages were read, written or prepared for so far."""
    return frozenset(_READERS.keys() | _WRITERS.keys())
