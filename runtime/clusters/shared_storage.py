"""Storage that all processes of a job find under one URL: `memory://` is none."""

from __future__ import annotations

from collections.abc import Mapping

from ...actors.operators.operator import Operator
from ...state import CheckpointStorage, UnwritableRoot
from ...state.file_locations import protocol_of
from ..connectors.errors import UnusableOutput
from ..connectors.files.file_sink import FileSink

_MEMORY = "memory"


def shared_storage(url: str) -> CheckpointStorage:
    """Raises UnwritableRoot for what each process has by itself, as for all that cannot be opened."""
    if protocol_of(url) == _MEMORY:
        raise UnwritableRoot(
            url,
            "memory:// is the memory of each process by itself: what one TaskManager writes, no other process finds. "
            "Write a folder, or a URL such as s3://bucket/checkpoints, that all of them reach. Only LocalCluster("
            "debug=True), which runs a job in one process, takes memory://",
        )
    return CheckpointStorage(url)


def check_sinks(sinks: Mapping[str, Operator]) -> None:
    """Raises UnusableOutput for files that nobody would find."""
    for name, sink in sinks.items():
        if isinstance(sink, FileSink) and protocol_of(sink.path) == _MEMORY:
            raise UnusableOutput(
                f"sink {name!r} writes to {sink.path}, and memory:// is the memory of each process by itself: nobody "
                "would find the files. Write to a folder, or to a URL such as s3://bucket/out; or end the stream in "
                "collect(name=...)"
            )
