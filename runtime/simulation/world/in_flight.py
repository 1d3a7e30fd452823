"""What a completed checkpoint has in flight, as its files tell it: how many records, by channel."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from ....actors.barriers.in_flight_elements import unpack_in_flight
from ....actors.flow.elements import Watermark, WatermarkStatus
from ....actors.operators.loops import IN_LOOP
from ....messages import ChannelDescriptor, SubtaskIndex, VertexId
from ....state import CheckpointStorage, StorageError, handle_reader, read_channel, unpack_batch
from ....state.backends.operator_state import read_list
from .seen_files import SeenFiles

Place: TypeAlias = tuple[int, SubtaskIndex, SubtaskIndex]
"""A channel of the job, whichever attempts it joins: edge, producer subtask, consumer subtask."""


def place_of(channel: ChannelDescriptor) -> Place:
    return channel.edge, channel.producer_subtask, channel.consumer_subtask


Way: TypeAlias = tuple[VertexId, SubtaskIndex]
"""Back to one head of a loop, from all its tails."""


def ways_back(storage: CheckpointStorage, path: str, seen: SeenFiles) -> dict[Way, tuple[frozenset[int], int]]:
    """By head of a loop: the feedback edges that lead to it, and how many records the checkpoint holds that were on
    their way back. Empty when it cannot be read.
    """
    found: dict[Way, tuple[frozenset[int], int]] = {}
    try:
        for vertex_id, vertex in seen.metadata(storage, path).vertices.items():
            edges = frozenset(index for index, edge in vertex.inputs.items() if edge.feedback)
            for subtask, state in vertex.subtasks.items() if edges else ():
                lists = (each for operator in state.operators.values() for each in operator.lists)
                packed = [
                    item
                    for handle in lists
                    if handle.name == IN_LOOP.name
                    for item in read_list(IN_LOOP, handle, handle_reader(storage))
                ]
                found[vertex_id, subtask] = edges, sum(len(unpack_batch(each)) for each in packed)
    except StorageError:
        return {}
    return found


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
