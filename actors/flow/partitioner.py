"""Partitioners: how one edge deals a producer's batches out to the consumer's subtasks. Flink: StreamPartitioner.

Value machines, one per edge of a task. The order of records is kept within a channel, and no batch is empty or longer
than `MAX_BATCH_RECORDS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Protocol, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...messages import Partitioning
from ..errors import UserCodeError
from .elements import AnyBatch, Batch, TimedBatch, copied
from .key_selector import KeySelectionFailed, KeySelector

MAX_BATCH_RECORDS = 65_536
"""A longer batch is cut, so that no barrier waits long behind it, and a window holds more than one."""

_FEW_CHANNELS = 8
"""Up to this many channels it is quicker to look for the rows of each than to sort."""

Parts: TypeAlias = "list[tuple[int, AnyBatch]]"
"""(channel index, batch), in the order of sending."""


class Partitioner(Protocol):
    """Deals batches out."""

    def split(self, batch: AnyBatch) -> Parts:
        """What of the batch goes to which channel."""
        ...


def make_partitioner(
    partitioning: Partitioning,
    *,
    channels: int,
    selector: KeySelector | None = None,
    max_parallelism: int = 128,
    subtask_index: int = 0,
    local: frozenset[int] | None = None,
) -> Partitioner:
    """The partitioner of one edge of subtask `subtask_index`, whose consumer has `channels` subtasks.

    `local`: those of them in this process; None: all. A forward edge has one channel. Only a hash edge has a selector.
    """
    match partitioning:
        case Partitioning.FORWARD:
            assert channels == 1, "a forward edge joins one subtask to one"
            return Forward()
        case Partitioning.REBALANCE:
            return Rebalance(channels, subtask_index)
        case Partitioning.BROADCAST:
            return Broadcast(channels, local)
        case Partitioning.HASH:
            assert selector is not None, "a hash edge has a key selector"
            return Forward() if channels == 1 else HashByKey(channels, selector, max_parallelism)
        case _:
            assert_never(partitioning)


class Forward:
    """Everything to the only channel. Flink: ForwardPartitioner."""

    def split(self, batch: AnyBatch) -> Parts:
        return [(0, part) for part in _bounded(batch)]


class Rebalance:
    """Whole batches to the channels in turn, beginning with the producer's own index. Flink: RebalancePartitioner."""

    def __init__(self, channels: int, first: int) -> None:
        self._channels = channels
        self._next = first % channels

    def split(self, batch: AnyBatch) -> Parts:
        return [(self._take_turn(), part) for part in _bounded(batch)]

    def _take_turn(self) -> int:
        turn = self._next
        self._next = (turn + 1) % self._channels
        return turn


class Broadcast:
    """The same batch to every channel, to each reader in this process its own. Flink: BroadcastPartitioner.

    `local`: the channels to this process; None: all. Only the last of them gets the batch itself, behind all others:
    a channel to another process has encoded it by then.
    """

    def __init__(self, channels: int, local: frozenset[int] | None = None) -> None:
        local = frozenset(range(channels)) if local is None else local
        *others, self._last = sorted(range(channels), key=lambda channel: channel in local)
        self._others = [(channel, channel in local) for channel in others]

    def split(self, batch: AnyBatch) -> Parts:
        parts: Parts = []
        for whole in _bounded(batch):
            parts += [(channel, copied(whole) if is_local else whole) for channel, is_local in self._others]
            parts.append((self._last, whole))
        return parts


