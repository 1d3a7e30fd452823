"""Removals: which records say that a row of a table, or the value of a key, is gone. A sink does the rest."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...actors.flow.changelog import ADDING, TAKING_BACK
from ...actors.flow.records import RecordMismatch


@dataclass(frozen=True, slots=True)
class Removals:
    """`kind`: the column of a changelog that says "+I", "+U": set the row, "-D", "-U": remove it. `deleted`: a column
    that is true where the row is to be removed. One of both at most; with none no record removes anything.
    """

    kind: str | None = None
    deleted: str | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and self.deleted is not None:
            raise ValueError("wanted kind=... or deleted=..., not both: either says that a row is to be removed")

    @property
    def column(self) -> str | None:
        """The one that says it. It is not written."""
        return self.kind if self.kind is not None else self.deleted

    def of(self, said: pa.Array) -> pa.Array:
        """By what that column says: true where there is nothing with this key now. No nulls in it."""
        if self.kind is None:
            return pc.fill_null(said.cast(pa.bool_()), False)
        return pc.is_in(said.cast(pa.string()), pa.array(TAKING_BACK))

    def check(self, said: pa.Array) -> None:
        """Raises RecordMismatch for a kind of change that is none of the four."""
        if self.kind is None:
            return
        unknown = said.filter(pc.invert(pc.is_in(said.cast(pa.string()), pa.array([*ADDING, *TAKING_BACK]))))
        if len(unknown):
            raise RecordMismatch(
                f"column {self.kind!r} says {unknown[0].as_py()!r}, wanted one of "
                f"{', '.join((*ADDING, *TAKING_BACK))}: "
                "what else there is (a TRUNCATE is '-T') is to be handled before the sink"
            )


NO_REMOVALS = Removals()
