"""JobRecord: what a successor has to know of one job: a small text of bytes, replaced as a whole.

The bulk lies elsewhere: graph and program in `submissions.py`, state in the job's checkpoint directory. A record is
whole or it is none: its bytes carry a checksum.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from struct import Struct

from ...messages import CheckpointId, JobId, MalformedMessage, decode, encode, message
from ...state.errors import CorruptState

VERSION = 1
ATTEMPTS_AHEAD = 1_000
"""The number of attempt numbers reserved at once, so that the first after three takeovers is 3000."""
_SEAL = Struct(">4sI")
_MAGIC = b"UHA1"


@message
class CheckpointPointer:
    """A completed checkpoint, or savepoint, that the job would restore from."""

    checkpoint_id: CheckpointId
    path: str
    """Of its metadata, relative to the job's checkpoint directory."""
    is_savepoint: bool = False
    savepoints: tuple[str, ...] = ()
    """The paths of the savepoints that it is: its files are their users'."""


@message
class JobRecord:
    """One job, as its leader last wrote it."""

    format_version: int
    job_id: JobId
    name: str
    ids_until: CheckpointId
    """Each id below may have been drawn, none from here on."""
    checkpoints: tuple[CheckpointPointer, ...] = ()
    """By id. All of them were complete; what came after the last was never committed."""
    attempts_until: int = ATTEMPTS_AHEAD
    """Each number of an attempt below may have been given, none from here on. Leaders of earlier versions, which do not
    write it, count from 0.
    """

    def with_checkpoint(self, added: CheckpointPointer) -> JobRecord:
        kept = [each for each in self.checkpoints if each.path != added.path]
        return replace(self, checkpoints=tuple(sorted([*kept, added], key=lambda each: each.checkpoint_id)))

    def without_checkpoint(self, path: str) -> JobRecord:
        return replace(self, checkpoints=tuple(each for each in self.checkpoints if each.path != path))

    def sealed(self) -> bytes:
        data = encode(self)
        return _SEAL.pack(_MAGIC, zlib.crc32(data)) + data


def read_record(data: bytes, place: str) -> JobRecord:
    """What `sealed` made; raises CorruptState for anything else. `place`: where it was found."""
    if len(data) < _SEAL.size or data[: len(_MAGIC)] != _MAGIC:
        raise CorruptState(place, f"a record of a job, which begins with {_MAGIC!r}", f"{data[:40]!r}")
    _, checksum = _SEAL.unpack(data[: _SEAL.size])
    body = data[_SEAL.size :]
    if zlib.crc32(body) != checksum:
        raise CorruptState(place, f"CRC-32 {checksum:08x}", f"{zlib.crc32(body):08x}")
    try:
        found = decode(body)
    except MalformedMessage as error:
        raise CorruptState(place, "a record of a job", str(error)) from error
    if not isinstance(found, JobRecord) or found.format_version != VERSION:
        raise CorruptState(place, f"a record of a job, of format {VERSION}", f"{found!r:.80}")
    return found
