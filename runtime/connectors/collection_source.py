"""CollectionSource: a list of Python records, which travels with the job. Flink: fromCollection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from ...actors.flow.elements import Batch
from ...actors.operators.source import END, SourceState
from ...messages import dict_rows
from .index_share import IndexShare
from .paced_source import PacedSource


class CollectionSource(PacedSource):
    """Subtask i of p emits every p-th record, from the i-th on; after a change of parallelism first what others left.

    It gives DictRows in place of plain dicts, from `open` on: the pickled ones are the user's own.
    Its offset is an IndexShare of places in the list. The list may have grown when it is restored.
    """

    _share: IndexShare

    def __init__(
        self, records: Iterable[Any], *, batch_rows: int = 1024, records_per_second: float | None = None
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        self.records = list(records)

    def open(self) -> None:
        super().open()
        self.records = dict_rows(self.records)
        self._share = IndexShare.fresh(self.context.subtask_index, self.context.parallelism)

    def read(self, max_records: int) -> Batch | Literal[SourceState.END]:
        taken = self._share.take(max_records, len(self.records))
        return END if taken is None else self.records[taken.start : taken.stop : taken.step]

    def offset(self) -> dict[str, Any]:
        return self._share.to_plain()

    def seek(self, offset: dict[str, Any]) -> None:
        self._share = IndexShare.from_plain(offset, self.context.parallelism)

    def rescale(self, offsets: Sequence[dict[str, Any]]) -> None:
        self._share = IndexShare.dealt_out(offsets, self.context.subtask_index, self.context.parallelism)
