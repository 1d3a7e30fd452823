"""Keys that an edit names, beside those that the savepoint holds: "12" is another key than 12."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...state.keys.key_kinds import kind_of_key
from ..api.warned import warn
from .edit import OperatorEdit, StateEdit


def warn_of_other_kinds(edit: OperatorEdit, held: Iterable[Any]) -> None:
    """Of keys that are put or removed and of whose kind no key of the operator is. `held`: its keys, of which no more
    are read than it takes to know.
    """
    unseen: dict[str, tuple[str, Any]] = {}
    for name, state in edit.states.items():
        for key in _named_by(state):
            if kind := kind_of_key(key):
                unseen.setdefault(kind, (name, key))
    one: Any = None
    for key in held if unseen else ():
        kind = kind_of_key(key)
        if not kind:
            return
        unseen.pop(kind, None)
        one = key
        if not unseen:
            return
    if one is None:
        return
    for name, key in unseen.values():
        warn(
            f"{edit.uid}.{name}: the edit names the key {key!r:.60}, and all keys that operator {edit.uid!r} holds are "
            f"{kind_of_key(one)}, as {one!r:.60}: it is another key than any of these, and no record of theirs finds "
            "it. Give keys as the job's key_by makes them"
        )


def _named_by(state: StateEdit) -> Iterator[Any]:
    """Those that it puts or removes."""
    for step in state.steps:
        if isinstance(step, dict | frozenset):
            yield from step
        elif isinstance(step, list):
            yield from (key for key, _ in step)
