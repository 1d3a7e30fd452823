"""Restored keys that a record of today would not find: those of a class that has changed since.

The hash of a record is that of its fields, and a store on the disk also knows it by the name of its class. So where the
class of a key has gained or lost a field that it is compared by, or has another name, state under equal keys is in
another place than today's keys lead to.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ...messages import shape_of
from .key_groups import key_group


def may_move(key: Any) -> bool:
    """Whether a change of a class can change where this key leads to."""
    if type(key) is tuple:
        return any(map(may_move, key))
    return isinstance(key, Enum) or shape_of(type(key)) is not None


def moved_group(key: Any, group: int, max_parallelism: int) -> str:
    """Why state that was stored in this group is not found under this key; empty if it is."""
    if not may_move(key) or (now := key_group(key, max_parallelism)) == group:
        return ""
    return moved_text(key, f"is of key group {now} now, and was stored in {group}")


def moved_text(key: Any, how: str) -> str:
    return (
        f"the key {key!r:.80} {how}: its class has changed, and records with this key would not find what is stored. "
        "Give the class the name and the fields that it had (a new one with field(compare=False), if it is no part of "
        "the key), or write this state under today's keys with Savepoint.open(path).edit()"
    )
