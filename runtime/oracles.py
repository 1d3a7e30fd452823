"""What must hold of a job's committed output, whatever happened to its cluster. Pure functions over what was seen.

Output is compared as a multiset: no component promises the order in which subtasks commit. Of a changelog the rows
count that it leaves: which changes a batch makes at once depends on what came together. Where changes come in order,
each row that is taken back has to be there, and no row may be there too often. Whoever asks says what is a changelog.
The simulator and the chaos runs on real processes judge by the same functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..actors.flow.changelog import ADDING, KIND, KINDS, Changelog
from ..messages.counted import counted
from ..messages.row import Row
from ..state.keys.key_hash import same_nan

_SHOWN = 5

_Change: TypeAlias = tuple[str, Hashable]
"""A kind, and the row that is added or taken back."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An oracle that broke: its name, and what it found and wanted."""

    oracle: str
    problem: str

    def __str__(self) -> str:
        return f"{self.oracle}: {self.problem}"


def exactly_once(
    committed: Iterable[Any], expected: Iterable[Any], changelog: Changelog | None = None
) -> Violation | None:
    """Each expected record once, and nothing else. Of a changelog: each expected row in the end, and none at any time
    that cannot be there.
    """
    committed, expected = list(committed), list(expected)
    found, wanted = multiset(committed), multiset(expected)
    of = ""
    if changelog is not None and (both := _changes_of_both(committed, expected)) is not None:
        if (problem := _impossible(*both, changelog)) is not None:
            return Violation("exactly-once", problem)
        found, wanted = map(_rows_left, both)
        of = "of the rows that its changes leave "
    lost, extra = wanted - found, found - wanted
    if not lost and not extra:
        return None
    return Violation("exactly-once", of + " and ".join(_described(lost, "lost") + _described(extra, "too many")))


def at_least_once(
    committed: Iterable[Any], expected: Iterable[Any], _changelog: Changelog | None = None
) -> Violation | None:
    """Each expected record, perhaps repeated; and no record that was not expected. Changes are records like others: a
    changelog does not say what is left where one comes twice.
    """
    found, wanted = multiset(committed), multiset(expected)
    lost = wanted - found
    unknown = Counter({record: times for record, times in found.items() if record not in wanted})
    if not lost and not unknown:
        return None
    return Violation("at-least-once", " and ".join(_described(lost, "lost") + _described(unknown, "unknown")))


def nothing_extra(
    committed: Iterable[Any], expected: Iterable[Any], changelog: Changelog | None = None
) -> Violation | None:
    """What holds at every moment of an exactly-once job, and of one that was lost: no record more than is expected. The
    changes of a changelog may be others, on the way to the same rows: no row is there that cannot be.
    """
    committed, expected = list(committed), list(expected)
    if changelog is not None and (both := _changes_of_both(committed, expected)) is not None:
        problem = _impossible(*both, changelog)
        return Violation("nothing-extra", problem) if problem is not None else None
    extra = multiset(committed) - multiset(expected)
    return Violation("nothing-extra", " and ".join(_described(extra, "too many"))) if extra else None


def multiset(records: Iterable[Any]) -> Counter[Hashable]:
    """Records by how often they occur; those that cannot be hashed stand for themselves by their text.
    All NaNs in tuples are one.
    """
    return Counter(_hashable(record) for record in records)


def _changes_of_both(
    committed: Sequence[Any], expected: Sequence[Any]
) -> tuple[Sequence[_Change], Sequence[_Change]] | None:
    """None if not every record is a change: then they are judged as records."""
    found, wanted = list(map(_change, committed)), list(map(_change, expected))
    if None in found or None in wanted:
        return None
    return found, wanted  # type: ignore[return-value]


def _change(record: Any) -> _Change | None:
    match record:
        case Row() | dict():
            columns = dict(record.asdict() if isinstance(record, Row) else record)
            kind, row = columns.pop(KIND, None), tuple(columns.items())
        case tuple() | list() if record:
            kind, *rest = record
            row = tuple(rest)
        case _:
            return None
    return (kind, _hashable(row)) if isinstance(kind, str) and kind in KINDS else None


def _rows_left(changes: Iterable[_Change]) -> Counter[Hashable]:
    """By how often; below 0 if a row was taken back more often than it was added."""
    left: Counter[Hashable] = Counter()
    for kind, row in changes:
        left[row] += 1 if kind in ADDING else -1
    return left


def _impossible(found: Sequence[_Change], wanted: Sequence[_Change], changelog: Changelog) -> str | None:
    """Make the changes in order: a row that is taken back and not there, or that is there too often, in words."""
    if not changelog.in_order:
        return None
    most = None
    if changelog.at_once is not None:
        most = max((changelog.at_once, *_rows_left(wanted).values()))
    there: Counter[Hashable] = Counter()
    for place, (kind, row) in enumerate(found, 1):
        there[row] += 1 if kind in ADDING else -1
        if there[row] < 0:
            return f"change {place} of {len(found)}, {kind!r}, takes back a row that is not there: {row!r}"
        if most is not None and there[row] > most:
            return (
                f"change {place} of {len(found)}, {kind!r}, adds a row that is there {there[row] - 1} times, and may "
                f"be {most} times: {row!r}"
            )
    return None


def _hashable(record: Any) -> Hashable:
    try:
        hash(record)
    except TypeError:
        return repr(record)
    return same_nan(record)  # type: ignore[no-any-return]


def _described(records: Counter[Hashable], what: str) -> list[str]:
    if not records:
        return []
    shown = ", ".join(f"{record!r} ({times} times)" if times > 1 else repr(record) for record, times in _first(records))
    more = f" and {len(records) - _SHOWN} more" if len(records) > _SHOWN else ""
    return [f"{counted(records.total(), 'record')} {what}: {shown}{more}"]


def _first(records: Counter[Hashable]) -> list[tuple[Hashable, int]]:
    return sorted(records.items(), key=lambda each: repr(each[0]))[:_SHOWN]
