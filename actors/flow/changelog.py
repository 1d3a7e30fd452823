"""Changelogs: streams whose records are changes. Each adds a row to the result or takes one back, as its kind says.

Columns have the kind in the column `kind`, before all others; of tuples it is the first item. Flink: RowKind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

ChangeKind: TypeAlias = Literal["+I", "-U", "+U", "-D"]
"""A new row; the row before an update, taken back; the row after it; a row that is gone."""

KIND: Final = "kind"
"""The column that says what a row of a changelog does."""

INSERT: Final = "+I"
BEFORE: Final = "-U"
AFTER: Final = "+U"
DELETE: Final = "-D"
KINDS: Final[tuple[ChangeKind, ...]] = get_args(ChangeKind)

ADDING: Final = (INSERT, AFTER)
TAKING_BACK: Final = (BEFORE, DELETE)


@dataclass(frozen=True, slots=True)
class Changelog:
    """What holds of the changes at one place of a job.

    `at_once`: how many equal rows there may be at once, or as many as there are of any row in the end, if that is more;
    None: any number. `in_order`: whether all changes of a row come in the order in which they were made.
    """

    at_once: int | None = None
    in_order: bool = True
