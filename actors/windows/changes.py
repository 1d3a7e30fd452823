"""Change: one row of a stream of updates. Flink: RowKind."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...messages import own_record
from ..flow.changelog import ChangeKind


@own_record
class Change(NamedTuple):
    """What `retracting()` windows emit: `record` is a result, added or taken back."""

    kind: ChangeKind
    record: Any
