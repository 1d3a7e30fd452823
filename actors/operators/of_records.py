"""What type checkers know of the records of an operator or a stream: `class Total(KeyedOperator[Order, Row])`.

When a program runs there is nothing of it: `KeyedOperator[Order, Row]` is KeyedOperator itself. So the class of an
operator, its pickled form and what it costs are those of one that says nothing, which to a type checker takes and emits
records that may be anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from typing_extensions import TypeVar as WithDefault

    In = WithDefault("In", contravariant=True, default=Any)
    """A record that it takes; of two inputs, one of the first."""
    Out = WithDefault("Out", covariant=True, default=Any)
    """A record that it emits."""
    Given = WithDefault("Given", contravariant=True, default=Any)
    """A record that a collector takes."""
    Sent = WithDefault("Sent", default=Any)
    """A record that goes to a side output."""
    Handle = WithDefault("Handle", default=Any)
    """What a sink knows a transaction by."""
    T = WithDefault("T", covariant=True, default=Any)
    """A record of a stream."""
    U = WithDefault("U", covariant=True, default=Any)
    """One of the second of two streams."""

    class Records(list[Any], Generic[Given]):
        """The list behind a collector."""

    class TakesAndEmits(Generic[In, Out]): ...

    class Tagged(Generic[Sent]): ...

else:
    In, Out, Given, Sent, Handle, T, U = map(TypeVar, ("In", "Out", "Given", "Sent", "Handle", "T", "U"))

    class _Itself:
        """Named with types in brackets it is what it is without; a subclass with parameters of its own is generic."""

        __slots__ = ()

        def __class_getitem__(cls, types):
            return super().__class_getitem__(types) if Generic in cls.__mro__ else cls

    TakesAndEmits = Tagged = _Itself
    Records = list


class Columns(Protocol):
    """A `pa.RecordBatch`, whether pyarrow has types or not."""

    @property
    def num_rows(self) -> int: ...
    @property
    def schema(self) -> Any: ...
