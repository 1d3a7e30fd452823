"""Collector: where an operator puts its output, in order, until its task takes it.

Made by the OperatorChain, one for each operator, and empty again before the operator is called again. It sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..flow.elements import Batch


class _Each:
    """Batches that are still to be made."""

    __slots__ = ("batches",)

    def __init__(self, batches: Iterator[Batch]) -> None:
        self.batches = batches


class Collector(list[Any]):
    """Where an operator puts its output. Order is kept between `collect` and `emit`; use nothing else of it.

    It is the list of the records collected since the last batch: so `collect` is a list's own `append`, which costs a
    quarter of what a method of ours would.
    """

    __slots__ = ("_batches",)

    if TYPE_CHECKING:

        def collect(self, record: Any, /) -> None:
            """Add one record."""

    else:
        collect = list.append

    def __init__(self) -> None:
        super().__init__()
        self._batches: list[Any] = []

    def emit(self, batch: Batch) -> None:
        """Add a whole batch: a `pa.RecordBatch` or a list, which is the collector's from now on. An empty one is
        dropped.
        """
        self._seal()
        if len(batch):
            self._batches.append(batch)

    def emit_each(self, batches: Iterator[Batch]) -> None:
        """Add batches, none of them empty, that are made one by one as they are sent on: before the operator is called
        again. Therefore large ones need not all be in memory, however many they are.
        """
        self._seal()
        self._batches.append(_Each(batches))

    def drain(self) -> list[Batch]:
        """Take everything out, in order."""
        return list(self.taken())

    def taken(self) -> Iterator[Batch]:
        """The same one by one; to be used up before anything else is added."""
        self._seal()
        batches, self._batches = self._batches, []
        for batch in batches:
            if type(batch) is _Each:
                yield from batch.batches
            else:
                yield batch

    def _seal(self) -> None:
        if self:
            self._batches.append(self[:])
            self.clear()
