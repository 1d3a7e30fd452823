"""ScanSource: a Spark DataFrame that is a scan of Parquet files, read from the files as columns.

It gives the rows of the DataFrame, in its columns and types, or cannot be made (NotAScan): each file's footer is held
against what Spark would make of it. Spark's tasks run the subtasks; its JVM sees no row. As files can be read from any
split on, it seeks where a SparkSource skips, keeps nothing to rewind, and can be rescaled.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet

from ..errors import InputChanged, NotAScan, UnreadableInput
from ..files.file_readers import READ_FORMATS, FileSplit, ReadOptions
from ..files.split_source import SplitSource
from ..paced_source import COLUMN_BATCH_ROWS
from .scan_plan import ScanPlan

_SAME_TYPES = frozenset(
    {
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
    }
)
"""With decimals and timestamps, which have parameters, the types that Spark's Arrow conversion and Arrow's Parquet
reader understand alike.
"""
_NARROWED = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
_SPARK_VERSION, _LEGACY_CALENDAR = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The state of a file when its footer was read."""

    size: int
    modified_ns: int


class ScanSource(SplitSource):
    """`schema`: of the DataFrame, as its batches would come through Spark. Raises NotAScan when made.

    A file that was written or removed since raises InputChanged in the subtask that reads it.
    """

    def __init__(
        self,
        plan: ScanPlan,
        schema: pa.Schema,
        *,
        batch_rows: int | None = None,
        records_per_second: float | None = None,
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        _check_columns(plan, schema)
        self._columns = plan.columns
        self._stamps = {path: _stamp(path) for path in plan.paths}
        if sum(self._stamps[path].size for path in plan.paths) != plan.size_bytes:
            raise NotAScan("its files have changed since the DataFrame was made")
        splits = [split for path in plan.paths if self._stamps[path].size for split in _splits(path, plan, schema)]
        self.settle("the DataFrame", splits, schema, [self._stamps[path].size for path in plan.paths])

    def for_columns(self, names: Sequence[str], batch_rows: int = COLUMN_BATCH_ROWS) -> ScanSource:
        narrowed = copy.copy(self)
        places = [self.schema.get_field_index(name) for name in names]
        narrowed.schema = pa.schema([self.schema.field(place) for place in places])
        narrowed._columns = tuple(self._columns[place] for place in places)
        narrowed.batch_rows = self._batch_rows_or(batch_rows)
        return narrowed

    def open_split(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        self._check_unchanged(split.path)
        try:
            yield from self._read(split)
        except (ValueError, TypeError, NotImplementedError, OSError) as error:
            raise UnreadableInput(f"{split.path} cannot be read on as the DataFrame's file: {error}") from error
        self._check_unchanged(split.path)

    def _read(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        kinds = dict(zip(self._columns, self.schema.types, strict=True))
        options = ReadOptions(pa.schema(list(kinds.items())), self.batch_rows)
        with pa.OSFile(split.path) as file:
            for batch in READ_FORMATS["parquet"].batches(file, split, options):
                arrays = [batch.column(batch.schema.get_field_index(name)) for name in self._columns]
                cast = [array.cast(kind) for array, kind in zip(arrays, self.schema.types, strict=True)]
                yield pa.RecordBatch.from_arrays(cast, schema=self.schema)

    def _check_unchanged(self, path: str) -> None:
        try:
            found = _stamp(path)
        except NotAScan as error:
            raise InputChanged(f"source {self.context.name!r}: {error}") from error
        if found != (wanted := self._stamps[path]):
            raise InputChanged(
                f"source {self.context.name!r}: {path} has {found.size} bytes and was written at {found.modified_ns}; "
                f"when the job was made it had {wanted.size} and was of {wanted.modified_ns} (nanoseconds since 1970): "
                "read the DataFrame again and submit the job again"
            )


def _check_columns(plan: ScanPlan, schema: pa.Schema) -> None:
    if len(plan.columns) != len(schema) or len(set(schema.names)) != len(schema):
        raise NotAScan(f"two of its columns have one name, or none: {', '.join(schema.names)}")
    for field in schema:
        kind = field.type
        if kind not in _SAME_TYPES and not pa.types.is_decimal128(kind) and not pa.types.is_timestamp(kind):
            raise NotAScan(f"its column {field.name!r} is of type {kind}")


def _stamp(path: str) -> FileStamp:
    try:
        found = os.stat(path)
    except OSError as error:
        raise NotAScan(f"{path} cannot be found from here: {error}") from error
    return FileStamp(found.st_size, found.st_mtime_ns)


def _splits(path: str, plan: ScanPlan, schema: pa.Schema) -> list[FileSplit]:
    """The file's row groups, if its columns are what the DataFrame says they are."""
    if os.path.basename(path).startswith((".", "_")):
        raise NotAScan(f"{path} is a hidden file, which Spark may leave out")
    try:
        with pa.parquet.ParquetFile(path) as file:
            metadata, found = file.metadata, file.schema_arrow
    except (ValueError, TypeError, NotImplementedError, OSError) as error:
        raise NotAScan(f"{path} cannot be read as Parquet here: {error}") from error
    for name, field in zip(plan.columns, schema, strict=True):
        _check_column(path, found, name, field.type)
    if any(map(_is_of_a_calendar, schema.types)) and not _dates_as_written(metadata.metadata or {}, plan):
        raise NotAScan(f"{path} may have dates in an older calendar")
    return [FileSplit(path, group, metadata.row_group(group).num_rows) for group in range(metadata.num_row_groups)]


def _check_column(path: str, found: pa.Schema, name: str, wanted: pa.DataType) -> None:
    """Spark finds columns whatever their case; so a name that two columns have but for case, it refuses or mistakes."""
    if [each.lower() for each in found.names].count(name.lower()) != 1 or name not in found.names:
        raise NotAScan(f"{path} has no column {name!r}, or several by that name: {', '.join(found.names)}")
    kind = found.field(name).type
    if not _is_read_as(kind, wanted):
        raise NotAScan(f"column {name!r} is {kind} in {path} and {wanted} in the DataFrame")


def _is_read_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast from the type in the file gives what Spark gives."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        # Both count from 1970 in UTC if they have a zone at all, which then is a matter of display.
        return found.unit in ("us", "ms") and (found.tz is None) == (wanted.tz is None)
    return bool(_NARROWED.get(found, found) == wanted)


def _is_of_a_calendar(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _dates_as_written(metadata: dict[bytes, bytes], plan: ScanPlan) -> bool:
    """Spark before 3.0, and later versions on demand, wrote days of the Julian calendar before 1582.

    Source: DataSourceUtils.datetimeRebaseSpec.
    """
    version = metadata.get(_SPARK_VERSION)
    if version is None:
        return plan.foreign_dates_as_written
    return version >= b"3.0.0" and _LEGACY_CALENDAR not in metadata
