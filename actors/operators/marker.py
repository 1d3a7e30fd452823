"""Marker: what a LedgerSink has the outside system keep beside its data, in the same atomic act.

One row per *writer*: its name, and the sequence number of the last batch that was applied under it. The name is made
of the sink instance, which a job keeps through all restores, and of the fork: which attempt began to count. So two
attempts count under one name only where the second goes on from the newest completed checkpoint of the first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marker:
    """What `apply` writes: the writer's row says `sequence` afterwards. It must say `after` before, or nothing is
    written at all.
    """

    sink: str
    """The sink instance: the same in all its subtasks and forks, so that its rows can be found. 16 hex digits."""
    writer: str
    """The name of the row: `sink`, a hyphen, and 16 hex digits."""
    sequence: int
    """Of the newest batch that is applied: a whole number from 1."""
    after: int
    """Of the newest batch that was applied before; 0: none was, and there is no row yet."""


def sink_name(job_id: str, operator_id: str) -> str:
    """Of a sink that starts without state."""
    return _fingerprint(f"{job_id}/{operator_id}")


def writer_name(sink: str, job_id: str, attempt_id: str) -> str:
    """Of a subtask whose counting begins with this attempt. No two attempts have the same id."""
    return f"{sink}-{_fingerprint(f'{job_id}/{attempt_id}')}"


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
