"""Whether rows that end are all: the pipe from Spark has a word more, or its other end is closed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BufferedReader
from typing import BinaryIO, cast

import pyarrow as pa
import pytest

from understudy.runtime.clusters.spark_input import pipe_of_worker, whole
from understudy.runtime.connectors.errors import PartitionFailed

BATCH = pa.record_batch({"n": [1, 2]})


@pytest.fixture
def pipe() -> Iterator[tuple[BufferedReader, BinaryIO]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as infile, os.fdopen(writing, "wb") as outfile:
        yield infile, outfile


def test_rows_behind_which_spark_has_hung_up_are_not_all(pipe: tuple[BufferedReader, BinaryIO]) -> None:
    pipe[1].close()
    rows = whole(iter([BATCH]), pipe[0])
    assert next(rows) is BATCH
    with pytest.raises(PartitionFailed, match="not given all"):
        next(rows)


def test_rows_behind_which_spark_says_so_are_all_and_what_it_says_is_left_for_pyspark(
    pipe: tuple[BufferedReader, BinaryIO],
) -> None:
    pipe[1].write(b"\xff\xff\xff\xfc")
    pipe[1].flush()
    assert list(whole(iter([BATCH]), pipe[0])) == [BATCH]
    assert pipe[0].read(4) == b"\xff\xff\xff\xfc"


def test_the_pipe_is_that_of_the_worker_around(pipe: tuple[BufferedReader, BinaryIO]) -> None:
    def main(infile: BufferedReader, outfile: BinaryIO) -> BufferedReader | None:
        return pipe_of_worker()

    assert main(*pipe) is cast(BufferedReader, pipe[0])
    assert pipe_of_worker() is None
    assert list(whole(iter([BATCH]), None)) == [BATCH]
