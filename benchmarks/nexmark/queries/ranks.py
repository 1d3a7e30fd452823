"""Queries that keep the best or the last rows of a key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from understudy import DataStream, KeyedOperator, ValueState

from ..query import Query
from ..streams import Streams

_BID = ("auction", "bidder", "price", "channel", "url", "date_time", "extra")


class Last(KeyedOperator):
    """Passes a bid on when none of its key has a later time; `time_ms` is the time as a number."""

    compiled = True
    latest = ValueState(int, default=-1)

    def process(self, record: Any, out: Any) -> None:
        if record.time_ms >= self.latest.value():
            self.latest.update(record.time_ms)
            out.collect(record)


def q18(streams: Streams) -> DataStream:
    """The last bid of each bidder on each auction; of several in one millisecond any."""
    bids = streams.bids(*_BID).map_batches(_last_of_batch, schema=_LAST, name="last-of-batch")
    return bids.key_by("bidder", "auction").process(Last, name="last")


_LAST = pa.schema(
    [(name, pa.string() if name in ("channel", "url", "extra") else pa.int64()) for name in _BID if name != "date_time"]
    + [("time_ms", pa.int64())]
)


def _last_of_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Of each key of the batch the last row: what comes before it in the same batch is not worth sending."""
    auction, bidder = np.asarray(batch.column("auction")), np.asarray(batch.column("bidder"))
    times = np.asarray(batch.column("date_time").view(pa.int64()))
    order = np.lexsort((times, bidder, auction))
    auction, bidder = auction[order], bidder[order]
    is_last = np.append((auction[1:] != auction[:-1]) | (bidder[1:] != bidder[:-1]), True)
    columns = {name: batch.column(name) for name in _BID if name != "date_time"} | {"time_ms": pa.array(times)}
    return pa.RecordBatch.from_pydict(columns, schema=_LAST).take(pa.array(np.sort(order[is_last])))


QUERIES = (Query("q18", q18, ("bidder", "auction", "time_ms"), key=("bidder", "auction")),)
