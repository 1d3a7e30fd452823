"""KeyedReduce: combines the records of each key into one. Flink: StreamGroupedReduceOperator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...messages.shown import place_of_function
from ...state.backends.private_copy import CHANGEABLE, private_copy
from ...state.kinds.descriptors import ValueState
from ..unrun import UNRUN, refuse, refuse_none
from .collector import Collector
from .keyed_operator import KeyedOperator
from .reduced_type import check_reduced


class KeyedReduce(KeyedOperator):
    """Emits, for each record, its key's result so far: first the record itself, then `function(result, record)`.

    The function may change the result in place and return it, and whoever takes what was emitted may change that: of
    results that are dicts, lists or sets a copy is emitted, and of a record that is one itself a copy is kept.
    """

    _result: ValueState[Any] = ValueState(object, name="reduced")

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def process(self, record: Any, out: Collector) -> None:
        held = self._result.value()
        if held is None:
            result = kept = record
        else:
            result = kept = self._function(held, record)
            if UNRUN[type(result)]:
                refuse("the function of reduce", result, "return the new result")
            if result is None and record is not None:
                refuse_none(f"the function of reduce{place_of_function(self._function)}", "the new result")
            if type(result) is not type(held):
                check_reduced(self._function, held, record, result)
        if result is record:
            kept = private_copy(record)
        elif result is held or type(result) in CHANGEABLE:
            result = private_copy(result)
        self._result.update(kept)
        out.collect(result)
