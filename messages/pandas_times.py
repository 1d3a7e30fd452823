"""Times of pandas, as columns of its frames hold them. They are known by name: pandas need not be installed."""

from __future__ import annotations

from typing import Any

_TIMES = frozenset({"Timestamp", "Timedelta", "NaTType"})


def kind_of_pandas(value: Any) -> str | None:
    """The name of its type, if that is one of pandas' for times. Versions differ in which module it is of."""
    kind = type(value)
    return kind.__name__ if kind.__name__ in _TIMES and kind.__module__.partition(".")[0] == "pandas" else None


def python_time(value: Any) -> Any:
    """The datetime or timedelta that it is, None for NaT. The very value if it has nanoseconds, which Python's times
    do not have, or is no time of pandas.
    """
    match kind_of_pandas(value):
        case "Timestamp" if not value.nanosecond:
            return value.to_pydatetime()
        case "Timedelta" if not value.nanoseconds:
            return value.to_pytimedelta()
        case "NaTType":
            return None
    return value
