"""Queries of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from understudy import Count, DataStream, Operator, bounded_out_of_orderness, session, sliding, tumbling

from ..query import Query
from ..streams import Streams

WINDOW_MS, SLIDE_MS = 10_000, 2_000


def _timed(stream: DataStream, streams: Streams, time: str = "date_time") -> DataStream:
    return stream.assign_timestamps(time, bounded_out_of_orderness(streams.delay_ms))


# -- q5


def q5(streams: Streams) -> DataStream:
    """The auctions with the most bids in the last 10 seconds, every 2 seconds; all of them if there are several."""
    bids = _timed(streams.bids("auction", "date_time"), streams)
    counts = bids.key_by("auction").window(sliding(WINDOW_MS, SLIDE_MS)).aggregate(num=Count())
    most = counts.process(MostOfBatch, name="most-of-batch")
    return most.key_by("window_end").window(tumbling(SLIDE_MS)).process(most_of_window).map_batches(_hot_items)


class MostOfBatch(Operator):
    """Of the counts of one window that come in one batch, the greatest: no other can be the greatest of all."""

    takes = "columns"

    def process_batch(self, batch: pa.RecordBatch, out: Any) -> None:
        ends, places = np.unique(np.asarray(batch.column("window_end")), return_inverse=True)
        counts = np.asarray(batch.column("num"))
        most = np.zeros(len(ends), np.int64)
        np.maximum.at(most, places, counts)
        kept = np.flatnonzero(counts == most[places])
        assert self.timestamps is not None, "a window's results have event times"
        out.emit(batch.take(pa.array(kept)), self.timestamps[kept])


def most_of_window(_key: Any, _window: Any, rows: Any, out: Any) -> None:
    """A window of the size of a slide has the counts of one sliding window, as their time is its last moment."""
    counted = list(rows)
    most = max(row.num for row in counted)
    for row in counted:
        if row.num == most:
            out.collect((row.window_end, row.auction, row.num))


def _hot_items(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.rename_columns(["window_end", "auction", "num"])


# -- q7


def q7(streams: Streams) -> DataStream:
    """The bids with the highest price of each 10 seconds. A bid at the very end of them matches as well, but does not
    count for the highest price, as the published query has it.
    """
    bids = streams.bids("auction", "price", "bidder", "date_time", "extra").map_batches(_candidates)
    highest = _timed(bids, streams, "turn").window_all(tumbling(WINDOW_MS)).process(highest_of_window)
    return highest.map_batches(_highest_bids)


def _candidates(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The bids that no other one of their window and batch tops; and those at the end of a window a second time, which
    belong to it then: their `turn`, the time that they go by, is 1 ms earlier, and they do not `count`.
    """
    times = np.asarray(batch.column("date_time").view(pa.int64()))
    windows, places = np.unique(times // WINDOW_MS, return_inverse=True)
    prices = np.asarray(batch.column("price"))
    highest = np.zeros(len(windows), np.int64)
    np.maximum.at(highest, places, prices)
    counting = np.flatnonzero(prices == highest[places])
    ending = np.flatnonzero(times % WINDOW_MS == 0)
    chosen = np.concatenate([counting, ending])
    counts = np.arange(len(chosen)) < len(counting)
    turns = times[chosen] - np.where(counts, 0, 1)
    return batch.take(pa.array(chosen)).append_column("turn", pa.array(turns)).append_column("counts", pa.array(counts))


def highest_of_window(_key: Any, _window: Any, rows: Any, out: Any) -> None:
    bids = list(rows)
    highest = max((bid.price for bid in bids if bid.counts), default=None)
    for bid in bids:
        if bid.price == highest:
            out.collect((bid.auction, bid.price, bid.bidder, bid.date_time, bid.extra))


def _highest_bids(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.rename_columns(["auction", "price", "bidder", "date_time", "extra"])


# -- q8


def q8(streams: Streams) -> DataStream:
    """The persons who came in a window of 10 seconds and opened an auction in it, once each."""
    persons = _timed(streams.persons("id", "name", "date_time"), streams).key_by("id")
    auctions = _timed(streams.auctions("seller", "date_time"), streams).key_by("seller")
    sold = persons.window_join(auctions, tumbling(WINDOW_MS))
    return sold.key_by("id", "name").window(tumbling(WINDOW_MS)).aggregate(auctions=Count())


# -- q11 and q12


def q11(streams: Streams) -> DataStream:
    """The bids of each session of a bidder, which ends with 10 seconds without any."""
    bids = _timed(streams.bids("bidder", "date_time"), streams)
    return bids.key_by("bidder").window(session(WINDOW_MS)).aggregate(bid_count=Count())


def q12(streams: Streams) -> DataStream:
    """The bids of each bidder in windows of 10 seconds: by event time, where the published query takes the clock's."""
    bids = _timed(streams.bids("bidder", "date_time"), streams)
    return bids.key_by("bidder").window(tumbling(WINDOW_MS)).aggregate(bid_count=Count())


_COUNTED = ("bidder", "bid_count", "window_start", "window_end")

QUERIES = (
    Query("q5", q5, ("window_end", "auction", "num")),
    Query("q7", q7, ("auction", "price", "bidder", "date_time", "extra")),
    Query("q8", q8, ("id", "name", "window_start")),
    Query("q11", q11, _COUNTED),
    Query("q12", q12, _COUNTED),
)
