"""RunParts: the runs of an incremental checkpoint as one snapshot, in which newer ones replace what older ones say.

They are read key group by key group; of each key counts the newest run that has it. The index at the end of a run has
no checksum of its own, so each run is verified once, in pieces, before it is believed: state/backends/stored_runs.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...messages import KeyedStateHandle
from ...state.backends.group_parts import Part
from ...state.backends.keyed_snapshot import RUN_KEYS, listed_keys, without_keys
from ...state.backends.stored_runs import run_files, run_in
from ...state.kinds.schema_fit import Schema
from .state_files import StateFiles
from .stored_types import hashable


class Payload(NamedTuple):
    """Entries of one state and key group, as they were written."""

    state: str
    kind: str
    schema: Schema
    data: bytes


def run_handles(handle: KeyedStateHandle, files: StateFiles) -> list[KeyedStateHandle]:
    """The runs that it lists, the oldest first, each as a handle of its own. Raises a StorageError."""
    found = []
    for file, index_bytes in run_files(handle, files.read):
        index = files.part(file, Part(max(0, file.size_bytes - index_bytes), index_bytes, None))
        found.append(run_in(file, index, handle))
    return found


def newest_payloads(runs: Sequence[Sequence[Payload]]) -> Iterator[Payload]:
    """What is left of the payloads of these runs, the oldest first. Raises MalformedMessage."""
    known: set[Any] = set()
    for number, payloads in reversed(list(enumerate(runs))):
        for each in payloads:
            if each.kind != RUN_KEYS and (left := without_keys(each.data, known, hashable)):
                yield each._replace(data=left)
        if number:
            known.update(*(listed_keys(each.data, hashable) for each in payloads if each.kind == RUN_KEYS))
