"""FlatMap: each record becomes any number of records. Flink: StreamFlatMap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..elements import Batch
from .operator import Collector
from .record_function import RecordFunction


class FlatMap(RecordFunction):
    """The function returns an iterable, or is a generator."""

    def process_batch(self, batch: Batch, out: Collector) -> None:
        out.emit(self._over(batch, self._flat_map))

    def _flat_map(self, records: Iterator[Any]) -> list[Any]:
        function = self._function
        return [item for record in records for item in function(record)]
