"""Output that would meet: a FileSink into the folder, or the glob, of one of the job's file sources; two FileSinks of
one folder whose files would be called alike, or hold something else; two KafkaSinks whose transactional ids would be
the same.

A source with `watch_ms` would take up its own output without end; any other, that of the run before. Of two such sinks
each would remove, as leftovers of its own, what the other has pre-committed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from fsspec.utils import glob_translate

from ..connectors import FileSink, FileSource, KafkaSink, WatchedFileSource
from ..connectors.files.committed_files import slug
from ..connectors.files.file_writers import FILE_FORMATS, WRITE_FORMATS
from ..connectors.files.locations import one_url
from .errors import InvalidProgram
from .stream_graph import StreamNode
from .warned import warn

_FILE_ENDINGS = {
    **{WRITE_FORMATS[name].extension: name for name in FILE_FORMATS},
    ".json": "jsonl",
    ".ndjson": "jsonl",
}
"""With the format that is meant."""


def check_own_output(nodes: Sequence[StreamNode]) -> None:
    """Raises InvalidProgram, naming source, sink and folder."""
    sources = [
        (node.name, node.operator) for node in nodes if isinstance(node.operator, FileSource | WatchedFileSource)
    ]
    for node in nodes:
        if not isinstance(node.operator, FileSink):
            continue
        for name, source in sources:
            if _reads(source.path, node.operator):
                raise InvalidProgram(
                    f"sink {node.name!r} writes into {node.operator.path}, and source {name!r} reads {source.path}: "
                    "this job, or its next run, would read its own output; give the sink a folder of its own"
                )


def check_sinks_apart(nodes: Sequence[StreamNode]) -> None:
    """Raises InvalidProgram where the files of two sinks would be called alike, and warns where they differ, naming
    both sinks and the folder. What both write in one format, of the same columns, is their union.
    """
    seen: dict[tuple[str, str], str] = {}
    sinks_of: dict[str, list[StreamNode]] = {}
    for node in nodes:
        sink = node.operator
        if not isinstance(sink, FileSink) or not sink.path:
            continue
        folder = one_url(sink.path)
        first = seen.setdefault((folder, slug(node.operator_id)), node.name)
        if first != node.name:
            raise InvalidProgram(
                f"sinks {first!r} and {node.name!r} write into {sink.path}, and their files would have the same names: "
                "a file's name has only the ASCII letters and digits of the sink's uid, or, without one, of its name. "
                "Give one of them another uid, or a folder of its own"
            )
        others = sinks_of.setdefault(folder, [])
        for other in others:
            if problem := _unlike(other, node):
                warn(
                    f"sinks {other.name!r} and {node.name!r} write into {sink.path}, {problem}: whoever reads all "
                    "files of the folder gets both. Give each a folder of its own, or read files by their names"
                )
                break
        others.append(node)


def _unlike(first: StreamNode, second: StreamNode) -> str:
    """How the files of two FileSinks differ, as far as it is certain; empty if they do not."""
    sinks = [node.operator for node in (first, second) if isinstance(node.operator, FileSink)]
    formats = [sink.format for sink in sinks]
    if len(set(formats)) > 1:
        return f"the first {formats[0]} and the second {formats[1]}"
    columns = [_columns(node) for node in (first, second)]
    if None in columns or not WRITE_FORMATS[formats[0]].columnar or columns[0] == columns[1]:
        return ""
    told = [", ".join(names or ()) for names in columns]
    return f"the first the columns {told[0]}, and the second {told[1]}"


def _columns(node: StreamNode) -> list[str] | None:
    """The names of what a sink writes, in their order in CSV; None if they are not known."""
    sink = node.operator
    assert isinstance(sink, FileSink)
    schema = sink.schema if sink.schema is not None else node.inputs[0].schema
    if schema is None:
        return None
    return schema.names if sink.format == "csv" else sorted(schema.names)


def warn_of_file_names(nodes: Sequence[StreamNode]) -> None:
    """Of a FileSink whose path is called as a file is, unless there is a folder of that name already."""
    for node in nodes:
        sink = node.operator
        if not isinstance(sink, FileSink) or os.path.isdir(sink.path):
            continue
        name = PurePosixPath(sink.path)
        if (meant := _FILE_ENDINGS.get(name.suffix.lower())) is not None:
            folder = sink.path.rstrip("/").removesuffix(name.suffix)
            warn(
                f"sink {node.name!r}: FileSink writes a folder, with a file of {sink.format} for each checkpoint and "
                f"subtask, and {name.name!r} is called as a file is: leave the ending out, as in "
                f"FileSink({folder!r}, format={meant!r}), and read all files in the folder"
            )


def check_transactional_ids(nodes: Sequence[StreamNode]) -> None:
    """Raises InvalidProgram, naming both sinks and the prefix."""
    seen: dict[tuple[str, str], str] = {}
    for node in nodes:
        sink = node.operator
        if not isinstance(sink, KafkaSink) or sink.transactional_id_prefix is None or not sink.is_exact:
            continue
        prefix = sink.transactional_id_prefix
        first = seen.setdefault((sink.bootstrap_servers, prefix), node.name)
        if first != node.name:
            raise InvalidProgram(
                f"sinks {first!r} and {node.name!r} have the transactional_id_prefix {prefix!r}: their transactional "
                "ids would be the same, and each would end the other's transactions; give each its own, or none, for "
                "then it is made of the job and the operator"
            )


def _reads(path: str, sink: FileSink) -> bool:
    folder = sink.path.rstrip("/")
    if path.rstrip("/") == folder:
        return True
    if not any(sign in path for sign in "*?["):
        return False
    written = f"{folder}/part-{'x' * 8}{WRITE_FORMATS[sink.format].extension}"
    return re.match(glob_translate(path), written) is not None
