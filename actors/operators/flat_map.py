"""FlatMap: each record becomes any number of records. Flink: StreamFlatMap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from types import GeneratorType
from typing import Any

import numpy as np

from ...messages import Row
from ...messages.shown import place_of_function
from ..flow.elements import Batch, TimedBatch
from ..unrun import ONE_RECORD, UNRUN, check_records, refuse, refuse_single
from .collector import Collector
from .record_function import RecordFunction

_FUNCTION = "the function of flat_map"


class FlatMap(RecordFunction):
    """The function returns an iterable, or is a generator."""

    def process_batch(self, batch: Batch, out: Collector) -> None:
        counts: list[int] | None = None if self.timestamps is None else []
        items = self._over(batch, partial(self._flat_map, counts))
        if self.timestamps is None or counts is None:
            out.emit(items)
        elif items:
            marks = None if self.split_watermarks is None else np.repeat(self.split_watermarks, counts)
            out.emit_element(TimedBatch(items, np.repeat(self.timestamps, counts), None, marks))

    def _flat_map(self, counts: list[int] | None, records: Iterator[Any]) -> list[Any]:
        """All items in turn; their number for each record is added to `counts`."""
        function = self._function
        items: list[Any] = []
        before = 0
        for record in records:
            made = function(record)
            if type(made) in ONE_RECORD or isinstance(made, Row):
                refuse_single(f"{_FUNCTION}{place_of_function(function)}", made)
            try:
                items.extend(made)
            except TypeError:
                if UNRUN[type(made)] and not isinstance(made, GeneratorType):
                    refuse(f"{_FUNCTION}{place_of_function(function)}", made)
                if not isinstance(made, Iterable):
                    refuse_single(f"{_FUNCTION}{place_of_function(function)}", made)
                raise
            if counts is not None:
                counts.append(len(items) - before)
                before = len(items)
        check_records("the iterable of flat_map", items, "yield its items, with `yield from`", one_each=False)
        return items
