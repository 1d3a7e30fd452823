"""CommittedOutput: what a job has made visible in a simulated world, by sink. Read from outside of the world.

Compared are all that can be: `collect()`, outlets, FileSinks whose path begins with sim://, and TransactionalLogs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from ....state.file_locations import file_system_at
from ...api.errors import ApiError
from ...api.translation import Translation
from ...clusters.job_handle import JobHandle
from ...connectors import CollectSink, FileSink, OutletSink, read_collected
from .transactional_log import logs_of_this_world

SCHEME = "sim://"
_SOON_S = 1.0
"""In virtual time: nothing more comes of a job that is over, or hangs."""

Output = Mapping[str, list[Any]]
"""By the sink's name, or the log's; the rows of files are dictionaries."""


def committed_output(jobs: Sequence[Translation], latest: JobHandle) -> Output:
    """All that is visible now, in the world that is current; of a job and those that went on from its savepoints, the
    last of which is `latest`.
    """
    output = {log.name: log.committed() for log in logs_of_this_world()}
    read: set[tuple[str, str]] = set()
    for name, sink in ((name, sink) for job in jobs for name, sink in job.sinks.items()):
        if not isinstance(sink, FileSink) or (name, sink.path) in read:
            continue
        read.add((name, sink.path))
        found = read_collected(sink.path) if isinstance(sink, CollectSink) else _files_of(sink)
        output[name] = [*output.get(name, []), *found]
    for name, sink in jobs[-1].sinks.items():
        if isinstance(sink, OutletSink):
            output[name] = _read_outlet(latest, name)
    return output


def _read_outlet(job: JobHandle, name: str) -> list[Any]:
    """All that can be read now: of a job that has failed, or has lost its JobManager, too."""
    records: list[Any] = []
    outlet = job.outlet(name)
    with suppress(TimeoutError, ApiError):
        while (batch := outlet.read(timeout=_SOON_S)) is not None:
            records.extend(batch)
    return records


def _files_of(sink: FileSink) -> list[Any]:
    return _read_files(sink.path, _READERS[sink.format])


def sinks_outside_of_the_world(translation: Translation) -> list[str]:
    """The names of FileSinks whose files would be real ones."""
    return [
        name
        for name, sink in translation.sinks.items()
        if isinstance(sink, FileSink) and sink.path and not sink.path.startswith(SCHEME)
    ]


def _read_files(url: str, read: Callable[[BinaryIO], list[Any]]) -> list[Any]:
    fs, root = file_system_at(url)
    if not fs.exists(root):
        return []
    rows: list[Any] = []
    for path in sorted(fs.ls(root, detail=False)):
        if path.rpartition("/")[2].startswith("part-"):
            with fs.open(path, "rb") as file:
                rows += read(file)
    return rows


def _read_parquet(file: BinaryIO) -> list[Any]:
    import pyarrow.parquet as pq

    return list(pq.read_table(file).to_pylist())


def _read_csv(file: BinaryIO) -> list[Any]:
    import pyarrow.csv

    return list(pyarrow.csv.read_csv(file).to_pylist())


def _read_jsonl(file: BinaryIO) -> list[Any]:
    return [json.loads(line) for line in file.read().decode().splitlines()]


_READERS: Mapping[str, Callable[[BinaryIO], list[Any]]] = {
    "parquet": _read_parquet,
    "csv": _read_csv,
    "jsonl": _read_jsonl,
}
