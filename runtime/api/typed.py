"""What type checkers know of the records of a stream. Nothing of it is there when a program runs.

`DataStream[Bid]` is a stream of bids, and `DataStream` one of records that may be anything, as Rows and dicts may: they
are described by a TypedDict, a Protocol, or not at all, so that `dict[str, object]` would refuse programs that are
right. See docs/decisions/0066.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from ...actors.operators.collector import Collector
from ...actors.operators.of_records import In, Out, T
from ...actors.windows.window import Window
from ...actors.windows.window_function import ProcessWindowFunction

R = TypeVar("R")
"""What a function makes of a record."""

AnyTuple: TypeAlias = tuple[Any, ...]
Tuple = TypeVar("Tuple", bound=AnyTuple)
"""What a reduce of tuples makes of two. To pyright `lambda word: (word, 1)` gives `tuple[str, Literal[1]]`, and sums of
the second are no Literal[1].
"""

WindowFunction: TypeAlias = "Callable[[Any, Window, list[T], Collector[Any]], None]"
"""Of the key, the window, its records and `out`."""
WindowClass: TypeAlias = "ProcessWindowFunction[In, Out] | type[ProcessWindowFunction[In, Out]]"


class Record(Protocol):
    """A dict, whose items may be of any type. Its name is read in errors: "expected Callable[[int], Record]"."""

    def popitem(self) -> Any: ...  # a TypedDict, which says what its items are, has none
    def setdefault(self, key: Any, default: Any, /) -> Any: ...


class Expression(Protocol):
    """A `pyarrow.compute.Expression`, whether pyarrow has types or not."""

    def is_valid(self) -> Any: ...
    def cast(self, *args: Any, **kwargs: Any) -> Any: ...


class Schema(Protocol):
    """A `pa.Schema`, whether pyarrow has types or not."""

    @property
    def names(self) -> list[str]: ...
    def with_metadata(self, metadata: Any) -> Any: ...
