"""Segments: the files of an outlet. One holds some records in order, and its name says all that there is to know of it.

    <root>/outlets/<outlet>/<first>-<end>-<bytes>-<written ms>-<job>-<attempt number>-<attempt>.segment

A segment is written whole, sealed and under its final name, before the checkpoint that covers it completes. So the file
does not say whether it is committed: its branch and position do, in the lineage of whoever looks. Nothing is renamed,
and a file of an attempt that is a zombie by now is in no lineage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ...messages import MalformedMessage, OutletBranch
from ..columns.batch_codec import Batch, unpack_batch
from ..storage import CheckpointStorage
from .lineage import OutletLineage, contiguous

_NAME = re.compile(r"(\d{16})-(\d{16})-(\d+)-(\d+)-([0-9a-f]+)-(\d+)-([0-9a-f]+)\.segment")
_LENGTH_BYTES = 4


class Segment(NamedTuple):
    """The records from position `first` up to `end`, which is the next one's first."""

    first: int
    end: int
    size_bytes: int
    written_ms: int
    """By the wall clock of whoever wrote it."""
    branch: OutletBranch
    """With the position where this segment begins, in place of the branch's own."""

    @property
    def name(self) -> str:
        branch = self.branch
        return (
            f"{self.first:016d}-{self.end:016d}-{self.size_bytes}-{self.written_ms}"
            f"-{branch.job}-{branch.attempt_number}-{branch.attempt}.segment"
        )

    @classmethod
    def named(cls, name: str) -> Segment | None:
        """The segment with this file name; None for another file."""
        if (parts := _NAME.fullmatch(name)) is None:
            return None
        first, end, size, written_ms, job, number, attempt = parts.groups()
        branch = OutletBranch(job, int(number), attempt, int(first))
        return cls(int(first), int(end), int(size), int(written_ms), branch)


def segments_in(storage: CheckpointStorage, folder: str) -> list[Segment]:
    """All that lie there, committed or not, by position. Blocks. Raises UnreachableRoot where an empty folder stands in
    place of the volume.
    """
    names = (path.rpartition("/")[2] for path in storage.list_files(folder))
    found = [segment for segment in map(Segment.named, names) if segment is not None]
    if not found:
        storage.mark.confirm_made()
    return sorted(found, key=lambda segment: (segment.first, segment.name))


def committed_of(segments: Iterable[Segment], lineage: OutletLineage, end: int) -> list[Segment]:
    """Those of this lineage before `end`, without a gap up to there. What is before a gap counts no more: somebody has
    removed what followed it.
    """
    own = [each for each in segments if each.end <= end and lineage.owns(each.branch, each.first)]
    return own[contiguous([(each.first, each.end) for each in own], end) :]


def read_segment(storage: CheckpointStorage, folder: str, segment: Segment) -> bytes:
    """Its bytes. Raises MissingState, CorruptState."""
    return storage.read_sealed(f"{folder}/{segment.name}")


def framed(packed: Iterable[bytes]) -> bytes:
    """Packed batches as the bytes of one segment."""
    return b"".join(part for batch in packed for part in (len(batch).to_bytes(_LENGTH_BYTES, "big"), batch))


def records_of(data: bytes) -> Batch:
    """The records of one segment: a list, or one `pa.RecordBatch`. Raises MalformedMessage."""
    batches = [unpack_batch(packed) for packed in _frames(data)]
    if len(batches) == 1 and isinstance(batches[0], pa.RecordBatch):
        return batches[0]
    records: list[Any] = []
    for batch in batches:
        if not isinstance(batch, list):
            raise MalformedMessage(f"wanted records in a segment, found a {type(batch).__name__}")
        records.extend(batch)
    return records


def _frames(data: bytes) -> Iterator[bytes]:
    view, position = memoryview(data), 0
    while position < len(data):
        begin = position + _LENGTH_BYTES
        position = begin + int.from_bytes(view[position:begin], "big")
        if position > len(data):
            raise MalformedMessage(f"a segment is cut off: wanted {position} bytes, found {len(data)}")
        yield bytes(view[begin:position])
