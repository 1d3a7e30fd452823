"""OfCall: an attribute of an operator that is another one in each of its coroutines, as `self.key` is."""

from __future__ import annotations

from inspect import iscoroutinefunction
from operator import attrgetter
from typing import Any, Final

from ...state.backends.unit_of_work import CURRENT
from ..errors import NoEventTime


class _Unset:
    """A class, as it is found again by whoever reads a pickled operator."""


ASYNC_HOOKS: Final = ("process", "process_2", "process_batch", "on_timer", "open", "close")
"""The methods of an operator that may be `async def`."""

PROCESSING: Final = ("process", "process_2", "process_batch")
"""Those of them that make an operator one with coroutines."""


def is_async(kind: type) -> bool:
    """Whether operators of this class run coroutines: what processes their records is `async def`."""
    return any(iscoroutinefunction(getattr(kind, name, None)) for name in PROCESSING)


class OfCall:
    """In a coroutine it is its call's; elsewhere what the task has set."""

    def __init__(self, name: str, given: str, default: Any = _Unset) -> None:
        self._name, self._of, self._own, self._default = name, attrgetter(given), f"_own_{name}", default

    def __get__(self, operator: Any, owner: type | None = None) -> Any:
        if operator is None:
            raise AttributeError(self._name)
        call = CURRENT.get()
        if call is not None:
            value = self._of(call)
            if value is None and self._name == "timestamp":
                self._missing(operator)
            return value
        own = getattr(operator, self._own, self._default)
        if own is _Unset:
            self._missing(operator)
        return own

    def __set__(self, operator: Any, value: Any) -> None:
        setattr(operator, self._own, value)

    def __delete__(self, operator: Any) -> None:
        try:
            delattr(operator, self._own)
        except AttributeError:
            raise AttributeError(self._name) from None

    def _missing(self, operator: Any) -> None:
        if self._name == "timestamp":
            raise NoEventTime(operator.context.name, "self.timestamp")
        raise AttributeError(
            f"{type(operator).__name__!r} object has no attribute {self._name!r}", name=self._name, obj=operator
        )