class HashByKey:
    """Each record to the subtask that owns its key group. Flink: KeyGroupStreamPartitioner."""

    def __init__(self, channels: int, selector: KeySelector, max_parallelism: int) -> None:
        self._channels = channels
        self._selector = selector
        self._max_parallelism = max_parallelism

    def split(self, batch: AnyBatch) -> Parts:
        records = batch.records if isinstance(batch, TimedBatch) else batch
        owners = self.owners(records)
        if isinstance(batch, TimedBatch):
            shares = _timed_shares(batch, owners, self._channels)
        elif not isinstance(batch, pa.RecordBatch):
            shares = _record_shares(batch, owners, self._channels)
        elif self._channels <= _FEW_CHANNELS:
            shares = _shares_of_few(batch, owners, self._channels)
        else:
            shares = _columnar_shares(batch, owners, self._channels)
        return [(channel, part) for channel, share in shares for part in _bounded(share)]

    def owners(self, batch: Batch) -> npt.NDArray[np.int32]:
        """The channel of each record."""
        return self._key_groups(batch) * self._channels // self._max_parallelism

    def _key_groups(self, batch: Batch) -> npt.NDArray[np.int32]:
        """Raises UserCodeError in the name of the operator whose key a record does not have."""
        try:
            return self._selector.key_groups(batch, self._max_parallelism)
        except KeySelectionFailed as error:
            if not self._selector.operator_name:
                raise
            raise UserCodeError(self._selector.operator_name, None) from error


def _record_shares(records: list[object], owners: npt.NDArray[np.int32], channels: int) -> Parts:
    shares: list[list[object]] = [[] for _ in range(channels)]
    add = [share.append for share in shares]
    for owner, record in zip(owners.tolist(), records, strict=True):
        add[owner](record)
    return [(channel, share) for channel, share in enumerate(shares) if share]


def _timed_shares(batch: TimedBatch, owners: npt.NDArray[np.int32], channels: int) -> Parts:
    """Of each channel its records in their order, and their times with them."""
    rows = [np.flatnonzero(owners == channel) for channel in range(channels)]
    parts: Parts
    if isinstance(batch.records, pa.RecordBatch):
        parts = cut_rows(batch.records, rows, [len(each) for each in rows])
    else:
        parts = _record_shares(batch.records, owners, channels)
    marks = batch.watermarks
    return [
        (
            channel,
            TimedBatch(part, batch.times[own], batch.column, None if marks is None else marks[own]),
        )
        for channel, part in parts
        for own in (rows[channel],)
    ]


def _shares_of_few(batch: pa.RecordBatch, owners: npt.NDArray[np.int32], channels: int) -> Parts:
    """Look for the rows of each channel."""
    rows = rows_by_owner(owners, channels)
    return cut_rows(batch, rows, [len(each) for each in rows])


def rows_by_owner(owners: npt.NDArray[Any], channels: int) -> list[npt.NDArray[np.intp]]:
    """For each channel its rows, in their order."""
    if channels <= _FEW_CHANNELS:
        return [np.flatnonzero(owners == channel) for channel in range(channels)]
    order, counts = _sorted_by_owner(owners, channels)
    return np.split(order, np.cumsum(counts)[:-1])


def _columnar_shares(batch: pa.RecordBatch, owners: npt.NDArray[np.int32], channels: int) -> Parts:
    """Sort the rows by owner, keeping their order."""
    order, counts = _sorted_by_owner(owners, channels)
    return cut_rows(batch, [order], counts.tolist())


def _sorted_by_owner(owners: npt.NDArray[Any], channels: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    order = np.argsort(owners.astype(np.uint16), kind="stable")  # 16 bits: NumPy sorts them by radix
    return order, np.bincount(owners, minlength=channels)


def cut_rows(
    batch: pa.RecordBatch, rows: list[npt.NDArray[np.intp]], counts: list[int]
) -> list[tuple[int, pa.RecordBatch]]:
    """Gather the rows of all channels once, and cut the result without copying again."""
    if max(counts) == len(batch):
        return [(counts.index(len(batch)), batch)]
    order = pa.array(np.concatenate(rows) if len(rows) > 1 else rows[0])
    grouped = pc.take(batch, order, boundscheck=False)  # checking takes as long as gathering
    return [
        (channel, grouped.slice(end - count, count))
        for channel, (count, end) in enumerate(zip(counts, accumulate(counts), strict=True))
        if count
    ]


def _bounded(batch: AnyBatch) -> Iterator[AnyBatch]:
    if len(batch) <= MAX_BATCH_RECORDS:
        yield batch
        return
    for start in range(0, len(batch), MAX_BATCH_RECORDS):
        if isinstance(batch, pa.RecordBatch | TimedBatch):
            yield batch.slice(start, MAX_BATCH_RECORDS)
        else:
            yield batch[start : start + MAX_BATCH_RECORDS]
