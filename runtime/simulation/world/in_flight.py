"""What a completed checkpoint has in flight, as its files tell it: how many records, by channel."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from ....actors.barriers.in_flight_elements import unpack_in_flight
from ....actors.flow.elements import Watermark, WatermarkStatus
from ....messages import ChannelDescriptor, SubtaskIndex
from ....state import CheckpointStorage, StorageError, handle_reader, read_channel
from .seen_files import SeenFiles

Place: TypeAlias = tuple[int, SubtaskIndex, SubtaskIndex]
"""A channel of the job, whichever attempts it joins: edge, producer subtask, consumer subtask."""


def place_of(channel: ChannelDescriptor) -> Place:
    return channel.edge, channel.producer_subtask, channel.consumer_subtask


def records_in_flight(storage: CheckpointStorage, path: str, seen: SeenFiles) -> Counter[Place] | None:
    """Of the checkpoint whose metadata lie there; None when they cannot be read, which is for others to judge."""
    found: Counter[Place] = Counter()
    try:
        for vertex in seen.metadata(storage, path).vertices.values():
            for subtask, state in vertex.subtasks.items():
                for channel in state.channels:
                    elements = read_channel(channel, handle_reader(storage), unpack_in_flight)
                    records = sum(len(each) for each in elements if not isinstance(each, Watermark | WatermarkStatus))
                    found[channel.edge, channel.producer_subtask, subtask] += records
    except StorageError:
        return None
    return found
