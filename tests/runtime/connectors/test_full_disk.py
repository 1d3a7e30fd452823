"""A disk that takes no more while a job writes: the error names the output and what to do, and nothing is lost by it.

The kernel itself refuses here: no file of this process may grow beyond a limit (RLIMIT_FSIZE).
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import FileSink, UnusableOutput
from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness

from .lakes.lake import DeltaLake, IcebergLake

SCHEMA = pa.schema([("key", pa.int64()), ("text", pa.string())])
ROWS = pa.RecordBatch.from_pylist([{"key": i, "text": f"text {i * i}" * 9} for i in range(20_000)], SCHEMA)
LIMIT = 20_000


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def file_sink(folder: Path) -> Any:
    return FileSink(f"{folder}/out", "csv", SCHEMA)


def delta_writer(folder: Path) -> Any:
    lake = DeltaLake(folder)
    lake.make()
    return lake.sink().writer()


def iceberg_writer(folder: Path) -> Any:
    lake = IcebergLake(folder)
    lake.make()
    return lake.sink().writer()


@pytest.mark.parametrize("make", [file_sink, delta_writer, iceberg_writer])
def test_an_output_that_takes_no_more_is_named(make: Callable[[Path], Any], tmp_path: Path) -> None:
    operator = make(tmp_path)
    with OperatorHarness(operator) as writing:
        place = getattr(operator, "table", None) or operator.path
        told = f"cannot write to {place}: no file there may become so large: raise the limit"
        with files_of_at_most(LIMIT), pytest.raises(UserCodeError) as failed:
            _write(writing)
    assert isinstance(failed.value.__cause__, UnusableOutput)
    assert str(failed.value.__cause__).startswith(told)


def _write(writing: OperatorHarness) -> None:
    writing.process(ROWS)
    writing.snapshot()
