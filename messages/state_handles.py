"""Where snapshotted state lies: pointers that travel in acknowledgements and stand in a checkpoint's metadata.

A handle holds either the bytes themselves (small state) or the path of a checksummed file. Handles are values; who
reads, writes and deletes the bytes is `state/`.
"""

from __future__ import annotations

from .ids import OperatorId, SharedFileId, SubtaskIndex
from .registry import message


@message
class StateHandle:
    """A run of bytes: inline (`data`), or a file (`path`, relative to the checkpoint directory's root)."""

    path: str | None
    data: bytes | None
    size_bytes: int
    checksum: int
    """CRC-32 of the bytes."""


@message
class SharedStateHandle:
    """One more file of a keyed snapshot, which other checkpoints of the same job may hold too.

    `file_id`: what the backend that wrote it calls it, so that a restore knows which file is which. Who needs the file
    is counted by its path: a file under another path is another file, even with the same id.
    """

    file_id: SharedFileId
    handle: StateHandle


@message
class KeyedStateHandle:
    """The keyed state of one operator subtask: key group -> (offset, length) inside `handle`."""

    first_key_group: int
    last_key_group: int
    """Inclusive, as in Flink's KeyGroupRange."""
    offsets: dict[int, tuple[int, ...]]
    handle: StateHandle
    backend: str
    """The format of the bytes, by the name that its writer gives it."""
    shared: tuple[SharedStateHandle, ...] = ()
    """Files beside `handle`, all of which a restore needs; any cut of the key groups keeps them all."""
    in_flight: int = 0
    """How many records of the operator's input are part of it, which coroutines had not done with; a cut of the key
    groups keeps the number of the whole.
    """


@message
class OperatorListHandle:
    """One operator list state: the items are msgpack values, item i lies at offsets[i] .. offsets[i+1]."""

    name: str
    mode: str
    """How it is dealt out on rescale: "split", "union" or "broadcast"."""
    offsets: tuple[int, ...]
    handle: StateHandle


@message
class OperatorSubtaskState:
    """What one operator of one subtask snapshotted."""

    keyed: tuple[KeyedStateHandle, ...] = ()
    lists: tuple[OperatorListHandle, ...] = ()


@message
class ChannelStateHandle:
    """Batches that were in flight on one input channel when an unaligned snapshot was taken, in order.

    Batch i lies at offsets[i] .. offsets[i+1]. Flink: InputChannelStateHandle.
    """

    edge: int
    producer_subtask: SubtaskIndex
    offsets: tuple[int, ...]
    handle: StateHandle


@message
class InputWatermark:
    """How far event time had come on one input channel of a subtask, in ms.

    Of a channel by its edge and producer; after a rescale of a whole input, with NO_EDGE: its channels are others now.
    """

    edge: int
    producer_subtask: SubtaskIndex
    input_index: int
    watermark_ms: int


NO_EDGE = -1


@message
class SubtaskState:
    """What one subtask snapshotted, by operator. `data_ended`: the snapshot was taken after EndOfData.

    A task restored from such a snapshot has emitted its final results already and does not call `on_end` again.
    """

    operators: dict[OperatorId, OperatorSubtaskState]
    data_ended: bool = False
    channels: tuple[ChannelStateHandle, ...] = ()
    """To be taken, in each channel's order, before anything new comes; empty for an aligned snapshot."""
    watermarks: tuple[InputWatermark, ...] = ()
    """By channel, those that had one. Restored before any record is taken, so that the same records are late."""
