"""How a columnar aggregation is described, and whether it fits one that was stored. See schema_fit.py.

A description is plain data: `keys`, the key columns in order; `aggregates`, name to what is computed; `types`, by
column of a partial, or None when they are not known before the first batch. A batch, or a snapshot, tells them;
`windows`, for windows alone: their kind and its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ...messages import StateDescription
from .aggregates import Aggregate

AGGREGATION = "ColumnarAggregate"
"""The kind of the one state that such an operator has."""

STATE_NAME = "columnar aggregation"


class AggregationMisfit(NamedTuple):
    """The first difference."""

    what: str
    declared: str
    stored: str

    def __str__(self) -> str:
        of = f"{self.what.lstrip(', ')}: " if self.what else ""
        return f"{of}declared {self.declared}, stored {self.stored}"


def describe_aggregation(
    keys: Sequence[str],
    aggregates: Mapping[str, Aggregate],
    partial_schema: pa.Schema | None,
    windows: Mapping[str, Any] | None = None,
) -> StateDescription:
    types = None if partial_schema is None else {field.name: str(field.type) for field in partial_schema}
    told = {name: str(aggregate) for name, aggregate in aggregates.items()}
    schema = {"keys": list(keys), "aggregates": told, "types": types}
    if windows is not None:
        schema["windows"] = dict(windows)
    return StateDescription(STATE_NAME, AGGREGATION, schema)


def aggregation_misfit(declared: dict[str, Any], stored: dict[str, Any]) -> AggregationMisfit | None:
    """What keeps a stored aggregation from going on as the declared one; None if nothing does."""
    for what in ("keys", "aggregates"):
        if declared[what] != stored[what]:
            return AggregationMisfit("", f"{what} {declared[what]}", f"{what} {stored[what]}")
    if declared.get("windows") != stored.get("windows"):
        return AggregationMisfit("", _windows_text(declared), _windows_text(stored))
    stored_types = stored["types"] or {}
    for column, kind in (declared["types"] or {}).items():
        found = stored_types.get(column, kind)
        if found != kind:
            return AggregationMisfit(f", {column}", kind, found)
    return None


def _windows_text(described: dict[str, Any]) -> str:
    windows = described.get("windows")
    return "no windows" if windows is None else windows_text(windows)


def windows_text(windows: Mapping[str, Any]) -> str:
    """Windows that are described as plain data, in the words of their user."""
    match windows:
        case {"kind": "sliding", "size": size, "slide": slide, "pane_ms": pane_ms, "offset_ms": offset_ms}:
            every = "" if size == slide else f" every {slide * pane_ms} ms"
            text = f"{'sliding' if every else 'tumbling'} windows of {size * pane_ms} ms{every}"
            return f"{text} from {offset_ms} ms" if offset_ms else text
    return " ".join(f"{what} {value}" for what, value in windows.items())
