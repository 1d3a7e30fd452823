"""What a window holds: all its records, or what they come to when they are combined one by one. Flink: the kinds of
InternalAppendingState that a WindowOperator is made with; AggregateFunction.

With an evictor a window holds its records and their times, and they are combined when it fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any, Final, Protocol, TypeAlias

from ...state.backends.private_copy import CHANGEABLE, private_copy
from ...state.kinds.descriptors import FoldingState, ListState, ReducingState
from ...state.kinds.state_declaration import MergingStateDeclaration
from ..operators.reduced_type import check_reduced
from .errors import InvalidWindow

CONTENTS: Final = "window contents"
"""The name of the state."""

AnyState: TypeAlias = MergingStateDeclaration


class AggregateFunction:
    """Subclass it for an aggregation of your own: records are added to an accumulator, which is plain data."""

    @property
    def rule(self) -> str:
        """The kind of its accumulators, by the name of the class: those of another kind are refused."""
        return type(self).__qualname__

    def create_accumulator(self) -> Any:
        """That of no records."""
        raise NotImplementedError(f"{type(self).__name__}.create_accumulator is not defined")  # abstract

    def add(self, accumulator: Any, record: Any) -> Any:
        """The accumulator with one record more; it may be the same, changed."""
        raise NotImplementedError(f"{type(self).__name__}.add is not defined")  # abstract

    def get_result(self, accumulator: Any) -> Any:
        """The result. The accumulator stays, and more may be added later."""
        return accumulator

    def merge(self, one: Any, other: Any) -> Any:
        """One accumulator of two; needed for sessions."""
        raise InvalidWindow(
            f"{type(self).__name__} cannot be used with sessions, whose windows merge: define merge(one, other) as well"
        )


class Contents(Protocol):
    """One way to hold records."""

    aggregate: AggregateFunction | None = None

    @property
    def rule(self) -> str:
        """Text that is equal for equal contents; of code, the name alone."""
        ...

    def declaration(self) -> AnyState:
        """The state, to which records are added."""
        ...

    def given(self, held: Any) -> Sequence[Any]:
        """What the function gets of what the state holds."""
        ...

    def combined(self, records: Sequence[Any]) -> Sequence[Any]:
        """What the function gets of these records, which are at least one."""
        ...


class AllRecords(Contents):
    """The function gets every record, in the order in which they came."""

    rule = "all records"

    def declaration(self) -> AnyState:
        return ListState(object, name=CONTENTS)

    def given(self, held: Any) -> Sequence[Any]:
        records: Sequence[Any] = held
        return records

    def combined(self, records: Sequence[Any]) -> Sequence[Any]:
        return records


class Reduced(Contents):
    """The function gets what the records were combined to, two by two."""

    rule = "a reduced record"

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def declaration(self) -> AnyState:
        declared = ReducingState(object, self._function, name=CONTENTS)
        declared.look_at_first = partial(check_reduced, self._function)
        return declared

    def given(self, held: Any) -> Sequence[Any]:
        return (_own(held),)

    def combined(self, records: Iterable[Any]) -> Sequence[Any]:
        first, *others = records
        held = private_copy(first)
        for record in others:
            result = self._function(held, record)
            if type(result) is not type(held):
                check_reduced(self._function, held, record, result)
            held = result
        return (held,)


class Aggregated(Contents):
    """The function gets the result of an accumulator."""

    @property
    def rule(self) -> str:
        return self._function.rule

    def __init__(self, function: AggregateFunction) -> None:
        self.aggregate = function
        self._function = function

    def declaration(self) -> AnyState:
        function = self._function
        initial = function.create_accumulator()
        return FoldingState(object, initial, function.add, merge=function.merge, name=CONTENTS)

    def given(self, held: Any) -> Sequence[Any]:
        return (_own(self._function.get_result(held)),)

    def combined(self, records: Sequence[Any]) -> Sequence[Any]:
        return self.given(reduce(self._function.add, records, self._function.create_accumulator()))


def _own(held: Any) -> Any:
    """For the function, and whoever gets what it emits: the window may go on to change in place what it holds."""
    return private_copy(held) if type(held) in CHANGEABLE else held
