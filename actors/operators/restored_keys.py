"""Keys of state and those that come, in records or questions, compared by their kinds: state of the key 5 is not found
under "5".

A key function says no type, so nobody can compare before there is a record. Flink, whose keys have serializers, refuses
such a savepoint: StateMigrationException, "the new key serializer must be compatible".
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import islice
from typing import Any

SAMPLE = 100
"""This many keys of each side are looked at."""

_NUMBERS = re.compile(r"\b(int|bool|float|Decimal|Fraction)\b")

log = logging.getLogger(__name__)


def kinds_of(keys: Iterable[Any]) -> frozenset[str]:
    """As they are shown: "int", or "(int, str)"."""
    return frozenset(map(_kind, islice(keys, SAMPLE)))


def compare(operator_name: str, kept: frozenset[str], keys: Iterable[Any]) -> None:
    """Warn if none of these keys is of a kind that the restored ones are of."""
    found = kinds_of(keys)
    if found and _alike(kept).isdisjoint(_alike(found)):
        was, comes = " or ".join(sorted(kept)), " or ".join(sorted(found))
        log.warning(
            "operator %r: its restored state is of keys that are %s, and the keys that come are %s: state is found "
            "under the same key only, so each of these begins with none. If that is not what you want, stop the job "
            "without a savepoint, let key_by give keys that are %s again, and restore the same savepoint once more",
            *(operator_name, was, comes, was),
        )


def warn_of_question(operator_name: str, key: Any, some_keys: Callable[[int], list[Any]], known: set[str]) -> None:
    """Of a key of another kind than those in state: its answer is that of a key that no record had. Once for a kind.
    `known`: the kinds that were compared.
    """
    kind = _kind(key)
    if kind in known or isinstance(key, Enum) or not (kept := kinds_of(some_keys(SAMPLE))):
        return
    known.add(kind)
    if _alike(kept).isdisjoint(_alike([kind])):
        was = " or ".join(sorted(kept))
        log.warning(
            "operator %r was asked with the key %r, of type %s, and the keys of its state are %s: state is found under "
            "the same key only, so the answer is that of a key without records. Ask with %s, as in int(text) of a text",
            *(operator_name, key, kind, was, was),
        )


def _alike(kinds: Iterable[str]) -> frozenset[str]:
    """Kinds whose keys may be equal are one: 5 is 5.0, and state of the one is found under the other."""
    return frozenset(_NUMBERS.sub("number", kind) for kind in kinds)


def _kind(key: Any) -> str:
    if isinstance(key, tuple):
        return f"({', '.join(map(_kind, key))})"
    return "None" if key is None else type(key).__name__
