"""SavepointDiff: what is other in the second of two savepoints, state by state, key group by key group.

No more than one key group of both is held at a time, whatever the size of the savepoints.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .errors import NotComparable

if TYPE_CHECKING:
    from .reading import SavepointOperator, SavepointReader
    from .state_table import StateTable

_NOTHING: Any = object()

What = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class StateChange:
    """One entry that is other: `before` is None for one that was added, `after` for one that was removed."""

    operator: str
    state: str
    what: What
    key: Any
    """With a namespace `(key, namespace)`; of a list `(subtask, position)`; of columnar state the key columns."""
    before: Any
    after: Any


@dataclass(slots=True)
class StateDiff:
    """The counts of one state."""

    operator: str
    state: str
    added: int = 0
    removed: int = 0
    changed: int = 0
    same: int = 0

    @property
    def is_same(self) -> bool:
        return not (self.added or self.removed or self.changed)


class SavepointDiff:
    """`before.diff(after)`. Each call compares again."""

    def __init__(self, before: SavepointReader, after: SavepointReader) -> None:
        self.before, self.after = before, after

    def states(self) -> list[StateDiff]:
        """The counts of every state, those without changes too. Raises NotComparable."""
        return [self._counted(*pair) for pair in self._pairs()]

    def changes(self, operator: str | None = None, state: str | None = None) -> Iterator[StateChange]:
        """Every entry that is other; of one operator, and one state, if they are named. Raises NotComparable."""
        for uid, name, one, other in self._pairs():
            if operator in (None, uid) and state in (None, name):
                for change in _changes(uid, name, one, other):
                    if isinstance(change, StateChange):
                        yield change

    @property
    def is_same(self) -> bool:
        return all(each.is_same for each in self.states())

    def _counted(self, uid: str, name: str, one: StateTable | None, other: StateTable | None) -> StateDiff:
        found = StateDiff(uid, name)
        for change in _changes(uid, name, one, other):
            if isinstance(change, StateChange):
                setattr(found, change.what, getattr(found, change.what) + 1)
            else:
                found.same += change
        return found

    def _pairs(self) -> Iterator[tuple[str, str, StateTable | None, StateTable | None]]:
        ours = {each.uid: each for each in self.before.operators()}
        theirs = {each.uid: each for each in self.after.operators()}
        for uid in dict.fromkeys((*ours, *theirs)):
            one, other = ours.get(uid), theirs.get(uid)
            _check_groups(one, other)
            tables = [{} if each is None else {table.name: table for table in each.states()} for each in (one, other)]
            for name in dict.fromkeys((*tables[0], *tables[1])):
                yield uid, name, tables[0].get(name), tables[1].get(name)


def _check_groups(one: SavepointOperator | None, other: SavepointOperator | None) -> None:
    if one is None or other is None:
        return
    was, now = one.keyed.max_parallelism, other.keyed.max_parallelism
    if was is not None and now is not None and was != now:
        raise NotComparable(
            f"operator {one.uid!r} has max_parallelism {was} in {one.savepoint.path} and {now} in "
            f"{other.savepoint.path}: their key groups hold other keys. Write one of them with the other's "
            "(Savepoint.edit, max_parallelism), and compare that"
        )


def _changes(uid: str, name: str, one: StateTable | None, other: StateTable | None) -> Iterator[StateChange | int]:
    """The changes, and between them numbers of entries that are the same."""
    shares = sorted({*(one.shares if one else ()), *(other.shares if other else ())})
    shown_before, shown_after = (_same if each is None else each.described for each in (one, other))
    for share in shares:
        before, after = _entries(one, share), _entries(other, share)
        if before == after:
            yield len(after)
            continue
        same = 0
        for key, value in before.items():
            found = after.get(key, _NOTHING)
            if found is _NOTHING:
                yield StateChange(uid, name, "removed", key, shown_before(value), None)
            elif found != value and repr(found) != repr(value):  # a NaN is no change
                yield StateChange(uid, name, "changed", key, shown_before(value), shown_after(found))
            else:
                same += 1
        yield same
        for key in after.keys() - before.keys():
            yield StateChange(uid, name, "added", key, None, shown_after(after[key]))


def _entries(table: StateTable | None, share: int) -> dict[Hashable, Any]:
    return {} if table is None else table.identified(share)


def _same(value: Any) -> Any:
    return value
