"""TriggerState: the TriggerContext of a window operator: values in keyed state, timers under the window.

It stands at one window at a time. Values are kept under the namespace of the window's contents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ...state.kinds.descriptors import MapState
from ..operators.keyed_operator import KeyedOperator
from .triggers import TriggerContext

Values: TypeAlias = "dict[str, Any]"
"""What a trigger has put for one key and window."""


class TriggerState(TriggerContext):
    """One operator's."""

    def __init__(
        self, operator: KeyedOperator, kept: MapState[str, Any], domain: str | None, reached: Callable[[], int]
    ) -> None:
        """`domain`: by what time the operator forgets windows. `reached`: gives its watermark."""
        self._operator, self._kept, self._domain, self._reached = operator, kept, domain, reached
        self._namespace: tuple[int, ...] = ()
        self._place: tuple[int, ...] = ()
        self._entered = False
        self._cleanup_ms = 0
        self._merged: Sequence[Values] = ()
        self._gone: Values | None = None
        """The values of a window that has been merged into another one."""

    def enter(self, namespace: tuple[int, ...], place: tuple[int, ...], cleanup_ms: int) -> TriggerState:
        """Stand at the window of a namespace, whose contents lie in `place`, and which is forgotten at `cleanup_ms`."""
        self._namespace, self._place, self._entered = namespace, place, False
        self._cleanup_ms = cleanup_ms
        self._merged, self._gone = (), None
        return self

    def take(self, place: tuple[int, ...]) -> Values:
        """Take out what is kept in a place."""
        self._place, self._entered = place, False
        kept = self._values()
        taken = dict(kept.items())
        if taken:
            kept.clear()
        return taken

    def with_merged(self, merged: Sequence[Values]) -> TriggerState:
        """In `on_merge`: with the values of the windows that have become this one."""
        self._merged = merged
        return self

    def with_values(self, values: Values) -> TriggerState:
        """Of a window that has been merged: with the values that it had."""
        self._gone = values
        return self

    def forget(self) -> None:
        """Forget the values of the window."""
        self._values().clear()

    @property
    def watermark(self) -> int:
        return self._reached()

    def processing_time(self) -> int:
        return self._operator.processing_time()

    def at_event_time(self, time_ms: int) -> None:
        self._operator.timers.at_event_time(time_ms, self._namespace)

    def at_processing_time(self, time_ms: int) -> None:
        self._operator.timers.at_processing_time(time_ms, self._namespace)

    def delete_event_time(self, time_ms: int) -> None:
        if self._domain != "event" or time_ms != self._cleanup_ms:  # that one is the operator's own
            self._operator.timers.delete_event_time(time_ms, self._namespace)

    def delete_processing_time(self, time_ms: int) -> None:
        if self._domain != "processing" or time_ms != self._cleanup_ms:
            self._operator.timers.delete_processing_time(time_ms, self._namespace)

    def get(self, name: str, default: Any = None) -> Any:
        return self._values().get(name, default) if self._gone is None else self._gone.get(name, default)

    def put(self, name: str, value: Any) -> None:
        if self._gone is None:
            self._values().put(name, value)
        else:
            self._gone[name] = value

    def remove(self, name: str) -> None:
        if self._gone is None:
            self._values().remove(name)
        else:
            self._gone.pop(name, None)

    def of_merged(self, name: str) -> Sequence[Any]:
        return [values[name] for values in self._merged if name in values]

    def _values(self) -> MapState[str, Any]:
        if not self._entered:
            self._kept.set_namespace(self._place)
            self._entered = True
        return self._kept
