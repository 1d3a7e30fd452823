"""Frames: tables in the user's process, of pandas, Polars, DuckDB or Arrow, as an Arrow table and back.

Anything that hands out Arrow's C stream (`__arrow_c_stream__`) is a frame. pandas, Polars and DuckDB are imported when
they are wanted. What becomes of a table in a job: `table_source`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...messages import shown
from .errors import UnreadableInput


def table_of(frame: Any, wanted_by: str) -> pa.Table:
    """The frame's columns, by types that records have: those of a dictionary (a pandas category) are its values.

    A pandas index is left out. Raises UnreadableInput for what is no frame, for a lazy one, and for columns without a
    name, or with that of another.
    """
    table = _as_table(frame, wanted_by)
    names = table.schema.names
    if wrong := [name for name in names if not name or names.count(name) > 1]:
        raise UnreadableInput(
            f"{wanted_by}: wanted columns with a name each, found {', '.join(map(repr, names))} ({wrong[0]!r} is "
            f"{'there twice' if wrong[0] else 'no name'}): rename them"
        )
    fields = [pa.field(field.name, _decoded(field.type), field.nullable) for field in table.schema]
    columns = [pc.run_end_decode(each) if pa.types.is_run_end_encoded(each.type) else each for each in table.columns]
    return pa.Table.from_arrays(columns, names).cast(pa.schema(fields))


def reader_of(found: Any) -> str:
    """Which method of the environment reads this, and how; "" where that is not known."""
    kind = type(found)
    library, frame = kind.__module__.partition(".")[0], kind.__name__
    match library:
        case "pyspark" if kind.__module__.startswith("pyspark.pandas"):
            return "from_dataframe(frame.to_spark())"
        case "pyspark" if frame == "RDD":
            return "from_dataframe(rdd.toDF(...))"
        case "pyspark" if getattr(found, "isStreaming", False) is True:
            return "from_spark_stream(dataframe)"
        case "pyspark" if hasattr(found, "schema"):
            return "from_dataframe(dataframe)"
        case "pandas" | "polars" if frame == "Series":
            return f"from_{library}(series.to_frame())"
        case "pandas" if frame == "DataFrame":
            return "from_pandas(frame)"
        case "polars" if frame == "LazyFrame":
            return "from_polars(frame.collect())"
        case "polars" if frame == "DataFrame":
            return "from_polars(frame)"
    if isinstance(found, pa.Array | pa.ChunkedArray):
        return "from_arrow(pa.table({'value': array}))"
    if hasattr(found, "__arrow_c_stream__") or isinstance(found, pa.RecordBatch):
        return "from_arrow(table)"
    if isinstance(found, str | PurePath):
        return "from_parquet(path), from_csv(path), from_jsonl(path) or from_text(path)"
    if isinstance(found, Mapping):
        return "from_arrow(pa.table(columns))"
    return "from_collection(records)" if isinstance(found, Iterable) else ""


def is_frame(found: Any) -> bool:
    """Whether it is a DataFrame of pandas or Polars, which is iterable: its columns come, or their names."""
    kind = type(found)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] in ("pandas", "polars")


def other_reader(found: Any) -> str:
    """The same, to stand at the end of a refusal."""
    reader = reader_of(found)
    return f"; env.{reader} reads this" if reader else ""


def _as_table(frame: Any, wanted_by: str) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    library = type(frame).__module__.partition(".")[0]
    if library == "pyspark":  # some of its releases hand out Arrow's C stream: all rows, through this process
        raise UnreadableInput(
            f"{wanted_by}: wanted a table in this process, found a {type(frame).__name__} of Spark{other_reader(frame)}"
        )
    try:
        if library == "pandas" and hasattr(frame, "columns"):
            return pa.Table.from_pandas(_named_by_texts(frame), preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__") and type(frame).__name__ != "Series":  # a column is no table
            return pa.table(frame)
        if isinstance(frame, Sequence) and frame and all(isinstance(each, pa.RecordBatch) for each in frame):
            return pa.Table.from_batches(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnreadableInput(f"{wanted_by}: this {type(frame).__name__} has no columns of Arrow: {error}") from error
    raise UnreadableInput(
        f"{wanted_by}: wanted a table of columns (Arrow, pandas, Polars, DuckDB, or anything with __arrow_c_stream__), "
        f"found {shown(frame)}{other_reader(frame)}"
    )


def _named_by_texts(frame: Any) -> Any:
    """pandas names columns by anything; Arrow by texts."""
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    raise ValueError(f"wanted columns named by texts, found {list(frame.columns)!r:.200}: rename them")


def _decoded(kind: pa.DataType) -> pa.DataType:
    """The type of the values alone: an encoding belongs to a table, and the records of a stream have no table."""
    if pa.types.is_dictionary(kind):
        return _decoded(kind.value_type)
    if pa.types.is_run_end_encoded(kind):
        return _decoded(kind.value_type)
    if kind == pa.string_view():
        return pa.string()
    return pa.binary() if kind == pa.binary_view() else kind
