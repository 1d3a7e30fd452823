"""Frames become tables of types that records have; what is no frame is refused with what was found."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from understudy import UnreadableInput
from understudy.actors.operators.source import Source
from understudy.runtime.connectors import TableSource, table_of

from ...contracts.source import RECORDS, SourceContract

TABLE = pa.table({"n": pa.array([1, 2], pa.int64()), "name": ["a", None]})


class TestTableSource(SourceContract):
    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        table = pa.table({"n": list(range(RECORDS)), "name": [str(n) for n in range(RECORDS)]})
        return TableSource(table, batch_rows=batch_rows, records_per_second=records_per_second)


@pytest.mark.parametrize(
    "frame",
    [
        TABLE,
        TABLE.to_batches()[0],
        [TABLE.to_batches()[0].slice(0, 1), TABLE.to_batches()[0].slice(1)],
        TABLE.to_pandas(),
        pd.DataFrame({"n": [1, 2], "name": pd.Categorical(["a", None])}, index=["x", "y"]),
        pl.from_arrow(TABLE),
        pa.table({"n": [1, 2], "name": pa.array(["a", None]).dictionary_encode()}),
        pa.table({"n": [1, 2], "name": pa.array(["a", None]).cast(pa.string_view())}),
        pa.table({"n": [1, 2], "name": pc.run_end_encode(pa.array(["a", None]))}),
        pa.concat_tables(
            pa.table({"n": [n], "name": pc.run_end_encode(pa.array([name], pa.large_string()))})
            for n, name in [(1, "a"), (2, None)]
        ),
    ],
    ids=lambda frame: f"{type(frame).__module__}.{type(frame).__qualname__}",
)
def test_all_kinds_of_frames_are_the_same_table(frame: Any) -> None:
    found = table_of(frame, "from_arrow")
    assert found.schema.metadata is None
    assert found.schema.field("name").type in (pa.string(), pa.large_string())
    assert found.to_pylist() == TABLE.to_pylist()


def test_a_relation_of_duckdb_is_a_frame() -> None:
    assert table_of(duckdb.from_arrow(TABLE), "from_arrow").to_pylist() == TABLE.to_pylist()


def test_dates_and_nulls_of_pandas() -> None:
    day = datetime.datetime(2026, 11, 22)
    frame = pd.DataFrame({"at": [pd.Timestamp(day), pd.NaT], "x": [1.5, float("nan")]})
    assert table_of(frame, "from_pandas").to_pylist() == [{"at": day, "x": 1.5}, {"at": None, "x": None}]


class OfSpark:
    """A DataFrame of Spark, as far as it is looked at. Newer releases hand out Arrow's stream, and read all for it."""

    def __init__(self, isStreaming: bool = False) -> None:
        self.isStreaming = isStreaming
        self.schema = None

    def __arrow_c_stream__(self, wanted: object = None) -> Any:
        raise AssertionError("all rows were read")


OfSpark.__module__ = "pyspark.sql.classic.dataframe"


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ([1, 2], r"from_arrow: wanted a table of columns .*, found \[1, 2\]"),
        ([], r"wanted a table of columns .*, found \[\]"),
        (pl.from_arrow(TABLE).lazy(), r"; env.from_polars\(frame.collect\(\)\) reads this$"),
        (pd.Series([1, 2]), r"; env.from_pandas\(series.to_frame\(\)\) reads this$"),
        (pl.Series([1, 2]), r"; env.from_polars\(series.to_frame\(\)\) reads this$"),
        (pa.array([1]), r"; env.from_arrow\(pa.table\(.*\)\) reads this$"),
        ([{"a": 1}], r"; env.from_collection\(records\) reads this$"),
        ({"a": [1]}, r"; env.from_arrow\(pa.table\(columns\)\) reads this$"),
        ("a.parquet", r"; env.from_parquet\(path\), .* reads this$"),
        (Path("a.parquet"), r"; env.from_parquet\(path\), .* reads this$"),
        (OfSpark(), r"wanted a table in this process, found a OfSpark of Spark; env.from_dataframe\(dataframe\) reads"),
        (OfSpark(isStreaming=True), r"of Spark; env.from_spark_stream\(dataframe\) reads this$"),
        (3, "found 3$"),
        (pd.DataFrame({0: [1]}), r"wanted columns named by texts, found \[0\]: rename them"),
        (pd.DataFrame({"a": [1, "x"]}), "has no columns of Arrow: .*a"),
        (pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), "found 'a', 'a' .'a' is there twice.: rename"),
        (pa.table([pa.array([1])], names=[""]), "found '' .'' is no name.: rename"),
    ],
)
def test_what_is_no_frame_is_refused(frame: Any, said: str) -> None:
    with pytest.raises(UnreadableInput, match=said):
        table_of(frame, "from_arrow")
