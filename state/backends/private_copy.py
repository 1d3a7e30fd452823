"""Copies of values that may be changed in place, for those who look at state while somebody else may write."""

from __future__ import annotations

from copy import deepcopy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from ...messages import DictRow

MISSING: Final = type("Missing", (), {"__repr__": lambda _: "MISSING"})()
"""Stands where nothing is held."""

IMMUTABLE: Final = frozenset(
    {bool, int, float, str, bytes, type(None), datetime, date, time, timedelta, Decimal, UUID, complex, type(MISSING)}
)

CHANGEABLE: Final = frozenset({dict, list, set, DictRow})
"""Of what records and accumulators are made of, what is quick to copy and may be changed in place."""


def private_copy(value: Any) -> Any:
    """A deep copy, quick for lists, dicts and tuples of immutable values; the value itself if nothing in it changes."""
    kind = type(value)
    if kind is dict:  # before all else, and without a comprehension where it holds nothing to be copied: records do not
        for item in value.values():
            if type(item) not in IMMUTABLE:
                return {key: item if type(item) in IMMUTABLE else private_copy(item) for key, item in value.items()}
        return value.copy()
    if kind in IMMUTABLE:
        return value
    if kind is list:
        return [item if type(item) in IMMUTABLE else private_copy(item) for item in value]
    if kind is DictRow:
        return DictRow(private_copy(dict(value)))
    if isinstance(value, tuple) and IMMUTABLE.issuperset(map(type, value)) and not hasattr(value, "__dict__"):
        return value
    if kind is tuple:
        return tuple([item if type(item) in IMMUTABLE else private_copy(item) for item in value])
    return deepcopy(value)


def is_same(copy: Any, value: Any) -> bool:
    """False for what does not compare, as arrays."""
    try:
        return (copy == value) is True
    except (TypeError, ValueError):
        return False


def is_changed(copy: Any, value: Any) -> bool:
    """Whether a private copy of the value is another one by now; False for what does not compare."""
    return not is_same(copy, value) and is_same(private_copy(value), value)
