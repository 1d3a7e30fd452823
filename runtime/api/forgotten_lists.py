"""`self.items.get().append(x)`: `get` of a list state gives a list of the caller's own, so this changes no state.

Found in an operator's methods when it is put into a stream. A list that is kept in a variable may be put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Any

from ...messages.code_steps import placed_steps
from ...state.kinds.declared_states import declared_states
from .errors import InvalidOperator
from .users_code import users_codes

_INSTEAD = {"append": "add(item)", "extend": "add_all(items)"}
"""By method of the list; for the others it is `update`."""

_CHANGES = frozenset({*_INSTEAD, "insert", "remove", "clear", "sort", "reverse"})
"""Those that give None: nothing can come of such a call."""

_KINDS = {"ListState": "a ListState", "OperatorListState": "an OperatorListState"}


def check_forgotten_lists(kind: type) -> None:
    """Raises InvalidOperator, with the line, for a method of the user's that changes such a list and drops it."""
    lists = {name: state.kind for name, state in declared_states(kind).items() if state.kind in _KINDS}
    for cls, method, code in users_codes(kind) if lists else ():
        for name, change, place in _changed_in(code):
            if name in lists:
                raise InvalidOperator(
                    f"{place}: {cls.__name__}.{method} calls self.{name}.get().{change}(...): get() of "
                    f"{_KINDS[lists[name]]} gives a list of your own, so the state would not change. Write "
                    f"self.{name}.{_INSTEAD.get(change, 'update(items) with the changed list')}"
                )


def _changed_in(code: CodeType) -> Iterator[tuple[str, str, str]]:
    """Attribute, method and place of each `x.attribute.get().method`."""
    last: list[tuple[str, Any, int]] = [("", None, 0)] * 3
    for each, place in placed_steps(code):
        (_, name, _), (_, get, _), (call, _, count) = last
        if each.value in _CHANGES and get == "get" and call == "CALL" and count == 0:
            yield str(name), each.value, place
        last = [*last[1:], (each.name, each.value, each.arg)]
