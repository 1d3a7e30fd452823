"""Accessors of keyed state in NumPy columns, by slot, and the columns themselves for compiled operators.

A slot holds something where `present` says so. Whoever may write, writes in place; so a snapshot takes copies, into
memory that is kept from one to the next, which costs a million keys a millisecond or two.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ..backends.backend import NO_KEY, NO_NAMESPACE, StateClock
from ..backends.read_only import ReadOnlySwitch
from ..backends.run_ledger import RunLedger
from ..errors import (
    InvalidState,
    NoCurrentKey,
    ReadOnlyState,
    StateError,
    StateNotStorable,
    WrongStateType,
    of_operator,
)
from ..keys.word_table import Slots
from ..kinds.descriptors import ReducingState, ValueState
from ..kinds.state_declaration import KeyedStateDeclaration
from .slot_keys import SlotKeys
from .value_kinds import Columns, ValueKinds

Present: TypeAlias = npt.NDArray[np.bool_]

_FEWEST_SLOTS = 1024


@dataclass(frozen=True, slots=True)
class SlotColumns:
    """One state's columns, by slot: good until keys are added, as what grows is replaced. A kernel writes in place."""

    present: Present
    """Where a slot holds something. What `values` hold elsewhere means nothing."""
    values: Columns
    """One per field of the state's value, of int64, float64 or bool; a scalar has one."""
    is_tuple: bool
    default: tuple[Any, ...] | None
    """The fields of the value of an absent one; None if it has no value."""


@dataclass(slots=True)
class FrozenColumns:
    """The columns as they were at one moment, for use on any thread."""

    present: Present
    values: Columns
    count: int
    """The number of slots. The columns are longer."""
    spares: list[tuple[Present, Columns]]

    def release(self) -> None:
        """The memory is not read any more."""
        self.spares.append((self.present, self.values))


class SlotScope(ReadOnlySwitch):
    """What the accessors of one backend share."""

    def __init__(self) -> None:
        super().__init__()
        self.current_key: Any = NO_KEY
        self.operator_name = ""
        self.clock: StateClock | None = None
        self.slot_keys = SlotKeys()
        self.runs: RunLedger | None = None
        """There where changes are tracked."""

    def changed(self, slots: Slots | int, rows: int = 1) -> None:
        """These slots, in this number of rows, may hold something else from now on, or nothing."""
        if self.runs is not None:
            self.runs.changed(slots, rows, len(self.slot_keys))

    def make_room(self) -> None:
        """All states have rows for all keys."""
        raise NotImplementedError  # abstract


