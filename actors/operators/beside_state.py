"""BesideState: data that an operator of the user's keeps in attributes, where no checkpoint holds it.

`self.total += 1`, `self.seen.add(record)`: a restart loses what they hold, while each record counts once, so that
results are wrong and nothing fails. So attributes are noted when the operator has been opened, and compared at each
checkpoint; those that differ by then are logged, once for each operator in a process. Whether a result depends on them
is not known, so the job goes on; `transient` of an operator names those that may be lost. Variables that functions
change are found when the job is submitted (runtime/api/captured_changes.py).

Attributes are found by the names in the code of the user's classes: whoever asks an object for its `__dict__` makes
CPython find them five times as slowly from then on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from inspect import getattr_static, iscoroutinefunction
from types import FunctionType, MemberDescriptorType
from typing import Any, Final, NamedTuple

import numpy as np

from ...messages.attributes import attributes_of
from ...messages.code_steps import codes_of
from ...messages.own_annotations import own_annotations
from ...messages.whose_code import is_the_users
from ...state import declared_states
from .keyed_operator import KeyedOperator
from .operator import Operator
from .said_once import SaidOnce
from .source import Source

log = logging.getLogger(__name__)

COPIED: Final = 64
"""Containers of at most this many entries are compared by their entries; larger ones by their size alone."""
_NUMBERS = (bool, int, float, complex, Decimal, date, datetime, timedelta, np.generic)
_FROZEN: tuple[Any, ...] = (str, bytes, tuple, frozenset)
_CONTAINERS: tuple[Any, ...] = (dict, list, set, deque, bytearray)

_said = SaidOnce()


class _Noted(NamedTuple):
    """Data as it was. `copy`: what tells it from other data; None of a container that is too large for one."""

    size: int | None
    copy: Any
    kind: str
    """Of the state to declare in its place."""


class BesideState:
    """Of one operator that has been opened; a part of its chain. It raises nothing, whatever the data is."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._transient = _transient_of(type(operator))
        self._names = [name for name in _names_of(type(operator)) if name not in self._transient]
        self._first: dict[str, _Noted | None] = {}
        if not iscoroutinefunction(type(operator).open):  # that is not over yet
            self._first = {name: self._noted(name) for name in self._names}

    def look(self) -> None:
        """At a checkpoint, behind the operator's own hooks: log the attributes that differ from when it was opened."""
        changed = {}
        for name in self._names:
            now = self._noted(name)
            first = self._first.setdefault(name, now)
            if first is None and now is not None and now.size is not None:
                self._first[name] = now  # it was made when it was first wanted
            elif said := _change(first, now):
                changed[name] = (said, now.kind if now else "")
        if changed:
            self._names, self._first = [], {}
            self._say(changed)

    def _noted(self, name: str) -> _Noted | None:
        """None: there is nothing, or no data."""
        try:
            value = object.__getattribute__(self._operator, name)
            size, copy = _copied(value)
        except Exception:  # noqa: BLE001  # it is not there; or a subclass of the user's does not let itself be copied
            return None
        return None if copy is size is None else _Noted(size, copy, _kind_for(self._operator, value))

    def _say(self, changed: dict[str, tuple[str, str]]) -> None:
        context = self._operator.context
        if not _said.is_new(context.job_id, context.operator_id, type(self._operator).__qualname__):
            return
        log.warning(
            "operator %r: no checkpoint holds what %s keeps in attributes: since it was opened, %s. After a restart, "
            "results that depend on it are wrong%s. Declare %s in its place. If no result depends on it, as on a "
            "cache, say so in the class: transient = %s",
            context.name,
            type(self._operator).__name__,
            ", ".join(f"self.{name} {said}" for name, (said, _) in changed.items()),
            "; and all keys of a subtask share it" if isinstance(self._operator, KeyedOperator) else "",
            " and ".join(sorted({kind for _, kind in changed.values()})),
            repr((*self._transient, *changed)).replace("'", '"'),
        )


@lru_cache(maxsize=256)
def _names_of(kind: type[Operator]) -> tuple[str, ...]:
    """What may be attributes with data: what the code of the user's classes names, and is no state and nothing of ours.
    A source has its offset, and whoever does something at a checkpoint keeps its data by itself.
    """
    if issubclass(kind, Source) or kind.on_checkpoint is not Operator.on_checkpoint:
        return ()
    users = list(filter(is_the_users, kind.__mro__))
    methods = [each for cls in users for each in attributes_of(cls).values() if isinstance(each, FunctionType)]
    named = {name for each in methods for code in codes_of(each.__code__) for name in code.co_names}
    ours = {name for cls in kind.__mro__ if cls not in users for name in (*attributes_of(cls), *own_annotations(cls))}
    left = named - ours - declared_states(kind).keys()
    return tuple(sorted(name for name in left if _may_be_set(getattr_static(kind, name, None))))


def _may_be_set(in_class: object) -> bool:
    """Whether an operator may have a value of its own there: there is no property, and no method."""
    return isinstance(in_class, MemberDescriptorType) or not hasattr(type(in_class), "__get__")


def _transient_of(kind: type[Operator]) -> tuple[str, ...]:
    """Empty where the user's class means something else by that name."""
    said: object = kind.transient
    if isinstance(said, str):
        return (said,)
    return tuple(each for each in said if isinstance(each, str)) if isinstance(said, Collection) else ()


def _copied(value: Any) -> tuple[int | None, Any]:
    """Size (of what can grow) and copy of a _Noted; of no data, None and None. It runs no method of a subclass, which
    may cost anything, and keeps nothing large.
    """
    if isinstance(value, np.ndarray):
        if value.size > COPIED:
            return value.size, None
        return value.size, value.tolist() if value.dtype.hasobject else value.tobytes()  # NaN equals itself in these
    for kind in _FROZEN:
        if isinstance(value, kind):
            size = kind.__len__(value)
            return None, value if size <= COPIED else (size, kind.__hash__(value) if kind in (str, bytes) else None)
    if isinstance(value, _NUMBERS):
        return None, value
    for kind in _CONTAINERS:
        if isinstance(value, kind):
            size = kind.__len__(value)
            return size, kind.copy(value) if size <= COPIED else None
    return None, None


def _change(first: _Noted | None, now: _Noted | None) -> str:
    """In words; empty: none that is known. Of values only numbers are shown: others may be secret, or long."""
    if now is None or (first is None and now.size is not None):
        return ""
    if first is None:
        return f"became {now.copy!r:.40}" if _is_number(now) else "was set"
    if first.size is not None and now.size is not None and first.size != now.size:
        return f"went from {first.size} to {now.size} entries"
    if first.copy is None or now.copy is None or _is_same(first.copy, now.copy):
        return ""
    return f"went from {first.copy!r:.40} to {now.copy!r:.40}" if _is_number(first) and _is_number(now) else "changed"


def _is_number(noted: _Noted) -> bool:
    """One that can be shown."""
    value = noted.copy
    if type(value) is int:
        return value.bit_length() <= 128
    return type(value) in _NUMBERS or isinstance(value, np.number)


def _is_same(one: Any, other: Any) -> bool:
    """Objects of the user's may not let themselves be compared: then nothing else is known."""
    if one is other:
        return True
    try:
        return bool(one == other or (one != one and other != other))  # NaN
    except Exception:  # noqa: BLE001
        return True


def _kind_for(operator: Operator, value: Any) -> str:
    if not isinstance(operator, KeyedOperator):
        return "an OperatorListState"
    if isinstance(value, list | deque):
        return "a ListState"
    return "a MapState" if isinstance(value, dict | set) else "a ValueState"
