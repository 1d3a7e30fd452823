"""FailedRecord: what `stream.errors` holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ..operators.collector import OutputTag

ERRORS: Final = OutputTag("errors")


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record whose last try has failed, with `on_error="errors"`."""

    record: Any
    error: str
    """As Python shows it: `TimeoutError: no answer`."""
    tries: int
    key: Any = None
    """Of a keyed operator."""
