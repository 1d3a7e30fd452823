"""Queries that keep nothing: each bid alone decides what becomes of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy import DataStream

from ..dataset import SIDE_KEYS, side_input
from ..model import SCHEMAS
from ..query import Query
from ..streams import Streams

_BID = ("auction", "bidder", "price", "date_time", "extra")
_PRICE = pa.decimal128(23, 3)


def q0(streams: Streams) -> DataStream:
    """Pass-through."""
    return streams.bids(*_BID)


def q1(streams: Streams) -> DataStream:
    """The price in another currency, as a decimal."""
    return streams.bids(*_BID).map_batches(_in_euros)


def _in_euros(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(2, "price", euros(batch.column("price")))


def euros(price: pa.Array) -> pa.Array:
    """0.908 of it, decimal128(23, 3). A price is below 2^63 / 908, so its digits are an int64."""
    digits = np.zeros((len(price), 2), np.int64)
    digits[:, 0] = np.asarray(price) * 908
    return pa.Array.from_buffers(_PRICE, len(price), [None, pa.py_buffer(digits)])


def q2(streams: Streams) -> DataStream:
    """The bids on some auctions."""
    return streams.bids("auction", "price").map_batches(_every_123rd)


def _every_123rd(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pa.array(np.asarray(batch.column("auction")) % 123 == 0))


def q10(streams: Streams) -> DataStream:
    """All bids with their day and minute, for files."""
    return streams.bids(*_BID).map_batches(_with_minute)


def _with_minute(batch: pa.RecordBatch) -> pa.RecordBatch:
    when = batch.column("date_time")
    return batch.append_column("dt", formatted(when, "%Y-%m-%d", "D")).append_column(
        "hm", formatted(when, "%H:%M", "m")
    )


def formatted(when: pa.Array, pattern: str, unit: str) -> pa.Array:
    """Times as texts: one is made for each day, or minute, that occurs, and not for each row."""
    days, places = np.unique(np.asarray(when).astype(f"M8[{unit}]"), return_inverse=True)
    texts = pc.strftime(pa.array(days.astype("M8[s]")), pattern)
    return texts.take(pa.array(places))


def q13(streams: Streams) -> DataStream:
    """A bounded table looked up for each bid."""
    bids = streams.bids(*_BID[:4]).map_batches(_with_key, schema=_KEYED)
    return bids.lookup_join(side_input(), "key", how="inner")


_KEYED = pa.schema([SCHEMAS["bid"].field(name) for name in _BID[:4]]).append(pa.field("key", pa.int64()))


def _with_key(batch: pa.RecordBatch) -> pa.RecordBatch:
    keys = np.asarray(batch.column("auction")) % SIDE_KEYS
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(keys)], schema=_KEYED)


def q14(streams: Streams) -> DataStream:
    """A filter and three computed columns."""
    return streams.bids(*_BID).map_batches(_calculated)


def _calculated(batch: pa.RecordBatch) -> pa.RecordBatch:
    thousandths = np.asarray(batch.column("price")) * 908
    batch = batch.filter(pa.array((thousandths > 1_000_000_000) & (thousandths < 50_000_000_000)))
    times = np.asarray(batch.column("date_time").view(pa.int64()))
    kinds = _BY_HOUR.take(pa.array(times // 3_600_000 % 24))
    counts = pc.count_substring(batch.column("extra"), "c").cast(pa.int64())
    return pa.RecordBatch.from_pydict(
        {
            "auction": batch.column("auction"),
            "bidder": batch.column("bidder"),
            "price": euros(batch.column("price")),
            "kind": kinds,
            "date_time": batch.column("date_time"),
            "extra": batch.column("extra"),
            "counts": counts,
        }
    )


def _kind_of(hour: int) -> str:
    if 8 <= hour <= 18:
        return "dayTime"
    return "nightTime" if hour <= 6 or hour >= 20 else "otherTime"


_BY_HOUR = pa.array([_kind_of(hour) for hour in range(24)])


def q21(streams: Streams) -> DataStream:
    """The channel's id, from its name or from the URL."""
    return streams.bids("auction", "bidder", "price", "channel", "url").map_batches(_with_channel_id)


def _with_channel_id(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A channel's URL is always the same here, but the ids are computed for each URL that the batch has."""
    urls = batch.column("url").dictionary_encode()
    found = pc.extract_regex(urls.dictionary, r"(?:&|^)channel_id=(?P<id>[^&]*)")
    from_url = pc.struct_field(found, "id").take(urls.indices)
    known = pc.index_in(pc.utf8_lower(batch.column("channel")), value_set=_KNOWN)
    ids = pc.coalesce(pc.cast(known, pa.string()), from_url)
    made = batch.append_column("channel_id", ids)
    return made.filter(ids.is_valid()).drop_columns(["url"]) if ids.null_count else made.drop_columns(["url"])


_KNOWN = pa.array(["apple", "google", "facebook", "baidu"])
"""A channel's id is its place here."""


def q22(streams: Streams) -> DataStream:
    """The three folders of the URL."""
    return streams.bids("auction", "bidder", "price", "channel", "url").map_batches(_with_folders)


def _with_folders(batch: pa.RecordBatch) -> pa.RecordBatch:
    urls = batch.column("url").dictionary_encode()
    parts = pc.split_pattern(urls.dictionary, "/")
    made = batch.drop_columns(["url"])
    for number in (1, 2, 3):
        made = made.append_column(f"dir{number}", pc.list_element(parts, number + 2).take(urls.indices))
    return made


QUERIES = (
    Query("q0", q0, _BID),
    Query("q1", q1, _BID),
    Query("q2", q2, ("auction", "price")),
    Query("q10", q10, (*_BID, "dt", "hm"), writes_files=True),
    Query("q13", q13, ("auction", "bidder", "price", "date_time", "value")),
    Query("q14", q14, ("auction", "bidder", "price", "kind", "date_time", "extra", "counts")),
    Query("q21", q21, ("auction", "bidder", "price", "channel", "channel_id")),
    Query("q22", q22, ("auction", "bidder", "price", "channel", "dir1", "dir2", "dir3")),
)
