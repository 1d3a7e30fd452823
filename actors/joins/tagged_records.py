"""Tagged records: two keyed streams as one, whose records are (side, key, record), so that one window holds both.

Flink: CoGroupedStreams.UnionTypeInfo, TaggedUnion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, Literal

from ..flow.key_selector import KeySelector
from ..flow.records import rows_of
from ..operators.collector import Collector
from ..operators.operator import Operator, Takes
from ..windows.assigners import WindowAssigner
from ..windows.evictors import Evictor
from ..windows.triggers import Trigger
from ..windows.window import Window
from ..windows.window_function import ProcessWindowFunction
from .joined_columns import How

Side = Literal["left", "right"]

Tagged = tuple[Side, Any, Any]


def key_of(tagged: Tagged) -> Any:
    """The key that its stream has it by."""
    return tagged[1]


class TagSide(Operator):
    """Makes tagged records of one side."""

    takes: ClassVar[Takes] = "any"

    def __init__(self, side: Side, selector: KeySelector) -> None:
        self._side = side
        self._selector = selector

    def process_batch(self, batch: Any, out: Collector) -> None:
        keys = self._selector.keys(batch)
        records = batch if isinstance(batch, list) else rows_of(batch)
        out.emit(list(zip(repeat(self._side), keys, records, strict=False)), self.timestamps)


class OfTagged(WindowAssigner):
    """The windows of the record that is tagged."""

    def __init__(self, assigner: WindowAssigner) -> None:
        self._assigner = assigner
        self.time = assigner.time
        self.merges = assigner.merges

    def assign(self, record: Any, time_ms: int) -> Collection[Window]:
        return self._assigner.assign(record[2], time_ms)

    def default_trigger(self) -> Trigger:
        return self._assigner.default_trigger()

    def default_evictor(self) -> Evictor | None:
        return self._assigner.default_evictor()


class CoGroup(ProcessWindowFunction):
    """Gives a window's records of both sides to `function(key, window, left, right, out)`."""

    allows_lateness: ClassVar[bool] = False
    """Whether the program can keep its windows for late records."""

    def __init__(self, function: Callable[[Any, Window, list[Any], list[Any], Collector], Any]) -> None:
        self._function = function

    @property
    def results(self) -> str:
        """How they are called in texts; empty for those of a function of the user's."""
        return "(left, right)" if isinstance(self._function, Pairs) else ""

    def process(self, window: Window, records: Sequence[Any], out: Collector) -> None:
        left = [record for side, _, record in records if side == "left"]
        right = [record for side, _, record in records if side == "right"]
        return self._function(self.key, window, left, right, out)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Pairs:
    """The function of a window join of records: pairs (left, right), with None for a side that is missing."""

    how: How

    def __call__(self, key: Any, window: Window, left: list[Any], right: list[Any], out: Collector) -> None:
        if not right and self.how in ("left", "full"):
            right = [None]
        elif not left and self.how in ("right", "full"):
            left = [None]
        for one in left:
            for other in right:
                out.collect((one, other))
