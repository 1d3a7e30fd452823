"""CollectionSource: a list of Python records, which travels with the job. Flink: fromCollection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ...actors.flow.elements import Batch
from ...actors.operators.source import END, SourceState
from ...messages import dict_rows
from .indexed_source import IndexedSource


class CollectionSource(IndexedSource):
    """Subtask i of p emits every p-th record, from the i-th on; after a change of parallelism first what others left.

    It gives DictRows in place of plain dicts, from `open` on: the pickled ones are the user's own.
    Its offset is an IndexShare of places in the list. The list may have grown when it is restored.
    """

    def __init__(
        self, records: Iterable[Any], *, batch_rows: int = 1024, records_per_second: float | None = None
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        self.records = list(records)

    def open(self) -> None:
        super().open()
        self.records = dict_rows(self.records)

    def read(self, max_records: int) -> Batch | Literal[SourceState.END]:
        taken = self._share.take(max_records, len(self.records))
        return END if taken is None else self.records[taken.start : taken.stop : taken.step]
