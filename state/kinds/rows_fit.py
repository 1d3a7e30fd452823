"""How rows that are kept by key are described, and whether those stored fit those declared.

A description is plain data: `sides`, for each side of a join, or the one stream, `keys`, its key columns in order, and
`types`, by column; `windows`, of a window join alone: what they are; `rules`, by name: what else made them, as the
bounds of an interval join. Earlier releases describe no rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .aggregation_fit import windows_text

ROWS = "KeyedRows"
"""The kind of the one state that such an operator has."""

ROWS_NAME = "rows by key"


class RowsMisfit(NamedTuple):
    """The first difference."""

    declared: str
    stored: str

    def __str__(self) -> str:
        return f"declared {self.declared}, stored {self.stored}"


def rows_misfit(declared: dict[str, Any], stored: dict[str, Any]) -> RowsMisfit | None:
    """What keeps stored rows from being taken for those declared; None if nothing does."""
    wanted, found = declared["sides"], stored["sides"]
    if len(wanted) != len(found):
        return RowsMisfit(f"rows of {len(wanted)} streams", f"rows of {len(found)} streams")
    for side, (one, other) in enumerate(zip(wanted, found, strict=True), 1):
        for what in ("keys", "types"):
            if one[what] != other[what] or list(one[what]) != list(other[what]):
                where = f"{what} of input {side}"
                return RowsMisfit(f"{where} {one[what]}", f"{where} {other[what]}")
    windows, earlier = declared.get("windows"), stored.get("windows")
    if windows is not None and earlier is not None and windows != earlier:  # earlier versions do not describe it
        return RowsMisfit(windows_text(windows), windows_text(earlier))
    made_by = stored.get("rules", {})
    for what, rule in declared.get("rules", {}).items():
        if made_by.get(what, rule) != rule:
            return RowsMisfit(f"{what} {rule}", f"{what} {made_by[what]}")
    return None
