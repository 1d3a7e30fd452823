"""FlatMap: each record becomes any number of records. Flink: StreamFlatMap."""

from __future__ import annotations

from collections.abc import Iterator
from types import GeneratorType
from typing import Any

from ..flow.elements import Batch
from ..unrun import UNRUN, check_records, refuse
from .collector import Collector
from .record_function import RecordFunction


class FlatMap(RecordFunction):
    """The function returns an iterable, or is a generator."""

    def process_batch(self, batch: Batch, out: Collector) -> None:
        out.emit(self._over(batch, self._flat_map))

    def _flat_map(self, records: Iterator[Any]) -> list[Any]:
        function = self._function
        items: list[Any] = []
        for record in records:
            made = function(record)
            try:
                items.extend(made)
            except TypeError:
                if UNRUN[type(made)] and not isinstance(made, GeneratorType):
                    refuse("the function of flat_map", made)
                raise
        check_records("the iterable of flat_map", items, "yield its items, with `yield from`", one_each=False)
        return items
