"""The bytes of a checkpoint's metadata file.

    frame := length (4 bytes, big-endian) message
    file  := frame(CheckpointMetadata) frame(SubtaskMetadata)*

One frame per subtask with state, so the file may be far larger than one message: a state with its inline bytes came in
one acknowledgement, and so fits one frame. The checksum of the file is the storage's matter.
Flink: SavepointSerializer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import field
from typing import Any, TypeVar

from ...messages import (
    CheckpointId,
    JobEdge,
    JobId,
    MalformedMessage,
    OperatorDescription,
    Predecessor,
    SubtaskIndex,
    SubtaskState,
    VertexId,
    decode,
    encode,
    message,
)
from ..checkpoint_folders import is_called_after
from ..errors import CorruptState
from ..storage import CheckpointStorage
from .completed_checkpoints import CompletedCheckpoint, VertexSnapshot

FORMAT_VERSION = 2
"""1 did not say which operators a vertex has, and cannot be matched with a program."""

MAX_METADATA_BYTES = 512 * 1024 * 1024
"""A larger metadata file is neither written nor read: state of that size belongs in files of its own."""

T = TypeVar("T")

_LENGTH = struct.Struct(">I")


@message
class VertexMetadata:
    vertex_id: VertexId
    parallelism: int
    max_parallelism: int
    operators: tuple[OperatorDescription, ...] = ()
    inputs: dict[int, JobEdge] = field(default_factory=dict)


@message
class CheckpointMetadata:
    """First frame: all but the states, and how many of these follow."""

    format_version: int
    job_id: JobId
    checkpoint_id: CheckpointId
    timestamp_ms: int
    completed_ms: int
    state_size_bytes: int
    is_savepoint: bool
    is_final: bool
    vertices: tuple[VertexMetadata, ...]
    state_count: int
    predecessors: tuple[Predecessor, ...] = ()


@message
class SubtaskMetadata:
    """One further frame: what one subtask snapshotted."""

    vertex_id: VertexId
    subtask_index: SubtaskIndex
    state: SubtaskState


def encode_metadata(completed: CompletedCheckpoint) -> bytes:
    """The metadata file's bytes. Raises ValueError when they are more than MAX_METADATA_BYTES."""
    data = bytearray()
    for each in _messages_of(completed):
        frame = encode(each)
        data += _LENGTH.pack(len(frame))
        data += frame
        if len(data) > MAX_METADATA_BYTES:
            raise ValueError(
                f"metadata of checkpoint {completed.checkpoint_id} exceeds {MAX_METADATA_BYTES} bytes; "
                "lower inline_threshold_bytes so that state goes to files"
            )
    return bytes(data)


def read_checkpoint(storage: CheckpointStorage, path: str) -> CompletedCheckpoint:
    """The checkpoint whose metadata file is at `path`. Raises as `read_sealed`, and CorruptState, also for the metadata
    of another checkpoint than the folders are called after in which they lie. Blocks.
    """
    checkpoint = decode_metadata(storage.read_sealed(path), path)
    if not is_called_after(path, checkpoint.job_id, checkpoint.checkpoint_id):
        raise CorruptState(
            path,
            "the metadata of the checkpoint that its folder is called after",
            f"those of checkpoint {checkpoint.checkpoint_id} of job {checkpoint.job_id}: put back what was there, or "
            "move that checkpoint to a folder of its own name",
        )
    return checkpoint


def decode_metadata(data: bytes, metadata_path: str) -> CompletedCheckpoint:
    """The checkpoint whose metadata file at `metadata_path` holds `data`; raises CorruptState, whatever is wrong."""
    try:
        return _decode(data, metadata_path)
    except MalformedMessage as error:
        raise CorruptState(metadata_path, "a checkpoint's metadata", str(error)) from error


def _decode(data: bytes, metadata_path: str) -> CompletedCheckpoint:
    if len(data) > MAX_METADATA_BYTES:
        raise MalformedMessage(f"{len(data)} bytes; the limit is {MAX_METADATA_BYTES}")
    frames = _frames(data)
    header = _expect(CheckpointMetadata, next(frames, None))
    if header.format_version != FORMAT_VERSION:
        raise MalformedMessage(f"format {header.format_version}; this release reads {FORMAT_VERSION}")
    return CompletedCheckpoint(
        job_id=header.job_id,
        checkpoint_id=header.checkpoint_id,
        timestamp_ms=header.timestamp_ms,
        completed_ms=header.completed_ms,
        state_size_bytes=header.state_size_bytes,
        vertices=_vertices(header, [_expect(SubtaskMetadata, frame) for frame in frames]),
        is_savepoint=header.is_savepoint,
        is_final=header.is_final,
        metadata_path=metadata_path,
        predecessors=header.predecessors,
    )


def _messages_of(completed: CompletedCheckpoint) -> Iterator[CheckpointMetadata | SubtaskMetadata]:
    yield CheckpointMetadata(
        format_version=FORMAT_VERSION,
        job_id=completed.job_id,
        checkpoint_id=completed.checkpoint_id,
        timestamp_ms=completed.timestamp_ms,
        completed_ms=completed.completed_ms,
        state_size_bytes=completed.state_size_bytes,
        is_savepoint=completed.is_savepoint,
        is_final=completed.is_final,
        vertices=tuple(
            VertexMetadata(vertex_id, vertex.parallelism, vertex.max_parallelism, vertex.operators, dict(vertex.inputs))
            for vertex_id, vertex in completed.vertices.items()
        ),
        state_count=len(completed.states()),
        predecessors=completed.predecessors,
    )
    for vertex_id, vertex in completed.vertices.items():
        for index, state in vertex.subtasks.items():
            yield SubtaskMetadata(vertex_id, index, state)


def _vertices(header: CheckpointMetadata, states: list[SubtaskMetadata]) -> dict[VertexId, VertexSnapshot]:
    if len(states) != header.state_count:
        raise MalformedMessage(f"{len(states)} states; wanted {header.state_count}")
    subtasks: dict[VertexId, dict[SubtaskIndex, SubtaskState]] = {each.vertex_id: {} for each in header.vertices}
    parallelism = {each.vertex_id: each.parallelism for each in header.vertices}
    for found in states:
        index, vertex_id = found.subtask_index, found.vertex_id
        if not 0 <= index < parallelism.get(vertex_id, 0) or index in subtasks[vertex_id]:
            raise MalformedMessage(f"a superfluous state: subtask {index} of vertex {vertex_id!r}")
        subtasks[vertex_id][index] = found.state
    return {
        each.vertex_id: VertexSnapshot(
            each.parallelism, each.max_parallelism, subtasks[each.vertex_id], each.operators, each.inputs
        )
        for each in header.vertices
    }


def _frames(data: bytes) -> Iterator[Any]:
    position = 0
    while position < len(data):
        start = position + _LENGTH.size
        if start > len(data):
            raise MalformedMessage(f"an end inside the length of the frame at byte {position}")
        (length,) = _LENGTH.unpack_from(data, position)
        position = start + length
        if position > len(data):
            raise MalformedMessage(f"an end {position - len(data)} bytes before that of the frame at byte {start}")
        yield decode(data[start:position])


def _expect(wanted: type[T], found: object) -> T:
    if not isinstance(found, wanted):
        raise MalformedMessage(f"{type(found).__name__}; wanted {wanted.__name__}")
    return found
