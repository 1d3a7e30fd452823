"""Event times out of records: of a column of an Arrow batch, a field of Python records, or what a function returns.

An event time is a number of milliseconds since 1970-01-01 00:00 UTC. Where records have a date and time instead it is
worked out: without a time zone it counts as UTC, and parts of a millisecond are dropped, towards the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ...messages import shown
from ..errors import UnusableRecord
from ..flow.elements import Times

_MS_PER_DAY = 86_400_000
_PER_MS = {"us": 1_000, "ns": 1_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)

_FURTHEST_MS = 2**61
"""From 1970. Windows and bounds around times within have 64 bits, and their panes of a millisecond lie between
FIRST_BOUND and LAST_BOUND.
"""


class UnusableTime(UnusableRecord):
    """A record's event time is missing, or is no time."""


def times_of(column: pa.Array, name: str) -> Times:
    """The times in a column of integers (ms), timestamps or dates. Raises UnusableTime."""
    return _checked(_numbers_of(column, name), f"the time column {name!r}")


def _checked(times: Times, what: str) -> Times:
    """Raises UnusableTime for times at the edges of 64 bits."""
    if not len(times) or (times.max() <= _FURTHEST_MS and times.min() >= -_FURTHEST_MS):
        return times
    position = int(np.flatnonzero((times > _FURTHEST_MS) | (times < -_FURTHEST_MS))[0])
    raise UnusableTime(
        f"{what} is {times[position]} at record {position} of the batch: wanted milliseconds since 1970, from "
        f"{-_FURTHEST_MS} to {_FURTHEST_MS}; filter out records whose time stands for 'none' or 'never'"
    )


def _numbers_of(column: pa.Array, name: str) -> Times:
    if column.null_count:
        position = column.is_null().to_pylist().index(True)
        raise UnusableTime(
            f"the time column {name!r} is null at record {position} of the batch: every record needs an event time; "
            "filter such records out, or fill them, before assign_timestamps"
        )
    kind = column.type
    if pt.is_int64(kind):
        return column.to_numpy()  # type: ignore[no-any-return]
    if pt.is_timestamp(kind):
        numbers = column.view(pa.int64()).to_numpy()
        return numbers * 1_000 if kind.unit == "s" else numbers // _PER_MS.get(kind.unit, 1)  # type: ignore[no-any-return]
    if pt.is_date32(kind):
        return column.view(pa.int32()).to_numpy().astype(np.int64) * _MS_PER_DAY  # type: ignore[no-any-return]
    if pt.is_date64(kind):
        return column.view(pa.int64()).to_numpy()  # type: ignore[no-any-return]
    if pt.is_integer(kind) and not pt.is_uint64(kind):
        return column.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    raise UnusableTime(unusable_column(name, kind))


def unusable_column(name: str, kind: pa.DataType) -> str:
    """The error for a column of a type that cannot be an event time."""
    return (
        f"the time column {name!r} has type {kind}: wanted whole milliseconds since 1970 (int64), a timestamp or a "
        "date; convert it before assign_timestamps"
    )


def can_be_time(kind: pa.DataType) -> bool:
    """Whether a column of this type can be the time column."""
    return pt.is_timestamp(kind) or pt.is_date(kind) or (pt.is_integer(kind) and not pt.is_uint64(kind))


def times_of_list(values: Sequence[Any], what: str) -> Times:
    """The same for Python values: ints, datetimes, dates. Raises UnusableTime with the position of the first misfit."""
    if set(map(type, values)) <= {int}:
        try:
            return _checked(np.fromiter(values, np.int64, len(values)), what)
        except OverflowError:
            pass
    times = np.fromiter((_time_of(value, what, position) for position, value in enumerate(values)), np.int64)
    return _checked(times, what)


def _conversion(value: Any) -> str:
    """The remedy for a value that is no time yet, as the end of a text."""
    if isinstance(value, float):
        seconds = 1e8 < abs(value) < 1e11  # from 1973 to 5138
        return ": map it to int(time * 1000) first, if it is in seconds" if seconds else ": map it to int(time) first"
    if isinstance(value, str):
        return ": map it to datetime.fromisoformat(time), or to int(time), first"
    return ""


def _time_of(value: Any, what: str, position: int) -> int:
    if isinstance(value, datetime):
        return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MS
    if isinstance(value, date):
        return (value - _EPOCH.date()).days * _MS_PER_DAY
    if hasattr(value, "__index__") and not isinstance(value, bool) and -(2**63) < int(value) < 2**63 - 1:
        return int(value)
    if value is None:
        wanted = "every record needs an event time; filter such records out before assign_timestamps"
    else:
        wanted = f"wanted whole milliseconds since 1970 as an int, or a datetime{_conversion(value)}"
    raise UnusableTime(f"{what} is {shown(value)} ({type(value).__name__}) at record {position} of the batch: {wanted}")
