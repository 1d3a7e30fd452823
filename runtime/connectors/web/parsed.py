"""What comes over the web as records, up to the first that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import UnreadableInput

M = TypeVar("M")


def parsed(
    messages: Sequence[M], parse: Callable[[M], Any], named: Callable[[M], str]
) -> tuple[list[Any], UnreadableInput | None]:
    """The records of those that stand before the first that `parse` refuses; and the error that names it."""
    records: list[Any] = []
    for message in messages:
        try:
            records.append(parse(message))
        except (ValueError, RecursionError) as error:
            problem = UnreadableInput(f"{named(message)}: {error}")
            problem.__cause__ = error
            return records, problem
    return records, None
