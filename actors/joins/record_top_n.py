"""RecordTopN: `top_n` of records of any kind; results are (kind, record, rank). It does what TopN says, after every
record; the order is that of what a function returns for a record, or of its fields: None last, NaN before it, as TopN
has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...state.kinds.descriptors import ListState
from ..flow.changelog import AFTER, BEFORE, DELETE, INSERT, Changelog
from ..operators.collector import Collector
from ..operators.keyed_operator import KeyedOperator
from .sort_order import order_rule


class RecordTopN(KeyedOperator):
    """See the module. `by` None: by event time, the newest first, and of records without event times by arrival."""

    _top: ListState[Any] = ListState(object, name="top")
    """(record, what it is sorted by) from the first to the n-th, as lists."""

    def __init__(self, n: int, by: Callable[[Any], Any] | None, descending: bool, *, ranked: bool = True) -> None:
        self._n, self._by, self._descending, self._ranked = n, by, descending, ranked

    def _rules(self) -> dict[str, str]:
        names = self._by.names if isinstance(self._by, _Fields) else ("what a function says",)
        ways = (self._descending,) * len(names)
        return {"n": str(self._n), "order": "newest first" if self._by is None else order_rule(names, ways)}

    @property
    def results(self) -> str:
        """How they are called in texts."""
        return "(kind, record, rank)" if self._ranked else "(kind, record)"

    @property
    def _changelog(self) -> Changelog:
        return Changelog(at_once=1 if self._ranked else self._n)

    def process(self, record: Any, out: Collector) -> None:
        value = self._by(record) if self._by is not None else (0 if self.timestamps is None else self.timestamp)
        before = self._top.get()
        place = self._place(value, before)
        if place >= self._n:
            return
        after = [*before[:place], [record, value], *before[place:]]
        self._top.update(after[: self._n])
        if len(before) == self._n:
            self._emit(DELETE, before[-1][0], self._n, out)
        if self._ranked:
            moved = list(enumerate(before[place : self._n - 1], place + 1))
            for rank, (held, _) in moved:
                self._emit(BEFORE, held, rank, out)
            for rank, (held, _) in moved:
                self._emit(AFTER, held, rank + 1, out)
        self._emit(INSERT, record, place + 1, out)

    def _place(self, value: Any, before: list[Any]) -> int:
        """Before the first that is worse, or for newest first, no better."""
        low, high = 0, len(before)
        while low < high:
            middle = (low + high) // 2
            order = _compared(value, before[middle][1], descending=self._descending)
            if order < 0 or (order == 0 and self._by is None):
                high = middle
            else:
                low = middle + 1
        return low

    def _emit(self, kind: str, record: Any, rank: int, out: Collector) -> None:
        out.collect((kind, record, rank) if self._ranked else (kind, record))


def _compared(value: Any, held: Any, *, descending: bool) -> int:
    """Below 0 if the value comes first, above 0 if what is held does. None comes last, NaN before it, up and down."""
    if type(value) is tuple and type(held) is tuple:
        parts = (_compared(one, other, descending=descending) for one, other in zip(value, held, strict=True))
        return next(filter(None, parts), 0)
    absent, held_absent = _absence(value), _absence(held)
    if absent or held_absent:
        return absent - held_absent
    if value == held:
        return 0
    return -1 if (value > held if descending else value < held) else 1


def _absence(value: Any) -> int:
    return 2 if value is None else int(value != value)


def of_field(names: Sequence[str]) -> Callable[[Any], Any]:
    """What gives these fields of a record: items of a dict, attributes of any other."""
    return _Fields(tuple(names))


class _Fields:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __call__(self, record: Any) -> Any:
        get = record.__getitem__ if isinstance(record, dict) else partial(getattr, record)
        values = tuple(get(name) for name in self.names)
        return values[0] if len(values) == 1 else values
