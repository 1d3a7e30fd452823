"""SourceReader: polls a source, and says to the `assign_timestamps` behind it which split the records come from.

It leaves a source alone that runs ahead of others that wait for it. Flink: SourceOperator, SourceReaderBase.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from ..errors import UnwantedResult
from ..flow.elements import Batch
from .assign_timestamps import AssignTimestamps
from .filter import Filter
from .flat_map import FlatMap
from .map import Map
from .map_batches import MapBatches
from .operator import Operator
from .source import END, FromSplit, Source, SourceState, poll

_KEEPING_NOTHING = (Map, Filter, FlatMap, MapBatches)
"""What comes out of them belongs to the batch that went in."""


class SourceReader:
    """One attempt's. `chain`: the operators behind the source in the same task."""

    def __init__(self, source: Source, chain: Sequence[Operator]) -> None:
        self.source = source
        self.assigner = assigner_behind(chain)
        self._names: Collection[str] | None = None

    @property
    def is_paused(self) -> bool:
        """Whether nothing is to be polled until others have caught up."""
        return self.assigner is not None and self.assigner.splits.is_paused

    def settle(self) -> None:
        """See which splits the source has now. Raises UnwantedResult."""
        names = self.source.current_splits()
        if names is not None and names != self._names:
            if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
                raise UnwantedResult(
                    f"{type(self.source).__name__}.current_splits: wanted the ids of the splits as strings that are "
                    f"not empty, such as ['partition-0'], found {names!r:.100}"
                )
            names = tuple(names)
        self._names = names
        if self.assigner is not None and names is not None:
            self.assigner.settle(names)

    def poll(self) -> Batch | Literal[SourceState.END] | None:
        """The source's next batch. Nothing is polled as long as `is_paused`. Raises what the source does, and
        UnwantedResult for records that come from no split, or from one although there are none.
        """
        self.settle()
        if self.assigner is not None:
            if self.assigner.splits.is_paused:
                self.assigner.clock.stop()
                return None
            self.source.paused_splits = self.assigner.splits.paused
            self.assigner.clock.go_on()
        polled = poll(self.source)
        if polled is None or polled is END:
            return polled
        is_from_split = isinstance(polled, FromSplit)
        if is_from_split is (self._names is None):
            raise self._wrong_kind(polled)
        if not isinstance(polled, FromSplit):
            return polled
        if self.assigner is not None:
            self.assigner.next_from(polled.split)
        return polled.records

    def _wrong_kind(self, polled: object) -> UnwantedResult:
        name = type(self.source).__name__
        if isinstance(polled, FromSplit):
            return UnwantedResult(
                f"{name}.poll returned records of split {polled.split!r}, but {name}.current_splits returns None: "
                "define it to return the ids of all splits that the subtask reads now"
            )
        return UnwantedResult(
            f"{name}.poll returned a batch that does not say which split it comes from, and {name}.current_splits "
            f"names {len(self._names or ())}: return FromSplit(split, batch)"
        )


def assigner_behind(chain: Sequence[Operator]) -> AssignTimestamps | None:
    """The operator that assigns event times to just what the source gives, batch by batch, if there is one."""
    for operator in chain:
        if isinstance(operator, AssignTimestamps):
            return operator
        if type(operator) not in _KEEPING_NOTHING:
            return None
    return None
