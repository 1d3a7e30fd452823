"""FailedRecord: what `stream.errors` holds."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ...messages import own_record
from ..operators.collector import OutputTag

ERRORS: Final = OutputTag("errors")


@own_record
class FailedRecord(NamedTuple):
    """A record whose last try has failed, with `on_error="errors"`. It may be collected, sent and kept in state."""

    record: Any
    error: str
    """As Python shows it: `TimeoutError: no answer`."""
    tries: int
    key: Any = None
    """Of a keyed operator."""
