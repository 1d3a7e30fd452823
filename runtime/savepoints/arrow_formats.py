"""Formats of keyed snapshots whose rows are Arrow: which tables one has, and what key groups hold of them.

A snapshot has a header, which says which tables there are. What it has of a table and a key group is a part; several
runs have a part each, and say together which rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from ...messages import KeyedStateHandle, unpack_plain
from ...state.backends.backend import ReadState
from ...state.columnar import group_sections, rows_format, section_runs
from ...state.columnar.rows_format import SideRows, side_of
from ...state.kinds.aggregation_fit import AGGREGATION, STATE_NAME
from ...state.kinds.rows_fit import ROWS, ROWS_NAME
from .stored_table import StoredTable

Header = Mapping[str, Any]

_OF_INPUT = f"{ROWS_NAME} of input "


def is_side(name: str) -> bool:
    """Whether this table is one of several that an operator keeps rows in."""
    return name.startswith(_OF_INPUT)


class ArrowFormat(Protocol):
    """All raise a StateError, LookupError, TypeError, ValueError or OSError for what is no such snapshot."""

    def tables(self, header: Header) -> Iterator[StoredTable]: ...

    def part(self, header: Header, name: str, data: bytes) -> Any:
        """What these bytes of a key group have of a table; None: nothing."""

    def rows(self, header: Header, name: str, parts: Sequence[Any]) -> Sequence[pa.RecordBatch]:
        """What is left of these parts of one key group, the oldest first; `header`: that of the newest snapshot."""
        ...

    def in_one(self, handle: KeyedStateHandle, read: ReadState) -> KeyedStateHandle:
        """What the runs in this handle hold, as one snapshot, inline."""
        ...


class Columnar:
    """Of columnar aggregations and windows: one table."""

    def tables(self, header: Header) -> Iterator[StoredTable]:
        schema = {what: header[what] for what in ("keys", "aggregates", "windows") if what in header}
        yield StoredTable(STATE_NAME, AGGREGATION, [schema], is_arrow=True, keys=tuple(header["keys"]))

    def part(self, header: Header, name: str, data: bytes) -> pa.RecordBatch:
        return group_sections.rows_of_section(header, pa.py_buffer(data))

    def rows(self, header: Header, name: str, parts: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
        return section_runs.rows_left(parts, header)

    def in_one(self, handle: KeyedStateHandle, read: ReadState) -> KeyedStateHandle:
        return section_runs.in_one(handle, read)


class RowsBySide:
    """Of operators that keep rows by key: a table for each input."""

    def tables(self, header: Header) -> Iterator[StoredTable]:
        for name, each in zip(_names(header), header["rows"]["sides"], strict=True):
            yield StoredTable(name, ROWS, [each], is_arrow=True, keys=tuple(each["keys"]))

    def part(self, header: Header, name: str, data: bytes) -> SideRows | None:
        return side_of(header, unpack_plain(data), _names(header).index(name))

    def rows(self, header: Header, name: str, parts: Sequence[SideRows]) -> Sequence[pa.RecordBatch]:
        found = rows_format.newest_rows(parts)
        if found is None:
            return ()
        own = list(header["rows"]["sides"][_names(header).index(name)]["types"])
        names = [*own, *(beside + "'" * (beside in own) for beside in ("time", "mark"))]
        return (pa.RecordBatch.from_arrays(found.columns[: len(names)], names=names),)

    def in_one(self, handle: KeyedStateHandle, read: ReadState) -> KeyedStateHandle:
        return rows_format.in_one(handle, read)


def _names(header: Header) -> list[str]:
    """Of the tables, side by side."""
    number = len(header["rows"]["sides"])
    return [ROWS_NAME] if number == 1 else [f"{_OF_INPUT}{side}" for side in range(1, number + 1)]


ARROW_FORMATS: Final[Mapping[str, ArrowFormat]] = {
    group_sections.FORMAT_NAME: Columnar(),
    rows_format.FORMAT_NAME: RowsBySide(),
}
"""By what a handle says of the format."""
