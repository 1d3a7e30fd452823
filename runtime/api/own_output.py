"""A job that would read its own output is refused when it is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from ...actors.operators.operator import Operator
from ..connectors import FileSink, FileSource, WatchedFileSource
from ..connectors.files.file_writers import WRITE_FORMATS
from ..connectors.files.locations import located
from .errors import InvalidProgram


def check_own_output(operators: Mapping[str, Operator]) -> None:
    """Raises InvalidProgram where a FileSink writes what a source of files reads: while the job runs, or in the next
    job. `operators`: by name.
    """
    sinks = {name: operator for name, operator in operators.items() if isinstance(operator, FileSink)}
    for source, operator in operators.items():
        if isinstance(operator, FileSource | WatchedFileSource):
            for name, sink in sinks.items():
                if _reads(operator.path, sink):
                    when = "this job" if isinstance(operator, WatchedFileSource) else "the next job"
                    raise InvalidProgram(
                        f"sink {name!r} writes into {sink.path}, and source {source!r} reads {operator.path}: {when} "
                        "would read what was written. Give the sink a folder of its own"
                    )


def _reads(path: str, sink: FileSink) -> bool:
    """Whether who reads this path, a folder or a glob, finds the sink's files."""
    (_, found), (_, folder) = located(path), located(sink.path)
    if any(sign in found for sign in "*?["):
        return PurePosixPath(folder, f"part-0{WRITE_FORMATS[sink.format].extension}").match(found)
    return PurePosixPath(found) == PurePosixPath(folder)
