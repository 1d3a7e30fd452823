"""CollectionSource: a list of Python records, which travels with the job. Flink: fromCollection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ...actors.elements import Batch
from ...actors.operators.source import END, SourceState
from .paced_source import PacedSource


class CollectionSource(PacedSource):
    """Subtask i of p emits every p-th record, from the i-th on. Its offset is the next record's index in the list."""

    def __init__(
        self, records: Iterable[Any], *, batch_rows: int = 1024, records_per_second: float | None = None
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        self.records = list(records)
        self._next = 0

    def open(self) -> None:
        super().open()
        self._next = self.context.subtask_index

    def read(self, max_records: int) -> Batch | Literal[SourceState.END]:
        if self._next >= len(self.records):
            return END
        step = self.context.parallelism
        batch = self.records[self._next : self._next + max_records * step : step]
        self._next += len(batch) * step
        return batch

    def offset(self) -> dict[str, int]:
        return {"next": self._next, "parallelism": self.context.parallelism}

    def seek(self, offset: dict[str, int]) -> None:
        self._check_parallelism(offset)
        self._next = offset["next"]
