"""Checks of single arguments: each returns the value or raises InvalidSetting with what was found and wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...actors.setting_limits import limits_in_words, most_of
from ...messages import RecordTypes, record_types_of_script, refusal_of, register_script_record_types, with_record_types
from ...state.file_locations import unwrapped
from .errors import InvalidSetting

_MOST_OF_A_RATE = 10**12
_FIRST_RECORDS = 100
"""As many are looked into; of the others the first of each type."""


def at_least(name: str, value: Any, minimum: int, most: int | None = None) -> int:
    """An int (not a bool) of `minimum` or more, up to `most`, or what its name says of it: see setting_limits."""
    if type(value) is not int or value < minimum:
        raise InvalidSetting(f"{name}: wanted an integer of at least {minimum}, found {value!r:.80}")
    if value > (most_of(name) if most is None else most):
        limits = limits_in_words(name, minimum) if most is None else f"from {minimum} to {most}"
        raise InvalidSetting(f"{name}: wanted an integer {limits}, found {value!r:.80}")
    return value


def at_least_or_none(name: str, value: Any, minimum: int) -> int | None:
    return None if value is None else at_least(name, value, minimum)


def more_than(name: str, value: Any, bound: float) -> float:
    """A number (not a bool) above `bound`, that is not beyond all limits."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > bound:
        raise InvalidSetting(f"{name}: wanted a number above {bound}, found {value!r:.80}")
    if value > _MOST_OF_A_RATE:
        raise InvalidSetting(f"{name}: wanted a number above {bound}, and up to {_MOST_OF_A_RATE}, found {value!r:.80}")
    return float(value)


def rate(records_per_second: Any) -> float | None:
    """Above 0, or None for as fast as it goes."""
    return None if records_per_second is None else more_than("records_per_second", records_per_second, 0)


def finite_ms(name: str, value: Any) -> float:
    """A duration: a finite number (not a bool) of at least 1 millisecond, and less than a year."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 366 * 86_400_000:
        raise InvalidSetting(f"{name}: wanted a number of milliseconds from 1 to a year, found {value!r:.80}")
    return float(value)


def text(name: str, value: Any) -> str:
    """A string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidSetting(f"{name}: wanted a non-empty string, found {value!r:.80}")
    return value


def path(name: str, value: Any) -> str:
    """A path, of pathlib too, or a URL: its text."""
    try:
        written = unwrapped(value)
    except (TypeError, ValueError) as error:
        raise InvalidSetting(f"{name}: {error}") from None
    if not isinstance(written, str) or not written.strip():
        raise InvalidSetting(f"{name}: wanted a path or URL, found {value!r:.80}")
    return written


def yes_or_no(name: str, value: Any) -> bool:
    """A bool, and nothing that only counts as one: "no" would be true."""
    if type(value) is not bool:
        raise InvalidSetting(f"{name}: wanted True or False, found {value!r:.80}")
    return value


def one_of(name: str, value: Any, allowed: tuple[str, ...], elsewhere: Mapping[str, str] | None = None) -> str:
    """`elsewhere`: what to write in place of names of other libraries, which are in lower case here."""
    if not isinstance(value, str) or value not in allowed:
        wanted = f"one of {', '.join(allowed)}" if len(allowed) > 1 else repr(allowed[0])
        instead = (elsewhere or {}).get(value.lower()) if isinstance(value, str) else None
        raise InvalidSetting(f"{name}: wanted {wanted}, found {value!r:.80}{f': {instead}' if instead else ''}")
    return value


def check_records(name: str, records: Sequence[Any]) -> None:
    """Refuse a record that cannot travel, naming its position and what in it is of which type."""
    register_script_record_types()
    if why := refused_record(records, record_types_of_script()):
        raise InvalidSetting(f"{name}: {why}")


def refused_record(records: Sequence[Any], types: RecordTypes | None) -> str:
    """The first record that cannot travel into a job with these types of the script (None: any), and why; empty: there
    is none, as far as the first 100 and the first of each type tell.
    """
    last = len(records) - 1
    first_of_type = dict(zip(map(type, reversed(records)), range(last, -1, -1), strict=True))
    later = sorted(position for position in first_of_type.values() if position >= _FIRST_RECORDS)
    for position in (*range(min(_FIRST_RECORDS, len(records))), *later):
        if why := with_record_types(types, refusal_of, records[position]):
            return f"item {position} is no record: {why}"
    return ""
