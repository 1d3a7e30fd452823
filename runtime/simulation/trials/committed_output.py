"""CommittedOutput: what a job has made visible in a simulated world, by sink. Read from outside of the world.

Compared are all that can be: `collect()`, outlets, FileSinks whose path begins with sim://, and TransactionalLogs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from ....state.file_locations import file_system_at
from ...api.errors import ApiError
from ...api.translation import Translation
from ...clusters.job_handle import JobHandle
from ...connectors import FileSink, OutletSink
from ...connectors.files.collect_sink import collected_records
from ...connectors.files.committed_files import checkpoint_of
from ..world.transactional_log import logs_of_this_world

_SOON_S = 1.0
"""In virtual time: nothing more comes of a job that is over, or hangs."""

Output = Mapping[str, list[Any]]
"""By the sink's name, or the log's; the rows of files are dictionaries."""

Outside = Mapping[str, Callable[[], Iterable[Any]]]
"""More output, by name, as functions that read it in the world that is current."""


def committed_output(jobs: Sequence[Translation], latest: JobHandle, outside: Outside) -> Output:
    """All that is visible now, in the world that is current; of a job and those that went on from its savepoints, the
    last of which is `latest`.
    """
    output = {log.name: log.committed() for log in logs_of_this_world()}
    read: set[tuple[str, str]] = set()
    for name, sink in ((name, sink) for job in jobs for name, sink in job.sinks.items()):
        if not isinstance(sink, FileSink) or (name, sink.path) in read:
            continue
        read.add((name, sink.path))
        output[name] = [*output.get(name, []), *_read_files(sink.path, _READERS[sink.format])]
    for name, sink in jobs[-1].sinks.items():
        if isinstance(sink, OutletSink):
            output[name] = _read_outlet(latest, name)
    return output | {name: _read_outside(name, read) for name, read in outside.items()}


def _read_outside(name: str, read: Callable[[], Iterable[Any]]) -> list[Any]:
    try:
        return list(read())
    except Exception as error:
        raise RuntimeError(f"outside: {name!r} cannot be read: {type(error).__name__}: {error}") from error


def _read_outlet(job: JobHandle, name: str) -> list[Any]:
    """All that can be read now: of a job that has failed, or has lost its JobManager, too."""
    records: list[Any] = []
    outlet = job.outlet(name)
    with suppress(TimeoutError, ApiError):
        while (batch := outlet.read(timeout=_SOON_S)) is not None:
            records.extend(batch)
    return records


def _read_files(url: str, read: Callable[[str, BinaryIO], list[Any]]) -> list[Any]:
    """Checkpoint by checkpoint: so changes of one key are in order, whichever subtasks have written them."""
    fs, root = file_system_at(url)
    if not fs.exists(root):
        return []
    names = sorted(path.rpartition("/")[2] for path in fs.ls(root, detail=False))
    rows: list[Any] = []
    for name in sorted((name for name in names if name.startswith("part-")), key=checkpoint_of):
        with fs.open(f"{root}/{name}", "rb") as file:
            rows += read(name, file)
    return rows


def _read_collected(name: str, file: BinaryIO) -> list[Any]:
    return collected_records(name, file.read())


def _read_parquet(_name: str, file: BinaryIO) -> list[Any]:
    import pyarrow.parquet as pq

    return list(pq.read_table(file).to_pylist())


def _read_csv(_name: str, file: BinaryIO) -> list[Any]:
    import pyarrow.csv

    return list(pyarrow.csv.read_csv(file).to_pylist())


def _read_jsonl(_name: str, file: BinaryIO) -> list[Any]:
    return [json.loads(line) for line in file.read().decode().splitlines()]


_READERS: Mapping[str, Callable[[str, BinaryIO], list[Any]]] = {
    "records": _read_collected,
    "parquet": _read_parquet,
    "csv": _read_csv,
    "jsonl": _read_jsonl,
}
