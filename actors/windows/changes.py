"""Change: one row of a stream of updates. Flink: RowKind."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from ...messages import own_record

ChangeKind: TypeAlias = Literal["+I", "-U", "+U", "-D"]
"""A new row; the row before an update, taken back; the row after it; a row that is gone."""


@own_record
class Change(NamedTuple):
    """What `retracting()` windows emit: `record` is a result, added or taken back."""

    kind: ChangeKind
    record: Any
