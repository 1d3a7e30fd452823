"""Kinds of keys: keys of two kinds are never equal, as "12" and 12."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

_KINDS: Final = {
    **dict.fromkeys((int, float, bool, Decimal, Fraction), "numbers"),
    str: "texts",
    bytes: "bytes",
    UUID: "UUIDs",
    date: "dates",
    datetime: "datetimes",
}


def kind_of_key(key: Any) -> str:
    """In words, as "texts" or "tuples of texts, numbers"; empty: nothing is known of it, as of a record."""
    if type(key) is tuple:
        kinds = [kind_of_key(each) for each in key]
        return f"tuples of {', '.join(kinds)}" if all(kinds) else ""
    return _KINDS.get(type(key), "")
