"""Keys that an edit names, beside those that the savepoint holds: "12" is another key than 12."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..api.warned import warn
from .edit import OperatorEdit, StateEdit

_KINDS = {str: "a text", bytes: "bytes", int: "a number", float: "a number", bool: "a number"}
"""Numbers that are equal are one key. Of other types nothing is said: a record may be of a class that is not here."""


def warn_of_other_kinds(edit: OperatorEdit, held: Iterable[Any]) -> None:
    """Of keys that are put or removed and of whose kind no key of the operator is. `held`: its keys, of which no more
    are read than it takes to know.
    """
    unseen: dict[str, tuple[str, Any]] = {}
    for name, state in edit.states.items():
        for key in _named_by(state):
            if kind := _kind_of(key):
                unseen.setdefault(kind, (name, key))
    one: Any = None
    for key in held if unseen else ():
        kind = _kind_of(key)
        if not kind:
            return
        unseen.pop(kind, None)
        one = key
        if not unseen:
            return
    if one is None:
        return
    for kind, (name, key) in unseen.items():
        warn(
            f"{edit.uid}.{name}: the edit names the key {key!r:.60}, which is {kind}, and all keys that operator "
            f"{edit.uid!r} holds are {_kind_of(one)}, as {one!r:.60}: that is another key, which no record with "
            f"the other one will find. Give keys as the job's key_by makes them"
        )


def _named_by(state: StateEdit) -> Iterator[Any]:
    """Those that it puts or removes."""
    for step in state.steps:
        if isinstance(step, dict | frozenset):
            yield from step
        elif isinstance(step, list):
            yield from (key for key, _ in step)


def _kind_of(key: Any) -> str:
    """In words; empty: one that is not looked at."""
    if type(key) is tuple:
        kinds = [_kind_of(each) for each in key]
        return f"a tuple of {', '.join(kinds)}" if all(kinds) else ""
    return _KINDS.get(type(key), "")
