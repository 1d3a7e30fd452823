"""`self.seen.clear` or `out.collect`, as a statement without brackets: it does nothing, and no error says so.

Found in an operator's methods when it is put into a stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType

from ...messages.code_steps import placed_steps
from ...state.backends.shared_backend import WRITES
from .errors import InvalidOperator
from .users_code import users_codes

_METHODS = WRITES | {"collect", "collect_to", "emit", "emit_to", "at_event_time", "at_processing_time"}
"""Of states, `out` and timers: those that are called for what they do."""


def check_uncalled_methods(kind: type) -> None:
    """Raises InvalidOperator, with the line, for a method of the user's that only names one of these."""
    for cls, method, code in users_codes(kind):
        for name, place in _only_named(code):
            raise InvalidOperator(
                f"{place}: {cls.__name__}.{method} names {name}, and does not call it: brackets are missing, as in "
                f"{name}(...)"
            )


def _only_named(code: CodeType) -> Iterator[tuple[str, str]]:
    """Each `x.method` whose value is dropped, and its place."""
    before = of = method = ""
    for each, place in placed_steps(code):
        if each.name == "POP_TOP" and method in _METHODS:
            yield f"{of}.{method}", place
        of, method = (before, str(each.value)) if each.name == "LOAD_ATTR" else ("", "")
        before = str(each.value)
