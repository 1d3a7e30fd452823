"""Queries that count: per day, per channel and day, per auction and day."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy import Count, DataStream, KeyedOperator, Max, Min, Sum, ValueState

from ..query import Query
from ..streams import Streams

DAY_MS, MINUTE_MS = 86_400_000, 60_000
RANKS = ("rank1", "rank2", "rank3")
"""Of a price: below 10,000; below a million; the others."""


def _ranked(batch: pa.RecordBatch) -> dict[str, Any]:
    """The columns of a batch, with the day as a number and a 1 in the column of the price's rank."""
    price, times = np.asarray(batch.column("price")), np.asarray(batch.column("date_time").view(pa.int64()))
    columns = {name: batch.column(name) for name in batch.schema.names if name != "date_time"}
    rank = (price >= 10_000).astype(np.int8) + (price >= 1_000_000)
    columns["day"] = times // DAY_MS
    return columns | {name: (rank == number).astype(np.int64) for number, name in enumerate(RANKS)}


def _day_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The day as a text again."""
    at = batch.schema.get_field_index("day")
    days = np.asarray(batch.column(at)).astype("M8[D]").astype("M8[s]")
    return batch.set_column(at, "day", pc.strftime(pa.array(days), "%Y-%m-%d"))


# -- q17


def q17(streams: Streams) -> DataStream:
    """Per auction and day: how many bids, of each rank, and least, greatest, mean and sum of the prices."""
    bids = streams.bids("auction", "price", "date_time").map_batches(_with_ranks, schema=_RANKED)
    totals = bids.key_by("auction", "day").aggregate(
        "updates",
        name="totals",
        total_bids=Count(),
        rank1_bids=Sum("rank1"),
        rank2_bids=Sum("rank2"),
        rank3_bids=Sum("rank3"),
        min_price=Min("price"),
        max_price=Max("price"),
        sum_price=Sum("price"),
    )
    return totals.map_batches(_with_mean)


_RANKED = pa.schema([(name, pa.int64()) for name in ("auction", "price", "day", *RANKS)])


def _with_ranks(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(_ranked(batch), schema=_RANKED)


def _with_mean(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The mean of integers is an integer, cut off."""
    mean = np.asarray(batch.column("sum_price")) // np.asarray(batch.column("total_bids"))
    return _day_texts(batch.append_column("avg_price", pa.array(mean)))


# -- q15 and q16

GROUPS: dict[str, tuple[str, ...]] = {"q15": ("day",), "q16": ("channel", "day")}
_FOUR = ("total", *RANKS)
COUNTS = tuple(f"{rank}_{what}" for what in ("bids", "bidders", "auctions") for rank in _FOUR)
"""total_bids, rank1_bids, …, rank3_auctions: what is counted."""


def new_ranks(had: int, record: Any) -> int:
    """The ranks in which a bidder, or an auction, has been seen, as bits, with those of a record."""
    now = had
    if record.rank1:
        now |= 1
    if record.rank2:
        now |= 2
    if record.rank3:
        now |= 4
    return now


class NewInDay(KeyedOperator):
    """Takes the ranks of a bidder, or of an auction, each time that they change; emits what is new about it, as 1 or 0:
    that it is there, and each rank.
    """

    compiled = True
    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        had = self.seen.value()
        now = new_ranks(had, record)
        if now != had:
            self.seen.update(now)
            out.collect((record.day, 1 if had == 0 else 0, (now ^ had) & 1, (now ^ had) >> 1 & 1, (now ^ had) >> 2))


class NewInChannel(KeyedOperator):
    """The same with the channel."""

    compiled = True
    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        had = self.seen.value()
        now = new_ranks(had, record)
        if now != had:
            self.seen.update(now)
            is_new = 1 if had == 0 else 0
            out.collect((record.channel, record.day, is_new, (now ^ had) & 1, (now ^ had) >> 1 & 1, (now ^ had) >> 2))


