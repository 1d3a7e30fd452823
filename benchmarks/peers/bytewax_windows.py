"""Bytewax's flow for windows: its windows take records one by one, and its watermark is one per key.

That watermark goes on with the system's clock while records wait to be taken. So with a delay as short as that of the
other sides, records that were read in time are late, and the answer is wrong; here it waits for a day, and windows
close at the end of the input.
"""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.data import Dataset
from benchmarks.timed_data import GAP_MS, SIZE_MS, SLIDE_MS

from .bytewax_flows import RECORDS, Halves, Outcome

operators: Any = importlib.import_module("bytewax.operators")
windowing: Any = importlib.import_module("bytewax.operators.windowing")
dataflow: Any = importlib.import_module("bytewax.dataflow")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Sums = tuple[int, int, int]
"""Count, sum and greatest time in ms."""


def windows(data: Dataset, out: Path, shape: str) -> Any:
    """Results are (key, window end, count, sum)."""
    flow = dataflow.Dataflow("windows")
    rows = operators.input("rows", flow, Halves(data, out, RECORDS, _records))
    clock = windowing.EventClock(_time, timedelta(days=1))
    folded = windowing.fold_window("windows", rows, clock, _windower(shape), _nothing, _with_record, _with_other)
    results = operators.map("results", folded.down, lambda item: (item[0], _result(shape, *item)))
    operators.output("out", results, Outcome(out, "digest"))
    return flow


def _windower(shape: str) -> Any:
    size, slide = timedelta(milliseconds=SIZE_MS), timedelta(milliseconds=SLIDE_MS)
    match shape:
        case "tumbling":
            return windowing.TumblingWindower(length=size, align_to=EPOCH)
        case "sliding":
            return windowing.SlidingWindower(length=size, offset=slide, align_to=EPOCH)
        case _:
            return windowing.SessionWindower(gap=timedelta(milliseconds=GAP_MS))


def _records(batch: pa.RecordBatch) -> list[Any]:
    keys, values, times = (batch[name].to_pylist() for name in ("key", "value", "time"))
    return list(zip(map(str, keys), zip(values, times, strict=True), strict=True))


def _time(record: tuple[int, int]) -> datetime:
    return EPOCH + timedelta(milliseconds=record[1])


def _nothing() -> Sums:
    return 0, 0, 0


def _with_record(sums: Sums, record: tuple[int, int]) -> Sums:
    return sums[0] + 1, sums[1] + record[0], max(sums[2], record[1])


def _with_other(one: Sums, other: Sums) -> Sums:
    return one[0] + other[0], one[1] + other[1], max(one[2], other[2])


def _result(shape: str, key: str, found: tuple[int, Sums]) -> tuple[int, int, int, int]:
    """Windows that lie at regular distances are numbered from the epoch on."""
    number, (count, total, last) = found
    match shape:
        case "tumbling":
            ends = (number + 1) * SIZE_MS
        case "sliding":
            ends = number * SLIDE_MS + SIZE_MS
        case _:
            ends = last + GAP_MS
    return int(key), ends, count, total
