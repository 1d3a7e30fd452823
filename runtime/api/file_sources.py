"""FileSources: streams of files, those there are and those that come. A part of the StreamEnvironment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from ...actors.operators.source import Source
from ...messages.known_names import known_arguments
from ...messages.shown_url import url_shown
from ...state.file_locations import AnyPath, is_url
from ..connectors import ConnectorError, FileSource, UnreadableInput, WatchedFileSource
from ..connectors.reaching import why_unreachable
from .beginnings import Beginnings
from .checks import at_least, at_least_or_none, rate
from .checks import path as checked_path
from .errors import ApiError, InvalidSetting
from .schemas import declared_schema
from .stream import DataStream
from .typed import Schema


class LineOptions(TypedDict, total=False):
    """What `from_files` takes beside path and format, for files that all have the same column."""

    watch_ms: int | None
    settle_ms: int | None
    records_per_second: float | None
    name: str | None
    parallelism: int | None


class FileOptions(LineOptions, total=False):
    """What `from_files` takes beside path and format."""

    columns: Sequence[str] | None
    schema: Schema | None


class CsvOptions(FileOptions, total=False):
    """The same for CSV."""

    delimiter: str
    encoding: str


_NAMES = "the first line of the file names the columns: put one before a file that has none"
_DECLARED = "write schema=pa.schema({'zip': pa.string(), 'cents': pa.int64()}), of all columns that you want"
_OF_PANDAS = {
    **dict.fromkeys(("sep", "separator"), "write delimiter=';'"),
    **dict.fromkeys(("header", "names"), _NAMES),
    **dict.fromkeys(("dtype", "dtypes"), _DECLARED),
    "usecols": "write columns=[...]",
}
"""Options that `read_csv` has there, and in Polars."""


class FileSources(Beginnings):
    """Base of the StreamEnvironment."""

    @known_arguments(first=1)
    def from_files(
        self,
        path: AnyPath,
        format: str,
        *,
        columns: Sequence[str] | None = None,
        schema: Schema | None = None,
        watch_ms: int | None = None,
        settle_ms: int | None = None,
        delimiter: str = ",",
        encoding: str = "utf8",
        records_per_second: float | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> DataStream:
        """Read a file, a folder or a glob; `format` is "parquet", "csv", "jsonl" or "text". `columns`: all when None.

        A record is a Row: `row["delay"]`, `row.delay`, `row[3]`, `row.asdict()`. The subtasks share the files out in
        splits (a file, or a row group of a Parquet file); the rows of a split come in order.
        `records_per_second` is the rate of all subtasks together. `delimiter` and `encoding` are for CSV.

        With `watch_ms` the stream has no end: files that come later are read too, each once; the folder is looked at
        at this interval. A file is read when it has not changed for `settle_ms`: a second, or 0 in an object store,
        when None. From then on it stays as it is while it lies there, and may be
        moved away once a checkpoint covers it: docs/connectors/files-that-come.md.
        """
        name, path = self.graph.name_for(name, FileSource.__name__), _checked(path)
        if watch_ms is None and settle_ms is not None:
            raise InvalidSetting("settle_ms: wanted None without watch_ms, as files that are there are not waited for")
        options: dict[str, Any] = {
            "columns": columns,
            "schema": declared_schema(schema),
            "records_per_second": rate(records_per_second),
            "delimiter": delimiter,
            "encoding": encoding,
            **self._batching(),
        }
        try:
            source: Source
            if watch_ms is None:
                source = FileSource(path, format, **options)
            else:
                options["watch_ms"] = at_least("watch_ms", watch_ms, 1)
                options["settle_ms"] = at_least_or_none("settle_ms", settle_ms, 0)
                source = WatchedFileSource(path, format, **options)
        except ConnectorError as error:
            raise type(error)(f"source {name!r}: {error}") from error.__cause__
        except Exception as error:
            if isinstance(error, ApiError | ValueError | TypeError) or not is_url(path):
                raise
            raise UnreadableInput(f"source {name!r}: {why_unreachable(error, url_shown(path))}") from error
        return self._start(source, name, parallelism)

    @known_arguments(first=1, also=FileOptions.__annotations__)
    def from_parquet(self, path: AnyPath, **options: Unpack[FileOptions]) -> DataStream:
        """As `from_files`: a record is a Row, `row["delay"]` or `row.delay`."""
        return self.from_files(path, "parquet", **options)

    @known_arguments(first=1, also=CsvOptions.__annotations__, elsewhere=_OF_PANDAS)
    def from_csv(self, path: AnyPath, **options: Unpack[CsvOptions]) -> DataStream:
        """As `from_files`: a record is a Row, `row["delay"]` or `row.delay`; the first line names the columns.

        Types are guessed from the first megabyte, where a value such as 01234 makes its column text; one that comes
        later is an error: `schema` says otherwise. `delimiter` is a comma, and `encoding` UTF-8, if nothing is said.
        """
        return self.from_files(path, "csv", **options)

    @known_arguments(first=1, also=FileOptions.__annotations__)
    def from_jsonl(self, path: AnyPath, **options: Unpack[FileOptions]) -> DataStream:
        """As `from_files`: a record is a Row, `row["delay"]` or `row.delay`; an absent field is None."""
        return self.from_files(path, "jsonl", **options)

    @known_arguments(first=1, also=LineOptions.__annotations__)
    def from_text(self, path: AnyPath, **options: Unpack[LineOptions]) -> DataStream:
        """As `from_files`: a record is a Row with one line of UTF-8, without its end, `row.line`."""
        return self.from_files(path, "text", **options)


def _checked(path: object) -> str:
    if isinstance(path, list | tuple | set):
        raise InvalidSetting(
            f"path: wanted one path or URL, found {path!r:.80}: several files are a folder, or a glob as in "
            "'data/*.csv'; else join their streams, as in env.from_csv(first).union(env.from_csv(second))"
        )
    return checked_path("path", path)
