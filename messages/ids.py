"""The ids that travel in messages: NewTypes, so that a job id never passes for an attempt id.

Ids are plain strings and integers on the wire. They are made by whoever holds a context (`new_id`), never here.
"""

from __future__ import annotations

import re
import zlib
from typing import NewType

JobId = NewType("JobId", str)
"""One submitted job; the name of its folder under the checkpoint directory."""

VertexId = NewType("VertexId", str)
"""One vertex of the JobGraph: a chain of operators that runs as one task per subtask."""

OperatorId = NewType("OperatorId", str)
"""One operator inside a vertex; state is restored by this id."""

SubtaskIndex = NewType("SubtaskIndex", int)
"""Which of a vertex's parallel subtasks: 0 .. parallelism - 1."""

ExecutionAttemptId = NewType("ExecutionAttemptId", str)
"""One try of one subtask. A new attempt gets a new id, so that a zombie's messages can be recognised."""

CheckpointId = NewType("CheckpointId", int)
"""Strictly increasing within a job, never used twice."""

TaskManagerId = NewType("TaskManagerId", str)
"""One incarnation of a TaskManager process; a restarted process has a new id."""

LeaderSessionId = NewType("LeaderSessionId", str)
"""One term of leadership of a JobManager."""

ChannelId = NewType("ChannelId", int)
"""One producer subtask to one consumer subtask, in one deployment; unique within the job."""

SlotIndex = NewType("SlotIndex", int)
"""Which slot of a TaskManager: 0 .. slots - 1."""

SharedFileId = NewType("SharedFileId", str)
"""The name that a state backend gives to a file which several checkpoints may hold."""

HostId = NewType("HostId", str)
"""One incarnation of a TaskManager process that stands alone."""

LaunchId = NewType("LaunchId", str)
"""One start of a TaskManager on a host."""


LONGEST_OPERATOR_ID = 64
"""Names of files have it up to twice, and other ids of 120 characters in all; a file system takes 255 bytes."""


def operator_id_of(identity: str) -> OperatorId:
    """Of a uid, or a name: one that is safe in paths, and not too long for a file's name, stays as it is; any other is
    cleaned, cut and gets its checksum.
    """
    clean = re.sub(r"[^A-Za-z0-9_-]+", "_", identity)
    if clean == identity and len(clean) <= LONGEST_OPERATOR_ID:
        return OperatorId(identity)
    checksum = f"-{zlib.crc32(identity.encode(errors='surrogatepass')):08x}"
    return OperatorId(clean[: LONGEST_OPERATOR_ID - len(checksum)] + checksum)
