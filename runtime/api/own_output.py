"""A job that would read what it writes: a FileSink into the folder, or the glob, of one of its file sources.

A source with `watch_ms` would take up its own output without end; any other, that of the run before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fsspec.utils import glob_translate

from ..connectors import FileSink, FileSource, WatchedFileSource
from ..connectors.files.file_writers import WRITE_FORMATS
from .errors import InvalidProgram
from .stream_graph import StreamNode


def check_own_output(nodes: Sequence[StreamNode]) -> None:
    """Raises InvalidProgram, naming source, sink and folder."""
    sources = [
        (node.name, node.operator) for node in nodes if isinstance(node.operator, FileSource | WatchedFileSource)
    ]
    for node in nodes:
        if not isinstance(node.operator, FileSink):
            continue
        for name, source in sources:
            if isinstance(source, FileSource | WatchedFileSource) and _reads(source.path, node.operator):
                raise InvalidProgram(
                    f"sink {node.name!r} writes into {node.operator.path}, and source {name!r} reads {source.path}: "
                    "this job, or its next run, would read its own output; give the sink a folder of its own"
                )


def _reads(path: str, sink: FileSink) -> bool:
    folder = sink.path.rstrip("/")
    if path.rstrip("/") == folder:
        return True
    if not any(sign in path for sign in "*?["):
        return False
    written = f"{folder}/part-{'x' * 8}{WRITE_FORMATS[sink.format].extension}"
    return re.match(glob_translate(path), written) is not None