class DayTogether(KeyedOperator):
    """The four counts of bids, bidders and auctions come one after the other, each as often as they change; emits all
    twelve.
    """

    compiled = True
    counts = ValueState(tuple, default=(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    def process(self, record: Any, out: Any) -> None:
        b, b1, b2, b3, p, p1, p2, p3, a, a1, a2, a3 = self.counts.value()
        if record.what == 0:
            b, b1, b2, b3 = record.total, record.rank1, record.rank2, record.rank3
        elif record.what == 1:
            p, p1, p2, p3 = record.total, record.rank1, record.rank2, record.rank3
        else:
            a, a1, a2, a3 = record.total, record.rank1, record.rank2, record.rank3
        self.counts.update((b, b1, b2, b3, p, p1, p2, p3, a, a1, a2, a3))
        out.collect((record.day, b, b1, b2, b3, p, p1, p2, p3, a, a1, a2, a3))


class ChannelTogether(KeyedOperator):
    """The same with the channel, and the last minute that had a bid."""

    compiled = True
    counts = ValueState(tuple, default=(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    def process(self, record: Any, out: Any) -> None:
        minute, b, b1, b2, b3, p, p1, p2, p3, a, a1, a2, a3 = self.counts.value()
        if record.what == 0:
            b, b1, b2, b3 = record.total, record.rank1, record.rank2, record.rank3
            minute = record.minute
        elif record.what == 1:
            p, p1, p2, p3 = record.total, record.rank1, record.rank2, record.rank3
        else:
            a, a1, a2, a3 = record.total, record.rank1, record.rank2, record.rank3
        self.counts.update((minute, b, b1, b2, b3, p, p1, p2, p3, a, a1, a2, a3))
        out.collect((record.channel, record.day, minute, b, b1, b2, b3, p, p1, p2, p3, a, a1, a2, a3))


_NEW: dict[str, type[KeyedOperator]] = {"q15": NewInDay, "q16": NewInChannel}
_TOGETHER: dict[str, type[KeyedOperator]] = {"q15": DayTogether, "q16": ChannelTogether}


def q15(streams: Streams) -> DataStream:
    """Per day: bids, bidders and auctions, each in all and by rank."""
    return _counted("q15", streams.bids("auction", "bidder", "price", "date_time"))


def q16(streams: Streams) -> DataStream:
    """The same per channel and day, with the last minute in which there was a bid."""
    return _counted("q16", streams.bids("auction", "bidder", "price", "channel", "date_time"))


def _counted(query: str, bids: DataStream) -> DataStream:
    """Distinct bidders and auctions are found in two steps, as few rows of all bids are left after the first: the ranks
    of each per group, added up before the shuffle; and what is new about them, counted.
    """
    group = GROUPS[query]
    ranked = bids.map_batches(_grouped, schema=_grouped_schema(group), name="ranked")
    sums: dict[str, Any] = {name: Sum(name) for name in RANKS}
    total = ranked.key_by(*group).aggregate("updates", name="bid-totals", total=Count(), minute=Max("minute"), **sums)
    parts = [total]
    for who in ("bidder", "auction"):
        flags: dict[str, Any] = {name: Max(name) for name in RANKS}
        ranks = ranked.key_by(*group, who).aggregate("updates", name=f"{who}-ranks", **flags)
        names = (*group, *_FOUR)
        news = ranks.key_by(*group, who).process(_NEW[query], name=f"new-{who}s")
        news = news.map_batches(_Renamed(names), schema=_numbers(names), name=f"new-{who}s-named")
        counts: dict[str, Any] = {name: Sum(name) for name in _FOUR}
        parts.append(news.key_by(*group).aggregate("updates", name=f"{who}-totals", **counts))
    told = (*group, "what", "minute", *_FOUR)
    labelled = [part.map_batches(_Labelled(told, what), schema=_numbers(told)) for what, part in enumerate(parts)]
    together = labelled[0].union(*labelled[1:]).key_by(*group).process(_TOGETHER[query], name="together")
    results = (*group, *(("minute",) if query == "q16" else ()), *COUNTS)
    return together.map_batches(_Renamed(results)).map_batches(_readable)


def _numbers(names: tuple[str, ...]) -> pa.Schema:
    """All int64, but the channel."""
    return pa.schema([(name, pa.string() if name == "channel" else pa.int64()) for name in names])


def _grouped_schema(group: tuple[str, ...]) -> pa.Schema:
    return _numbers((*group, "auction", "bidder", "minute", *RANKS))


def _grouped(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = _ranked(batch)
    times = np.asarray(batch.column("date_time").view(pa.int64()))
    columns["minute"] = times % DAY_MS // MINUTE_MS
    group = tuple(name for name in ("channel", "day") if name in columns)
    return pa.RecordBatch.from_pydict(columns | {}, schema=_grouped_schema(group))


class _Renamed:
    """Gives the columns of a compiled operator their names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.rename_columns(list(self._names))


class _Labelled:
    """Says what the counts are of."""

    def __init__(self, names: tuple[str, ...], what: int) -> None:
        self._schema, self._what = _numbers(names), what

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        missing = {"what": np.full(len(batch), self._what), "minute": np.zeros(len(batch), np.int64)}
        found = {name: batch.column(name) for name in batch.schema.names}
        return pa.RecordBatch.from_pydict({**missing, **found}, schema=self._schema)


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The day and the minute as texts."""
    at = batch.schema.get_field_index("minute")
    if at >= 0:
        minutes = np.asarray(batch.column(at)) * MINUTE_MS
        batch = batch.set_column(at, "minute", pc.strftime(pa.array(minutes.astype("M8[ms]").astype("M8[s]")), "%H:%M"))
    return _day_texts(batch)


_SUMMARY = ("total_bids", "rank1_bids", "rank2_bids", "rank3_bids", "min_price", "max_price", "avg_price", "sum_price")

QUERIES = (
    Query("q15", q15, ("day", *COUNTS), key=("day",)),
    Query("q16", q16, ("channel", "day", "minute", *COUNTS), key=("channel", "day")),
    Query("q17", q17, ("auction", "day", *_SUMMARY), key=("auction", "day")),
)
