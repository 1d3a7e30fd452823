"""Channel state: the elements of one input channel that are part of an unaligned snapshot, as a handle, and back.

Flink: ChannelStateWriter, SequentialChannelStateReader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from typing import TypeVar

from ...messages import ChannelStateHandle, MalformedMessage, SubtaskIndex
from ..backends.backend import ReadState
from ..errors import CorruptState
from ..handle_bytes import inline_handle

T = TypeVar("T")


def channel_handle(edge: int, producer_subtask: SubtaskIndex, packed: Iterable[bytes]) -> ChannelStateHandle:
    """An inline handle of packed elements, in the channel's order."""
    parts = list(packed)
    offsets = tuple(accumulate(map(len, parts), initial=0))
    return ChannelStateHandle(edge, producer_subtask, offsets, inline_handle(b"".join(parts)))


def read_channel(handle: ChannelStateHandle, read: ReadState, unpack: Callable[[bytes], T]) -> list[T]:
    """The elements, in order. `unpack` raises MalformedMessage. Raises CorruptState, or another StorageError."""
    data = read(handle.handle)
    path = handle.handle.path or "inline state"
    try:
        return [unpack(_part(data, start, end)) for start, end in pairwise(handle.offsets)]
    except MalformedMessage as error:
        channel = f"the batches in flight on edge {handle.edge} from subtask {handle.producer_subtask}"
        raise CorruptState(path, channel, str(error)) from error


def _part(data: bytes, start: int, end: int) -> bytes:
    if not 0 <= start <= end <= len(data):
        raise MalformedMessage(f"a batch from byte {start} to {end} of {len(data)}")
    return data[start:end]
