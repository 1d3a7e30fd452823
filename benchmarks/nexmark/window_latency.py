"""How long the results of windows take: from the moment when the last source has emitted what closes a window to the
moment when a result of that window has reached the sink.

The source is paced so that a second of event time takes a second. What closes a window is the first record whose time
is the window's end and the delay of the watermarks later: nothing can be known sooner.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy import DataStream, Operator

_EMITTED, _ARRIVED = "emitted", "arrived"


class Emissions(Operator):
    """Behind a source: notes how far event time had come, and when. Passes everything on."""

    takes = "columns"

    def __init__(self, out: Path) -> None:
        self._out = out

    def open(self) -> None:
        self._notes: list[tuple[int, int]] = []

    def process_batch(self, batch: pa.RecordBatch, out: Any) -> None:
        latest = int(np.asarray(batch.column("date_time").view(pa.int64())).max())
        self._notes.append((latest, time.time_ns()))
        out.emit(batch)

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        return inputs[0]

    def on_end(self, out: Any) -> None:
        where = f"{self.context.name}-{self.context.subtask_index}"
        np.save(self._out / f"{_EMITTED}-{where}.npy", np.array(self._notes, np.int64).reshape(-1, 2))


class WindowArrivals(Operator):
    """A sink that notes when the results of each window came, by its column `window_end`."""

    takes = "columns"

    def __init__(self, out: Path) -> None:
        self._out = out

    def open(self) -> None:
        self._notes: list[Any] = [np.empty((0, 2), np.int64)]

    def process_batch(self, batch: pa.RecordBatch, out: Any) -> None:
        now_ns = time.time_ns()
        ends = np.asarray(batch.column("window_end").cast(pa.timestamp("ms")).view(pa.int64()))
        self._notes.append(np.column_stack([ends, np.full(len(ends), now_ns)]))

    def on_end(self, out: Any) -> None:
        np.save(self._out / f"{_ARRIVED}-{self.context.subtask_index}.npy", np.concatenate(self._notes))


def tapped(stream: DataStream, out: Path) -> DataStream:
    """The same stream, noted."""
    return stream.process(Emissions(out), schema=stream.schema)


def latencies_ms(out: Path, delay_ms: int) -> Any:
    """Of all results whose window was closed by records, and not by the end of data."""
    arrived = np.concatenate([np.load(path) for path in sorted(out.glob(f"{_ARRIVED}-*.npy"))])
    closed = np.zeros(len(arrived), np.int64)
    is_closed = np.ones(len(arrived), np.bool_)
    for path in out.glob(f"{_EMITTED}-*.npy"):
        latest, moments = np.load(path).T
        places = np.searchsorted(np.maximum.accumulate(latest), arrived[:, 0] + delay_ms)
        is_closed &= places < len(latest)
        closed = np.maximum(closed, moments[np.minimum(places, len(latest) - 1)])
    return (arrived[is_closed, 1] - closed[is_closed]) / 1e6
