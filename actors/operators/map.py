"""Map: each record becomes what a function returns for it. Flink: StreamMap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..flow.elements import Batch, TimedBatch
from ..unrun import check_records
from .collector import Collector
from .record_function import RecordFunction


class Map(RecordFunction):
    """One record out for each record in."""

    def process_batch(self, batch: Batch, out: Collector) -> None:
        results = self._over(batch, self._map)
        if self.timestamps is None:
            out.emit(results)
        else:
            out.emit_element(TimedBatch(results, self.timestamps, None, self.split_watermarks))

    def _map(self, records: Iterator[Any]) -> list[Any]:
        function = self._function
        results = [function(record) for record in records]
        check_records("the function of map", results, "return one record; flat_map takes a generator")
        return results
