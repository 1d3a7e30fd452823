"""Where a query's streams come from: the generator or the files of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from understudy import DataStream, StreamEnvironment

from .model import EPOCH, PER_EPOCH, SCHEMAS, Model, Stream

DELAY_MS = 4_000
"""By how much watermarks are behind the greatest time, as in the original."""


@dataclass(frozen=True)
class Streams:
    """The three streams of one job. `read`: gives a stream with some of its columns."""

    read: Callable[..., DataStream]
    delay_ms: int = DELAY_MS

    def bids(self, *columns: str) -> DataStream:
        return self.read("bid", columns)

    def auctions(self, *columns: str) -> DataStream:
        return self.read("auction", columns)

    def persons(self, *columns: str) -> DataStream:
        return self.read("person", columns)


def generated(env: StreamEnvironment, model: Model, events_per_second: float | None = None) -> Streams:
    """Each subtask of a stream makes every p-th block of its rows; a stream that is not read is not made."""

    def read(stream: Stream, columns: tuple[str, ...]) -> DataStream:
        wanted = columns or tuple(SCHEMAS[stream].names)
        make = partial(rows_of, model, stream, wanted)
        pace = None if events_per_second is None else events_per_second * PER_EPOCH[stream] / EPOCH
        schema = pa.schema([SCHEMAS[stream].field(name) for name in wanted])
        return env.generate(make, model.rows(stream), schema=schema, records_per_second=pace, name=f"{stream}s")

    return Streams(read, _delay_ms(model))


def rows_of(model: Model, stream: Stream, columns: tuple[str, ...], start: int, rows: int) -> pa.RecordBatch:
    return model.batch(stream, start, rows, columns)


def stored(env: StreamEnvironment, folder: Path, model: Model) -> Streams:
    """From the Parquet files of the model's dataset."""

    def read(stream: Stream, columns: tuple[str, ...]) -> DataStream:
        wanted = list(columns or SCHEMAS[stream].names)
        return env.from_parquet(str(folder / f"{stream}.parquet"), columns=wanted, name=f"{stream}s")

    return Streams(read, _delay_ms(model))


def _delay_ms(model: Model) -> int:
    """So that no event is late."""
    return max(DELAY_MS, model.disorder_ms)
