"""Assigning to a state's own name, as in `self.count = 5`, puts a plain value in its place, which no checkpoint holds.

Found in an operator's methods when it is put into a stream: a running operator would say nothing.
"""

from __future__ import annotations

from itertools import takewhile

from ...state.kinds.declared_states import declared_states
from .errors import InvalidOperator
from .private_names import assigned, is_ours

_INSTEAD = {"MapState": "put(key, value)", "ReducingState": "add(value)", "FoldingState": "add(value)"}
"""By kind of state; for the others it is `update`."""


def check_replaced_states(kind: type) -> None:
    """Raises InvalidOperator, with the line, for a method of the user's that assigns to a declared state."""
    states = declared_states(kind)
    for cls in takewhile(lambda base: not is_ours(base), kind.__mro__ if states else ()):
        for method, value in vars(cls).items():
            for attribute, place in assigned(value):
                if (state := states.get(attribute)) is not None:
                    raise InvalidOperator(
                        f"{place}: {cls.__name__}.{method} assigns to {attribute!r}, which is a {state.kind}: a plain "
                        "value in its place would be in no checkpoint. Write "
                        f"self.{attribute}.{_INSTEAD.get(state.kind, 'update(value)')}"
                        f"{'; what it holds at first is its default' if method == '__init__' else ''}"
                    )
