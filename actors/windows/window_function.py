"""ProcessWindowFunction: what a user's code makes of a window that fires. Flink: ProcessWindowFunction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ...state.errors import InvalidState
from ...state.kinds.declared_states import declared_states
from ...state.kinds.state_declaration import KeyedStateDeclaration
from ..operators.collector import Collector
from ..operators.of_records import In, Out, TakesAndEmits
from ..operators.operator_context import OperatorContext
from .window import Window

if TYPE_CHECKING:
    from ..operators.keyed_operator import KeyedOperator


class ProcessWindowFunction(TakesAndEmits[In, Out]):
    """Subclass it where a function is not enough: for state, for `open` and `close`.

    States that it declares are those of one key and window, and are forgotten with the window; those named in
    `states_of_key` are the key's, in all its windows.
    """

    states_of_key: ClassVar[tuple[str, ...]] = ()

    operator: KeyedOperator
    """The operator that it runs in, from `open` on."""

    @property
    def key(self) -> Any:
        """The key at hand."""
        return self.operator.key

    @property
    def context(self) -> OperatorContext:
        return self.operator.context

    @property
    def watermark(self) -> int:
        """The event time that the operator has reached."""
        return self.operator.watermark

    def processing_time(self) -> int:
        """The clock of the task, in ms."""
        return self.operator.processing_time()

    def open(self) -> None:
        """Called once per attempt; state is restored, and there is no key."""

    def process(self, window: Window, records: Sequence[In], out: Collector[Out]) -> None:
        """A window fires: take its records, or the one result that they were combined to. Results have the window's
        last time, end - 1.
        """
        raise NotImplementedError(f"{type(self).__name__}.process is not defined")  # abstract

    def clear(self, window: Window) -> None:
        """The window is forgotten, with the states that are declared here but those of the key."""

    def close(self) -> None:
        """The attempt ends."""

    def _check_columns(self, schema: pa.Schema) -> None:
        """The columns of the records, where they are known before the job runs. Raises ValueError for one that it needs
        and that is not there, or does not fit.
        """


class PlainWindowFunction(ProcessWindowFunction):
    """A function of (key, window, records, out)."""

    def __init__(self, function: Callable[[Any, Window, Sequence[Any], Collector], None]) -> None:
        self._function = function

    def process(self, window: Window, records: Sequence[Any], out: Collector) -> None:
        return self._function(self.operator.key, window, records, out)  # what it returns by mistake is refused


class EmitEach(ProcessWindowFunction):
    """Emits what it gets: the results of reduce and aggregate without a function."""

    def process(self, window: Window, records: Sequence[Any], out: Collector) -> None:
        for record in records:
            out.collect(record)


def states_of(function: ProcessWindowFunction) -> dict[str, KeyedStateDeclaration]:
    """The states that it declares, by attribute. Raises InvalidState for what is not keyed state."""
    declared = declared_states(type(function))
    kind = type(function).__qualname__
    for attribute, each in declared.items():
        if not isinstance(each, KeyedStateDeclaration):
            raise InvalidState(f"{kind}.{attribute}: wanted keyed state in a window function, found a {each.kind}")
    if unknown := [name for name in function.states_of_key if name not in declared]:
        raise InvalidState(f"{kind}.states_of_key names {unknown[0]!r}, and there is no such state declared")
    return {name: each for name, each in declared.items() if isinstance(each, KeyedStateDeclaration)}
