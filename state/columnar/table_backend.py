"""TableBackend: what the keyed state of aggregations and of windows over columns has in common: one table.

It is made when the first batch, or a restored snapshot, tells the types of the columns. Not here: its snapshots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar

from ...messages import CheckpointId
from ..backends.backend import NO_KEY, StateClock
from ..backends.run_ledger import RunLedger
from ..errors import StateIncompatible
from ..keys.key_groups import KeyGroupRange
from ..kinds.aggregates import Aggregate
from ..kinds.aggregation_fit import STATE_NAME, aggregation_misfit
from .slot_groups import SlotGroups

Table = TypeVar("Table", bound=Sized)


class TableBackend(ABC, Generic[Table]):
    """Of one subtask. Owned by its task; snapshots are written elsewhere."""

    def __init__(
        self,
        keys: Sequence[str],
        aggregates: Mapping[str, Aggregate],
        key_groups: KeyGroupRange,
        max_parallelism: int,
    ) -> None:
        self.current_key: Any = NO_KEY
        self.operator_name = ""
        self.clock: StateClock | None = None
        self.table: Table | None = None
        """None until something has come."""
        self._keys, self._aggregates = tuple(keys), dict(aggregates)
        self._key_groups, self._max_parallelism = key_groups, max_parallelism
        self._groups = SlotGroups()
        self._runs: RunLedger | None = None

    def read_ahead(self, keys: Sequence[Any]) -> None:
        """All is in memory."""

    def read_only(self) -> AbstractContextManager[None]:
        """Questions see results, which are copies."""
        return nullcontext()

    def track_changes(self, owner: str) -> None:
        self._runs = RunLedger(owner)

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        if self._runs is not None:
            self._runs.complete(checkpoint_id)

    @abstractmethod
    def keys(self, state_name: str = "", namespace: Hashable = ()) -> Collection[Any]: ...

    def each_key(self) -> Iterator[Any]:
        for key in self.keys():
            self.current_key = key
            yield key

    def entry_count(self) -> int:
        return len(self.table) if self.table is not None else 0

    stored_entries = entry_count

    def close(self) -> None:
        self.table = None

    def _check_header(self, header: Mapping[str, Any], formats: Collection[int], own: dict[str, Any]) -> None:
        """`own`: the description of this one, without types. Raises StateIncompatible, and ValueError for another
        format.
        """
        if header["format"] not in formats:
            raise ValueError(f"format {header['format']}; wanted one of {tuple(formats)}")
        wanted, found = self._max_parallelism, header["max_parallelism"]
        if found != wanted:
            raise StateIncompatible(STATE_NAME, f"max_parallelism {wanted}", f"max_parallelism {found}")
        check_same(own, {**header, "types": None})


def check_same(own: dict[str, Any], stored: dict[str, Any]) -> None:
    """Two descriptions of aggregations. Raises StateIncompatible."""
    difference = aggregation_misfit(own, stored)
    if difference is not None:
        raise StateIncompatible(f"{STATE_NAME}{difference.what}", difference.declared, difference.stored)
