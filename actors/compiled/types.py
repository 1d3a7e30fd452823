"""Numba's types of what a compiled `process` is given: `self`, `record`, `out`, its states, and opaque values.

Each is a pointer to the work table and the number of the row; nothing is loaded before it is used. Types of different
operators differ, so that nothing is compiled for the wrong layout.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.extending import register_model

from .layout import Column, Kind, Layout, StateFields

WORK = types.CPointer(types.int64)
NUMBERS: dict[Kind, Any] = {"int": types.int64, "float": types.float64, "bool": types.boolean}

_serial = count()


class Opaque(types.Type):
    """A value of a column that can only be passed on. It is the number of its row."""

    def __init__(self, source: Column) -> None:
        super().__init__(f"opaque[{source.cell} {source.name} {source.type}]")
        self.source = source


class WorkType(types.Type):
    """What lies in the work table of one layout."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(f"{type(self).__name__}[{next(_serial)}]")
        self.layout = layout


class OperatorType(WorkType):
    """`self`."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.timers = TimersType(layout)
        self.states = {
            attribute: (ReducingType if state.reduce is not None else StateType)(layout, state)
            for attribute, state in layout.states.items()
        }


class RecordType(WorkType):
    """`record`, of a batch of rows."""


class OutType(WorkType):
    """`out`."""


class TimersType(WorkType):
    """`self.timers`."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.timer = TimerType(layout)


class TimerType(WorkType):
    """A timer: the one that is due, or one that was registered. It is its time."""


class TimerDeleted(types.Type):
    """What deleting a timer returns, which cannot be used."""

    def __init__(self) -> None:
        super().__init__("TimerDeleted")


class StateType(WorkType):
    """One state of `self`."""

    def __init__(self, layout: Layout, state: StateFields) -> None:
        super().__init__(layout)
        self.state = state

    @property
    def value_type(self) -> Any:
        return row_type([NUMBERS[kind] for kind in self.state.kinds], self.state.is_tuple, self.state.named)


class ReducingType(StateType):
    """A state that is added to."""


def row_type(items: list[Any], is_tuple: bool, named: type[Any] | None = None) -> Any:
    """The type of a tuple of these items, or of the one item."""
    if not is_tuple:
        (item,) = items
        return item
    return types.NamedTuple(items, named) if named is not None else types.Tuple(items)


def column_type(column: Column) -> Any:
    return Opaque(column) if column.kind == "opaque" else NUMBERS[column.kind]


@register_model(OperatorType)
@register_model(RecordType)
@register_model(TimersType)
@register_model(StateType)
@register_model(ReducingType)
class _RowModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("work", WORK), ("row", types.int64)])


@register_model(OutType)
class _OutModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("work", WORK)])


@register_model(TimerDeleted)
class _DeletedModel(models.OpaqueModel):
    pass


@register_model(TimerType)
@register_model(Opaque)
class _NumberModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64))
