"""KeyedReduce: combines the records of each key into one. Flink: StreamGroupedReduceOperator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...state.kinds.descriptors import ValueState
from ..unrun import UNRUN, refuse
from .collector import Collector
from .keyed_operator import KeyedOperator


class KeyedReduce(KeyedOperator):
    """Emits, for each record, its key's result so far: first the record itself, then `function(result, record)`."""

    _result: ValueState[Any] = ValueState(object, name="reduced")

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def process(self, record: Any, out: Collector) -> None:
        held = self._result.value()
        result = record if held is None else self._function(held, record)
        if UNRUN[type(result)]:
            refuse("the function of reduce", result, "return the new result")
        self._result.update(result)
        out.collect(result)
