"""KeyContext: the key that an operator has at a time, with the event time of its record, and the loop over all keys.

Flink: KeyContext.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from ...state.backends.backend import NO_KEY
from ...state.backends.heap_state import HeapScope
from ...state.backends.own_thread import OwnThread
from ...state.errors import CallIsOver, HasCurrentKey, NoCurrentKey
from .collector import Collector
from .of_records import In, Out
from .operator import Operator

if TYPE_CHECKING:
    from ...state.backends.backend import KeyedStateBackend


class KeyContext(Operator[In, Out]):
    """The part of a KeyedOperator that enters keys and leaves them: keyed state is that of the current one."""

    key: Any
    """That of the record, of the question, or of the loop over `keys()`; elsewhere there is no such attribute."""
    timestamp: int
    """The event time, in ms, of the record, or of the timer. Where the records have none, and where there is neither,
    there is no such attribute, and an operator that asks for it fails with NoEventTime.
    """
    _backend: KeyedStateBackend
    _state_thread: OwnThread | None = None
    """Of one without coroutines, from when its task opens it."""
    _loop: object = None
    """The loop over `keys()` whose key is the current one."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Without a default in the class: CPython finds an attribute quickly where the class has none of its name, and
        where each object had it among the first, even if it was deleted since.
        """
        operator = super().__new__(cls)
        operator.key = operator.timestamp = 0
        del operator.key, operator.timestamp
        return operator

    def keys(self) -> Iterator[Any]:
        """Every key that holds something in a state of this subtask, once each: `for key in self.keys():`.

        In the body of the loop `self.key` and keyed state are those of this key, and state may be changed and cleared.
        After the loop there is no key again. The keys are those at its begin, in no order to rely on. To be used where
        there is no key; elsewhere, as in `process`, it raises HasCurrentKey.
        """
        backend = self._backend
        if self._state_thread is not None:
            self._state_thread.check("self.keys()", self.context.name)
        self._check_no_key()
        loop = self._loop = object()
        try:
            for key in backend.each_key():
                self.key = key
                yield key
                if self._loop is not loop:  # the iterator was kept for longer than the hook
                    self._check_no_key()
                    raise NoCurrentKey("an iterator of self.keys() from an earlier call", self.context.name)
        finally:
            if self._loop is loop:
                self._leave_key()

    def _belong_here(self, misused: Callable[[CallIsOver], None]) -> None:
        """Its state, if it has no coroutines, is that of this thread."""
        if self._calls is None and hasattr(self, "_backend"):
            self._state_thread = OwnThread(misused)
            if isinstance(self._backend, HeapScope):
                self._backend.owner = self._state_thread

    def _has_key(self) -> bool:
        return self._backend.current_key is not NO_KEY

    def _check_no_key(self) -> None:
        if self._has_key():
            raise HasCurrentKey(self._backend.current_key, self.context.name)

    def _enter_key(self, key: Any) -> None:
        self._backend.current_key = self.key = key

    def _leave_key(self) -> None:
        self._loop = None
        if hasattr(self, "_backend"):  # `close` is called even if state could not be restored
            self._backend.current_key = NO_KEY
        if hasattr(self, "key"):
            del self.key

    def _leave_time(self, out: Collector) -> None:
        out.time_ms = None
        with suppress(AttributeError):
            del self.timestamp
