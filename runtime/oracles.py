"""What must hold of a job's committed output, whatever happened to its cluster. Pure functions over what was seen.

Output is compared as a multiset: no component promises the order in which subtasks commit. Of a changelog (a `kind` of
"+I", "-U", "+U" or "-D" in each record) the rows count that it leaves: which changes a batch makes at once depends on
what came together. The simulator and the chaos runs on real processes judge by the same functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from ..messages.row import Row

_SHOWN = 5
_ADDING = ("+I", "+U")
_KINDS = frozenset({*_ADDING, "-U", "-D"})


@dataclass(frozen=True, slots=True)
class Violation:
    """An oracle that broke: its name, and what it found and wanted."""

    oracle: str
    problem: str

    def __str__(self) -> str:
        return f"{self.oracle}: {self.problem}"


def exactly_once(committed: Iterable[Any], expected: Iterable[Any]) -> Violation | None:
    """Each expected record once, and nothing else."""
    committed, expected = list(committed), list(expected)
    found, wanted = multiset(committed), multiset(expected)
    lost, extra = wanted - found, found - wanted
    if not lost and not extra:
        return None
    if (left := rows_left(expected)) is not None and rows_left(committed) == left:
        return None
    return Violation("exactly-once", " and ".join(_described(lost, "lost") + _described(extra, "too many")))


def at_least_once(committed: Iterable[Any], expected: Iterable[Any]) -> Violation | None:
    """Each expected record, perhaps repeated; and no record that was not expected."""
    found, wanted = multiset(committed), multiset(expected)
    lost = wanted - found
    unknown = Counter({record: times for record, times in found.items() if record not in wanted})
    if not lost and not unknown:
        return None
    return Violation("at-least-once", " and ".join(_described(lost, "lost") + _described(unknown, "unknown")))


def nothing_extra(committed: Iterable[Any], expected: Iterable[Any]) -> Violation | None:
    """What holds at every moment of an exactly-once job, and of one that was lost: no record more than is expected."""
    committed, expected = list(committed), list(expected)
    if expected and rows_left(expected) is not None and rows_left(committed) is not None:
        return None  # they may be on the way to the rows wanted
    extra = multiset(committed) - multiset(expected)
    return Violation("nothing-extra", " and ".join(_described(extra, "too many"))) if extra else None


def multiset(records: Iterable[Any]) -> Counter[Hashable]:
    """Records by how often they occur; those that cannot be hashed stand for themselves by their text."""
    return Counter(_hashable(record) for record in records)


def rows_left(records: Iterable[Any]) -> Counter[Hashable] | None:
    """The rows that these changes leave, by how often; None if not every record is a change."""
    left: Counter[Hashable] = Counter()
    for record in records:
        change = _change(record)
        if change is None:
            return None
        kind, row = change
        left[_hashable(row)] += 1 if kind in _ADDING else -1
    return Counter({row: times for row, times in left.items() if times})


def _change(record: Any) -> tuple[str, tuple[Any, ...]] | None:
    """The kind, and the row that is added or taken away."""
    match record:
        case Row() | dict():
            columns = dict(record.asdict() if isinstance(record, Row) else record)
            kind, row = columns.pop("kind", None), tuple(columns.items())
        case tuple() | list() if record:
            kind, *rest = record
            row = tuple(rest)
        case _:
            return None
    return (kind, row) if isinstance(kind, str) and kind in _KINDS else None


def _hashable(record: Any) -> Hashable:
    try:
        hash(record)
    except TypeError:
        return repr(record)
    return record  # type: ignore[no-any-return]


def _described(records: Counter[Hashable], what: str) -> list[str]:
    if not records:
        return []
    shown = ", ".join(f"{record!r} ({times} times)" if times > 1 else repr(record) for record, times in _first(records))
    more = f" and {len(records) - _SHOWN} more" if len(records) > _SHOWN else ""
    return [f"{records.total()} records {what}: {shown}{more}"]


def _first(records: Counter[Hashable]) -> list[tuple[Hashable, int]]:
    return sorted(records.items(), key=lambda each: repr(each[0]))[:_SHOWN]
