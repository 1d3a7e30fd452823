"""KeysOfSides: whether keys of two inputs can be equal at all; said once, in the log, where a join will match nothing.

Where columns or collections tell it, a program is refused when it is built. Keys that a function makes are seen here.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from ...state.keys.key_kinds import kind_of_key
from ..operators.keyed_operator import KeyedOperator
from ..operators.said_once import SaidOnce

log = logging.getLogger(__name__)

MOST_LOOKED_AT: Final = 100
"""Of each input."""

_SAID: Final = SaidOnce()


class KeysOfSides:
    """Of one attempt."""

    def __init__(self) -> None:
        self._left_to_see = [MOST_LOOKED_AT, MOST_LOOKED_AT]
        self._kinds: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        """By input and kind: the first key of that kind."""

    def see(self, side: int, key: Any) -> bool:
        """Whether enough keys of both have been seen now."""
        if not self._left_to_see[side]:
            return False
        self._left_to_see[side] -= 1
        self._kinds[side].setdefault(kind_of_key(key), key)
        return not any(self._left_to_see)

    @property
    def problem(self) -> str:
        """Why none of the keys that were seen equals one of the other input; empty if one may."""
        first, second = self._kinds
        if not first or not second or "" in first or "" in second or first.keys() & second.keys():
            return ""
        return f"keys of the first are {_shown(first)}, and keys of the second are {_shown(second)}"


class ComparesKeys(KeyedOperator):
    """A part of joins: they call `_look_at_key` with each record of either input while `_looks_at_keys`."""

    _looks_at_keys = True
    _keys_of_sides: KeysOfSides | None = None

    def _look_at_key(self, side: int) -> None:
        if self._keys_of_sides is None:
            self._keys_of_sides = KeysOfSides()
        if self._keys_of_sides.see(side, self.key):
            self._compare_keys()

    def _data_ended(self) -> None:
        super()._data_ended()
        if self._looks_at_keys:
            self._compare_keys()

    def _compare_keys(self) -> None:
        seen, self._looks_at_keys = self._keys_of_sides, False
        problem = "" if seen is None else seen.problem
        if problem and _SAID.is_new(self.context.job_id, self.context.operator_id):
            log.warning(
                "operator %r: no key of its first input equals one of its second, so no records meet: %s. Make them of "
                "one type, in the function of key_by or with .map(...) before it",
                self.context.name,
                problem,
            )


def _shown(kinds: dict[str, Any]) -> str:
    return " or ".join(f"{kind}, as {key!r:.60}" for kind, key in kinds.items())
