"""Queries about the bid that wins an auction: with timers, as auctions close.

A bid counts from the auction's begin to its end, both inclusive. The highest price wins, of equal ones the earliest
bid, and of those the bidder with the smallest id. The original query q9 leaves ties open and gives an update each time
that a bid leads; here an auction has one row, when event time has passed its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from understudy import Count, DataStream, KeyedOperator, ListState, Sum, ValueState, bounded_out_of_orderness

from ..query import Query
from ..streams import Streams

KEPT_MS = 60_000
"""How long an auction is remembered after its end, so that bids that come too late are known to."""
CLOSED, FORGOTTEN, EARLY = 0, 1, 2
"""Namespaces of timers."""


class Winner(KeyedOperator):
    """First input: bids (auction, price, time_ms, bidder); second: auctions (id, begins_ms, ends_ms, and more). Emits
    an auction's row and its winning bid's price, time and bidder.
    """

    inputs = 2
    auction = ValueState(tuple)
    best = ValueState(tuple)
    early = ListState(tuple)
    """Bids that came before their auction did."""

    def process(self, bid: Any, out: Any) -> None:
        _, price, time_ms, bidder = bid
        auction = self.auction.value()
        if auction is None:
            self.early.add((-price, time_ms, bidder))
            self.timers.at_event_time(time_ms, EARLY)
        elif auction[1] <= time_ms <= auction[2]:
            self._consider((-price, time_ms, bidder))

    def process_2(self, auction: Any, out: Any) -> None:
        row = tuple(auction)
        self.auction.update(row)
        for bid in self.early.get():
            if row[1] <= bid[1] <= row[2]:
                self._consider(bid)
        self.early.clear()
        self.timers.at_event_time(row[2], CLOSED)
        self.timers.at_event_time(row[2] + KEPT_MS, FORGOTTEN)

    def on_timer(self, timer: Any, out: Any) -> None:
        if timer.namespace == CLOSED:
            best = self.best.value()
            if best is not None:
                out.collect((*(self.auction.value() or ()), -best[0], best[1], best[2]))
                self.best.clear()
        elif timer.namespace == FORGOTTEN:
            self.auction.clear()
        else:
            self.early.clear()  # if the auction had begun by then, it would be here

    def _consider(self, bid: tuple[int, int, int]) -> None:
        best = self.best.value()
        if best is None or bid < best:
            self.best.update(bid)


def winners(streams: Streams, *more: str) -> DataStream:
    """Tuples of an auction's id, begin, end, the columns `more`, and its winning bid's price, time and bidder."""
    watermarks = bounded_out_of_orderness(streams.delay_ms)
    bids = streams.bids("auction", "price", "date_time", "bidder").map_batches(_with_numbers)
    auctions = streams.auctions("id", "date_time", "expires", *more).map_batches(_with_numbers)
    timed = (
        bids.assign_timestamps("date_time", watermarks).key_by("auction"),
        auctions.assign_timestamps("date_time", watermarks).key_by("id"),
    )
    return timed[0].connect(timed[1]).process(Winner, name="winner")


def _with_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Times as numbers of milliseconds."""
    for name in ("date_time", "expires"):
        at = batch.schema.get_field_index(name)
        if at >= 0:
            batch = batch.set_column(at, name, batch.column(at).view(pa.int64()))
    return batch


class _Columns:
    """Some items of tuples as columns."""

    def __init__(self, **places: int) -> None:
        self._places = places

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([batch.column(place) for place in self._places.values()], list(self._places))


_DETAILS = ("item_name", "description", "initial_bid", "reserve", "seller", "category", "extra")


def q9(streams: Streams) -> DataStream:
    """The winning bid of each auction."""
    columns = ("id", "date_time", "expires", *_DETAILS, "price", "bid_date_time", "bidder")
    return winners(streams, *_DETAILS).map_batches(_Columns(**{name: place for place, name in enumerate(columns)}))


def q4(streams: Streams) -> DataStream:
    """The mean of the winning prices per category, as auctions close."""
    closed = winners(streams, "category").map_batches(
        _Columns(category=3, price=4), schema=pa.schema({"category": pa.int64(), "price": pa.int64()})
    )
    totals = closed.key_by("category").aggregate("updates", name="totals", sum=Sum("price"), count=Count())
    return totals.map_batches(_mean)


def _mean(batch: pa.RecordBatch) -> pa.RecordBatch:
    mean = np.asarray(batch.column("sum")) // np.asarray(batch.column("count"))
    return pa.RecordBatch.from_pydict({"category": batch.column("category"), "mean": pa.array(mean)})


class LastClosed(KeyedOperator):
    """Per seller, in the order in which auctions end, of those that end together in that of their ids: the mean of the
    winning prices of the last 11, as many as ROWS BETWEEN 10 PRECEDING AND CURRENT ROW takes.
    """

    prices = ValueState(list, default=[])
    waiting = ListState(tuple)

    def process(self, closed: Any, out: Any) -> None:
        auction, ends_ms, price = closed[0], closed[2], closed[4]
        self.waiting.add((ends_ms, auction, price))
        self.timers.at_event_time(ends_ms)

    def on_timer(self, timer: Any, out: Any) -> None:
        waiting = sorted(self.waiting.get())
        due = [each for each in waiting if each[0] <= timer.time_ms]
        self.waiting.update(waiting[len(due) :])
        prices = self.prices.value()
        for _, auction, price in due:
            prices = [*prices, price][-11:]
            out.collect((self.key, auction, sum(prices) // len(prices)))
        self.prices.update(prices)


def q6(streams: Streams) -> DataStream:
    """The mean of the winning prices of a seller's last auctions."""
    means = winners(streams, "seller").key_by(3).process(LastClosed, name="last-closed")
    return means.map_batches(_Columns(seller=0, auction=1, mean=2))


QUERIES = (
    Query("q4", q4, ("category", "mean"), key=("category",)),
    Query("q6", q6, ("seller", "auction", "mean")),
    Query(
        "q9",
        q9,
        ("id", "price", "bid_date_time", *_DETAILS, "date_time", "expires"),
        key=("id",),
    ),
)