class SlotState:
    """The accessor of one state; the task's thread owns it."""

    def __init__(self, declaration: KeyedStateDeclaration, scope: SlotScope) -> None:
        self.declaration = declaration
        self.node = declaration.node()
        self.kinds = ValueKinds.of(declaration)
        self._scope = scope
        self._present: Present = np.zeros(0, np.bool_)
        self._values = self.kinds.empty(0)
        self._spares: list[tuple[Present, Columns]] = []
        """Columns of snapshots that have been written. Writers on other threads only ever append."""

    @property
    def columns(self) -> SlotColumns:
        return SlotColumns(self._present, self._values, self.kinds.is_tuple, self.kinds.default)

    def set_namespace(self, namespace: Hashable) -> None:
        if namespace != NO_NAMESPACE:
            raise InvalidState(f"state {self.declaration.name!r}: a compiled operator's state has no namespaces")

    def clear(self) -> None:
        self._check_writable()
        slot = self._slot()
        if slot >= 0:
            self._present[slot] = False
            self._scope.changed(slot)

    def reserve(self, slots: int) -> None:
        """Have rows for this many slots, and some more."""
        if slots > len(self._present):
            size = max(slots, 2 * len(self._present), _FEWEST_SLOTS)
            present, values = np.zeros(size, np.bool_), self.kinds.empty(size)
            for grown, before in zip((present, *values), (self._present, *self._values), strict=True):
                grown[: len(before)] = before
            self._present, self._values = present, values
            self._spares.clear()

    def move(self, kept: Slots, slots: Slots) -> None:
        """The values of the slots `kept` move to `slots`, counted from 0; all others hold nothing."""
        before = (self._present, *self._values)
        self._present, self._values = np.zeros(0, np.bool_), self.kinds.empty(0)
        self.reserve(len(slots))
        for moved, held in zip((self._present, *self._values), before, strict=True):
            moved[slots] = held[kept]

    def put(self, slots: Slots, values: Columns) -> None:
        """Put restored values in; of several for a slot the last one stays."""
        self._present[slots] = True
        for column, added in zip(self._values, values, strict=True):
            column[slots] = added

    def freeze(self, count: int) -> FrozenColumns:
        """What the first `count` slots hold now."""
        present, values = self._spare()
        present[:count] = self._present[:count]
        for copy, held in zip(values, self._values, strict=True):
            copy[:count] = held[:count]
        return FrozenColumns(present, values, count, self._spares)

    def freeze_some(self, slots: Slots) -> FrozenColumns:
        """What these slots hold now, in their order."""
        values = tuple(column.take(slots) for column in self._values)
        return FrozenColumns(self._present.take(slots), values, len(slots), [])

    def erase(self, slots: Slots) -> None:
        """These hold nothing."""
        self._present[slots] = False

    def present_slots(self) -> Slots:
        return np.flatnonzero(self._present)

    def entry_count(self) -> int:
        return int(np.count_nonzero(self._present))

    def drop(self) -> None:
        """Let go of everything."""
        self._present, self._values = np.zeros(0, np.bool_), self.kinds.empty(0)
        self._spares = []

    def _spare(self) -> tuple[Present, Columns]:
        spare = self._spares.pop() if self._spares else None
        if spare is None or len(spare[0]) != len(self._present):
            return np.empty_like(self._present), tuple(map(np.empty_like, self._values))
        return spare

    def _slot(self) -> int:
        """That of the current key; -1 for one that was never there."""
        self._check_key()
        key = self._scope.current_key
        slot = self._scope.slot_keys.find(key)
        return slot if slot < len(self._present) else -1

    def _read(self) -> tuple[Any, ...] | None:
        """The fields of what the current key holds, if it holds something."""
        slot = self._slot()
        if slot < 0 or not self._present[slot]:
            return None
        return tuple(column[slot].item() for column in self._values)

    def _write(self, value: Any) -> None:
        self._check_writable()
        row = self.kinds.row(value)
        if row is None:
            raise self._refused(value)
        slot = self._scope.slot_keys.slot_of(self._scope.current_key)
        self._scope.make_room()
        self._scope.changed(slot)
        self._present[slot] = True
        for column, item in zip(self._values, row, strict=True):
            column[slot] = item

    def _refused(self, value: Any) -> StateError:
        """A value may be of the declared type, and still none for columns."""
        operator, key = self._scope.operator_name, self._scope.current_key
        if misfit := self.declaration.fit().misfit(value):
            return WrongStateType(self.declaration.named(), f"{misfit} for key {key!r:.60}", operator)
        return StateNotStorable(
            f"{of_operator(operator)}{self.declaration.named()}: a compiled operator's columns hold {self.kinds}, "
            f"integers of 64 bits; found {value!r:.80} for key {key!r:.60}"
        )

    def _check_writable(self) -> None:
        if self._scope.is_read_only:
            raise ReadOnlyState(self.declaration.name)
        self._check_key()

    def _check_key(self) -> None:
        if self._scope.current_key is NO_KEY:
            raise NoCurrentKey(f"keyed state {self.declaration.name!r}", self._scope.operator_name)


class SlotValue(SlotState):
    def value(self) -> Any:
        row = self._read()
        return cast("ValueState[Any]", self.declaration).default if row is None else self.kinds.value(row)

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
        else:
            self._write(value)


class SlotReducing(SlotState):
    def get(self) -> Any:
        row = self._read()
        return None if row is None else self.kinds.value(row)

    def add(self, value: Any) -> None:
        self._check_writable()
        held = self.get()
        self._write(value if held is None else cast("ReducingState[Any]", self.declaration).reduce(held, value))

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        for namespace in (target, *sources):
            self.set_namespace(namespace)


SLOT_ACCESSORS: Final[dict[str, Callable[[Any, SlotScope], SlotState]]] = {
    "ValueState": SlotValue,
    "ReducingState": SlotReducing,
}
