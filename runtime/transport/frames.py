"""Frames: what stands on the wire between two TaskManagers.

A frame is one ZeroMQ message: a header of fixed size, and for a batch one part more, its payload. The header says the
kind, the channel, the frame's number in that channel and direction (from 0, without gaps), and two integers whose
meaning depends on the kind. Control elements and credit fit into the header.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from ...messages import ChannelId, MalformedMessage
from ...state.columns.batch_codec import BatchFormat

VERSION = 3
"""First byte of every frame; a peer that speaks another version is not understood."""

_HEADER = struct.Struct("!BBqQqq")

HEADER_BYTES = _HEADER.size


class FrameKind(IntEnum):
    """Who sends it, and what `first` and `second` hold."""

    OPEN = 1  # consumer: its window, in bytes
    CREDIT = 2  # consumer: this number of bytes more, since it has taken them
    CLOSE = 3  # consumer: it takes nothing any more

    NOT_UNDERSTOOD = 7  # producer: it could not read a frame of the consumer's TaskManager, and takes nothing from it
    ROUND_MARK = 8  # producer: number of a loop's round, records that were sent back in it
    CRITERION_MARK = 9  # producer: number of a loop's round, records that want another one
    PING = 10  # producer: nothing; it fails to send when the consumer's TaskManager is gone
    ABORT = 11  # producer: nothing more comes, and the end has not been reached
    BARRIER = 12  # producer: checkpoint id, timestamp
    CANCEL_MARKER = 13  # producer: checkpoint id
    WATERMARK = 14  # producer: timestamp
    END_OF_DATA = 15  # producer
    END_OF_PARTITION = 16  # producer
    IDLE = 17  # producer: 1 if it is idle, 0 if it is not any more
    STOP_BARRIER = 18  # producer: checkpoint id, timestamp; the job stops there
    WHOLE_BARRIER = 19  # producer: checkpoint id, timestamp; its snapshots are whole

    # A batch: producer, with payload
    ARROW = BatchFormat.ARROW
    RECORDS = BatchFormat.RECORDS
    TUPLES = BatchFormat.TUPLES
    ROWS = BatchFormat.ROWS
    DICTS = BatchFormat.DICTS
    DICT_ROWS = BatchFormat.DICT_ROWS
    MIXED_DICT_ROWS = BatchFormat.MIXED_DICT_ROWS
    TIMED = BatchFormat.TIMED
    NAMED = 40  # number of the first key; an Arrow batch whose keys get numbers from there on
    NUMBERED = 41  # number of the first key, and of the others after it, or -1: the payload has the numbers

    @property
    def is_batch(self) -> bool:
        """Batches have a payload, and need credit."""
        return self >= FrameKind.ARROW


class Header(NamedTuple):
    """The fixed part of a frame."""

    kind: FrameKind
    channel_id: ChannelId
    sequence: int
    first: int = 0
    second: int = 0


def pack_header(header: Header) -> bytes:
    """A header to bytes. Raises struct.error for an integer of more than 64 bits."""
    return _HEADER.pack(VERSION, *header)


def unpack_header(data: bytes | memoryview) -> Header:
    """Bytes to a header. Raises MalformedMessage."""
    if len(data) != HEADER_BYTES:
        raise MalformedMessage(f"a frame's header has {HEADER_BYTES} bytes, found {len(data)}")
    version, kind, channel_id, sequence, first, second = _HEADER.unpack(data)
    if version != VERSION:
        raise MalformedMessage(f"frame of version {version}, wanted {VERSION}")
    try:
        return Header(FrameKind(kind), ChannelId(channel_id), sequence, first, second)
    except ValueError:
        raise MalformedMessage(f"unknown kind of frame: {kind}") from None
