"""Queries that join streams whose records may come in any order and are kept, and the best bids of each auction."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy import DataStream

from ..model import SCHEMAS
from ..query import Query
from ..streams import Streams

_CATEGORY = 10
_STATES = ("OR", "ID", "CA")
_BID = ("auction", "bidder", "price", "channel", "url", "date_time", "extra")
_DETAILS = ("item_name", "description", "initial_bid", "reserve")


class _Columns:
    """Some columns under other names."""

    def __init__(self, **names: str) -> None:
        self._names = names

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([batch.column(name) for name in self._names.values()], list(self._names))

    def of(self, stream: DataStream) -> DataStream:
        known = stream.schema
        assert known is not None, "streams of columns"
        schema = pa.schema([(name, known.field(old).type) for name, old in self._names.items()])
        return stream.map_batches(self, schema=schema)


def _of_category(streams: Streams, *columns: str) -> DataStream:
    """The auctions of one category."""
    return streams.auctions("category", *columns).filter(pc.field("category") == _CATEGORY)


def q3(streams: Streams) -> DataStream:
    """Who sells in one category and lives in one of three states."""
    lives_there = pc.field("state").isin(pa.array(_STATES))
    persons = _Columns(person="id", name="name", city="city", state="state").of(
        streams.persons("id", "name", "city", "state").filter(lives_there)
    )
    auctions = _of_category(streams, "id", "seller")
    sold = persons.key_by("person").join(auctions.key_by("seller"))
    return _Columns(name="name", city="city", state="state", id="id").of(sold)


def q20(streams: Streams) -> DataStream:
    """The bids on auctions of one category, with the auction."""
    names = ("expires", "seller", "category")
    auctions = _Columns(
        id="id",
        **{name: name for name in (*_DETAILS, *names)},
        auction_date_time="date_time",
        auction_extra="extra",
    ).of(_of_category(streams, *(name for name in SCHEMAS["auction"].names if name != "category")))
    joined = streams.bids(*_BID).key_by("auction").join(auctions.key_by("id"))
    return _Columns(**{name: name for name in _WITH_AUCTION}).of(joined)


_WITH_AUCTION = (*_BID, *_DETAILS, "auction_date_time", "expires", "seller", "category", "auction_extra")


def q23(streams: Streams) -> DataStream:
    """The bids on auctions of one category, with the auction and the bidder."""
    bids = streams.bids("auction", "bidder", "price", "date_time")
    with_auction = bids.key_by("auction").join(_of_category(streams, "id", "item_name").key_by("id"))
    persons = _Columns(person="id", name="name", city="city").of(streams.persons("id", "name", "city"))
    with_both = with_auction.key_by("bidder").join(persons.key_by("person"))
    return _Columns(**{name: name for name in _WITH_BOTH}).of(with_both)


_WITH_BOTH = ("auction", "bidder", "price", "date_time", "name", "city", "item_name", "category")


def q19(streams: Streams) -> DataStream:
    """The ten highest bids of each auction. A rank that another bid takes is an update of the rank's row."""
    best = streams.bids(*_BID).key_by("auction").top_n(10, "price", rank="rank_number")
    return best.map_batches(_rows_that_come)


def _rows_that_come(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without those that go: each rank that was had once is had from then on."""
    comes = pc.is_in(batch.column("kind"), value_set=pa.array(["+I", "+U"]))
    rank = batch.schema.get_field_index("rank_number")
    numbers = pa.array(np.asarray(batch.column(rank)).astype(np.int64))
    return batch.set_column(rank, "rank_number", numbers).filter(comes)


QUERIES = (
    Query("q3", q3, ("name", "city", "state", "id")),
    Query("q19", q19, ("auction", "rank_number", "price"), key=("auction", "rank_number")),
    Query("q20", q20, _WITH_AUCTION),
    Query("q23", q23, _WITH_BOTH),
)
