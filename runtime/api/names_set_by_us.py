"""Attributes of an operator that the runtime sets: what a user's class puts there would be lost, without a word.

`self.key = "id"` in `__init__` is replaced by each record's key; `self.count = 5` puts a plain value where a state was,
which no checkpoint holds. Found in an operator's class and methods when it is put into a stream: a running operator
would say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.of_call import OfCall
from ...actors.operators.operator import Operator
from ...actors.windows.window_function import ProcessWindowFunction
from ...messages.attributes import attributes_of
from ...state.kinds.declared_states import declared_states
from .errors import InvalidOperator
from .private_names import assigned
from .users_code import takes_each_record, users_classes

_SET = {
    "context": "where it runs",
    "metrics": "what it measures",
    "timestamps": "the event times of its batch",
    "split_watermarks": "how far the splits of its source have come",
    "time_column": "where event times come from",
    "watermark": "how far event time has come",
    "idempotency_key": "the key of a call",
}
_SET_BY_RECORD = {"timestamp": "the event time of its record"}
_SET_BY_CALL = {**_SET_BY_RECORD, "key": "the key of its call"}
_SET_BY_KEY = {**_SET_BY_RECORD, "key": "the key of its record", "timers": "the timers of its key"}

_INSTEAD = {"MapState": "put(key, value)", "ReducingState": "add(value)", "FoldingState": "add(value)"}
"""By kind of state; for the others it is `update`."""


def check_names_set_by_us(kind: type[Operator | ProcessWindowFunction]) -> None:
    """Raises InvalidOperator for a class of the user's that defines such an attribute, or assigns to one. Of a window
    function those are its states.
    """
    ours = _set_on(kind)
    states = declared_states(kind)
    for cls in users_classes(kind):
        for name in (
            name for name, value in attributes_of(cls).items() if name in ours and not isinstance(value, OfCall)
        ):
            raise InvalidOperator(_of_ours(f"{cls.__name__} defines", name, ours[name]))
        for method, attribute, place in _assigned(cls):
            who = f"{place}: {cls.__name__}.{method} assigns to"
            if attribute in ours:
                raise InvalidOperator(_of_ours(who, attribute, ours[attribute]))
            if (state := states.get(attribute)) is not None:
                raise InvalidOperator(
                    f"{who} {attribute!r}, which is a {state.kind}: a plain value in its place would be in no "
                    f"checkpoint. Write self.{attribute}.{_INSTEAD.get(state.kind, 'update(value)')}"
                    f"{'; what it holds at first is its default' if method == '__init__' else ''}"
                )


def _set_on(kind: type[Operator | ProcessWindowFunction]) -> dict[str, str]:
    """What the runtime sets on objects of this class, and what it puts there."""
    if not issubclass(kind, Operator):
        return {}
    if issubclass(kind, KeyedOperator):
        return _SET | _SET_BY_KEY
    if kind._is_async:
        return _SET | _SET_BY_CALL
    return _SET | _SET_BY_RECORD if takes_each_record(kind) else _SET


def _assigned(cls: type) -> Iterator[tuple[str, str, str]]:
    """Method, attribute, and file and line of each assignment to `self`."""
    for method, value in attributes_of(cls).items():
        for attribute, place in assigned(value):
            yield method, attribute, place


def _of_ours(who: str, name: str, meaning: str) -> str:
    return (
        f"{who} {name!r}, which the runtime sets to {meaning}: its own value would be lost. Give it another name, such "
        f"as my_{name}"
    )
