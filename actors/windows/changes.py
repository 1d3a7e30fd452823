"""Change: one row of a stream of updates. Flink: RowKind."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

ChangeKind: TypeAlias = Literal["+I", "-U", "+U", "-D"]
"""A new row; the row before an update, taken back; the row after it; a row that is gone."""


class Change(NamedTuple):
    """What `retracting()` windows emit: `record` is a result, added or taken back."""

    kind: ChangeKind
    record: Any
