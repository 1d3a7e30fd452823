"""The events of Nexmark: persons, auctions and bids, each computed from its number alone.

The rules are those of the benchmark's public generator (nexmark/nexmark, NexmarkGenerator and GeneratorConfig): of 50
events the first is a person, three are auctions and 46 are bids; hot sellers, auctions and bidders change every 100.
What differs: random numbers come from the event's number (draws.py), so that any part can be made again, in any order
and parallelism; numbers begin at 0; a text is one of a pool (texts.py); and a bidder is a person unless
`upstream_bidders` asks for the original's mistake, which adds the first person's id twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .draws import Words, below, bits, words
from .texts import CHANNELS, CITIES, HOT_CHANNELS, POOL_BITS, STATES, Texts, texts_of

Stream: TypeAlias = Literal["person", "auction", "bid"]
STREAMS: tuple[Stream, ...] = ("person", "auction", "bid")

EPOCH = 50
FIRST_OFFSET: dict[Stream, int] = {"person": 0, "auction": 1, "bid": 4}
PER_EPOCH: dict[Stream, int] = {"person": 1, "auction": 3, "bid": 46}
FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT_EVERY = 100
IN_FLIGHT_AUCTIONS, AUCTION_LEAD = 100, 10
ACTIVE_PEOPLE, PERSON_LEAD = 1000, 10
EVENTS_FOR_AUCTIONS = IN_FLIGHT_AUCTIONS * EPOCH // PER_EPOCH["auction"]
STRIDE = 953
"""Times within a group are dealt out by multiples of it, as in the original."""
BASE_MS = 1_767_265_190_000
"""2026-01-01 10:59:50 UTC: a little before a full hour, so that a short run has two."""

_WHEN = pa.timestamp("ms")
SCHEMAS: dict[Stream, pa.Schema] = {
    "person": pa.schema(
        {
            "id": pa.int64(),
            "name": pa.string(),
            "email": pa.string(),
            "credit_card": pa.string(),
            "city": pa.string(),
            "state": pa.string(),
            "date_time": _WHEN,
            "extra": pa.string(),
        }
    ),
    "auction": pa.schema(
        {
            "id": pa.int64(),
            "item_name": pa.string(),
            "description": pa.string(),
            "initial_bid": pa.int64(),
            "reserve": pa.int64(),
            "date_time": _WHEN,
            "expires": _WHEN,
            "seller": pa.int64(),
            "category": pa.int64(),
            "extra": pa.string(),
        }
    ),
    "bid": pa.schema(
        {
            "auction": pa.int64(),
            "bidder": pa.int64(),
            "price": pa.int64(),
            "channel": pa.string(),
            "url": pa.string(),
            "date_time": _WHEN,
            "extra": pa.string(),
        }
    ),
}


@dataclass(frozen=True)
class Model:
    """All events of one run. `rate`: events per second of event time. `group`: times are shuffled within so many
    events; 1: none is out of order. `late_share` of the events have a time up to `late_ms` before their turn.
    """

    events: int
    rate: int = 10_000
    seed: int = 1
    base_ms: int = BASE_MS
    group: int = 1
    late_share: float = 0.0
    late_ms: int = 0
    upstream_bidders: bool = False

    def __post_init__(self) -> None:
        if self.events < 0 or self.rate < 1 or self.group < 1:
            raise ValueError(f"wanted events >= 0, rate >= 1 and group >= 1, found {self}")
        if self.group % STRIDE == 0:
            raise ValueError(f"group: wanted no multiple of {STRIDE}, by which times are shuffled, found {self.group}")
        if not 0 <= self.late_share <= 1 or self.late_ms < 0:
            raise ValueError(f"wanted late_share from 0 to 1 and late_ms >= 0, found {self}")

    def rows(self, stream: Stream) -> int:
        """How many of the events are of this stream."""
        whole, rest = divmod(self.events, EPOCH)
        each = PER_EPOCH[stream]
        return whole * each + min(max(rest - FIRST_OFFSET[stream], 0), each)

    @property
    def disorder_ms(self) -> int:
        """By how much a time may be behind the greatest before it."""
        return -(-self.group * 1000 // self.rate) * (self.group > 1) + self.late_ms * (self.late_share > 0)

    @property
    def density(self) -> str:
        """What a window sees, in words: suites with another density have other results and other costs."""
        seconds = self.events / self.rate
        windows = f"{seconds / 10:,.1f} windows of 10 s"
        return f"{self.rate:,} events per second of event time, {seconds:,.1f} s in all, {windows}"

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def texts(self) -> Texts:
        return texts_of(self.seed)

    def batch(self, stream: Stream, start: int, rows: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Rows `start` to `start + rows - 1` of a stream, with these columns. Others are not computed."""
        part = _PARTS[stream](self, stream, start, rows)
        schema = SCHEMAS[stream] if columns is None else pa.schema([SCHEMAS[stream].field(name) for name in columns])
        return pa.RecordBatch.from_arrays([part.column(name) for name in schema.names], schema=schema)


def number_columns(stream: Stream) -> list[str]:
    """The columns that are no texts."""
    return [field.name for field in SCHEMAS[stream] if field.type != pa.string()]


class _Part:
    """Some rows of a stream. Numbers are computed for whole epochs, one row of an array each, and cut at the end."""

    def __init__(self, model: Model, stream: Stream, start: int, rows: int) -> None:
        self.model = model
        each = PER_EPOCH[stream]
        self.first, last = start // each, -(-(start + rows) // each)
        self.epochs = np.arange(self.first, last)[:, np.newaxis]
        """Shape (epochs, 1)."""
        self.ids = self.epochs * EPOCH + np.arange(FIRST_OFFSET[stream], FIRST_OFFSET[stream] + each)
        """Numbers of events, shape (epochs, events of the stream in an epoch)."""
        self._cut = slice(start - self.first * each, start - self.first * each + rows)

    def column(self, name: str) -> pa.Array:
        made = getattr(self, name)()
        return made if isinstance(made, pa.Array) else pa.array(self.flat(made))

    def flat(self, made: Any) -> Any:
        """The rows that were asked for, one after the other."""
        return np.broadcast_to(made, self.ids.shape).reshape(-1)[self._cut]

    def draw(self, salt: int) -> Words:
        return words(self.ids, self.model.seed, salt)

    def from_pool(self, pool: pa.Array, indexes: Any) -> pa.Array:
        return pool.take(pa.array(self.flat(indexes)))

    def times(self) -> Any:
        """Milliseconds, as the numbers have them."""
        model, numbers = self.model, self.ids
        if model.group > 1:
            numbers = numbers - numbers % model.group + numbers * STRIDE % model.group
        times = numbers * 1000 // model.rate + model.base_ms
        if model.late_share:
            drawn = self.draw(9)
            late = bits(drawn, 0, 32) < int(model.late_share * 2**32)
            times = times - late * below(bits(drawn, 32, 32), 32, model.late_ms + 1)
        return times

    def instants(self, times: Any) -> pa.Array:
        flat = np.ascontiguousarray(self.flat(times))
        return pa.Array.from_buffers(_WHEN, len(flat), [None, pa.py_buffer(flat)])

    def date_time(self) -> pa.Array:
        return self.instants(self.times())

    def person_of(self, drawn: Any) -> Any:
        """From 32 random bits one of the last 1,000 persons, or of the 10 that come next."""
        active = np.minimum(self.epochs + 1, ACTIVE_PEOPLE)
        return self.epochs + 1 - active + below(drawn, 32, active + PERSON_LEAD)


class _Bids(_Part):
    @cached_property
    def _whom(self) -> Words:
        """Bits 0 to 31: the auction if it is no hot one; 32 to 63: the bidder."""
        return self.draw(1)

    @cached_property
    def _what(self) -> Words:
        """Bits 0 to 23: price; 24: hot auction; 25 and 26: hot bidder; 27: hot channel; 28 to 43: channel; the next 12:
        extra.
        """
        return self.draw(2)

    def auction(self) -> Any:
        last = self.epochs * PER_EPOCH["auction"] + PER_EPOCH["auction"] - 1
        least = np.maximum(last - IN_FLIGHT_AUCTIONS, 0)
        other = least + below(bits(self._whom, 0, 32), 32, last - least + 1 + AUCTION_LEAD)
        is_hot = bits(self._what, 24, 1) > 0
        return np.where(is_hot, last // HOT_EVERY * HOT_EVERY, other) + FIRST_ID

    def bidder(self) -> Any:
        is_hot = bits(self._what, 25, 2) > 0
        chosen = np.where(is_hot, self.epochs // HOT_EVERY * HOT_EVERY + 1, self.person_of(bits(self._whom, 32, 32)))
        return chosen + FIRST_ID * (2 if self.model.upstream_bidders else 1)

    def price(self) -> Any:
        return price_of(bits(self._what, 0, 24))

    @cached_property
    def _channel(self) -> Any:
        hot, other = bits(self._what, 28, 2), below(bits(self._what, 28, 16), 16, CHANNELS) + len(HOT_CHANNELS)
        return np.where(bits(self._what, 27, 1) > 0, hot, other)

    def channel(self) -> pa.Array:
        return self.from_pool(self.model.texts.channels, self._channel)

    def url(self) -> pa.Array:
        return self.from_pool(self.model.texts.urls, self._channel)

    def extra(self) -> pa.Array:
        return self.from_pool(self.model.texts.bid_extras, bits(self._what, 44, POOL_BITS))


class _Auctions(_Part):
    @cached_property
    def _texts(self) -> Words:
        return self.draw(3)

    @cached_property
    def _prices(self) -> Words:
        return self.draw(4)

    @cached_property
    def _seller(self) -> Words:
        return self.draw(5)

    def id(self) -> Any:
        return self.epochs * PER_EPOCH["auction"] + np.arange(PER_EPOCH["auction"]) + FIRST_ID

    def item_name(self) -> pa.Array:
        return self.from_pool(self.model.texts.names, bits(self._texts, 0, POOL_BITS))

    def description(self) -> pa.Array:
        return self.from_pool(self.model.texts.descriptions, bits(self._texts, 16, POOL_BITS))

    def extra(self) -> pa.Array:
        return self.from_pool(self.model.texts.auction_extras, bits(self._texts, 32, POOL_BITS))

    def initial_bid(self) -> Any:
        return price_of(bits(self._prices, 0, 24))

    def reserve(self) -> Any:
        return self.initial_bid() + price_of(bits(self._prices, 24, 24))

    def expires(self) -> pa.Array:
        horizon_ms = EVENTS_FOR_AUCTIONS * 1000 // self.model.rate
        lasts = below(bits(self.draw(6), 0, 32), 32, max(2 * horizon_ms, 1))
        return self.instants(self.times() + 1 + lasts)

    def seller(self) -> Any:
        is_hot = bits(self._seller, 0, 2) > 0
        other = self.person_of(bits(self._seller, 32, 32))
        return np.where(is_hot, self.epochs // HOT_EVERY * HOT_EVERY, other) + FIRST_ID

    def category(self) -> Any:
        return FIRST_CATEGORY + below(bits(self._seller, 2, 16), 16, CATEGORIES)


class _Persons(_Part):
    @cached_property
    def _drawn(self) -> Words:
        return self.draw(7)

    def id(self) -> Any:
        return self.epochs + FIRST_ID

    def name(self) -> pa.Array:
        people = self.model.texts.people
        return self.from_pool(people, below(bits(self._drawn, 0, 16), 16, len(people)))

    def email(self) -> pa.Array:
        return self.from_pool(self.model.texts.emails, bits(self._drawn, 16, POOL_BITS))

    def credit_card(self) -> pa.Array:
        drawn, digits = self.draw(8), self.model.texts.four_digits
        groups = [self.from_pool(digits, below(bits(drawn, 16 * group, 16), 16, 10_000)) for group in range(4)]
        return pc.binary_join_element_wise(*groups, " ")

    def city(self) -> pa.Array:
        return self.from_pool(_CITIES, below(bits(self._drawn, 28, 12), 12, len(CITIES)))

    def state(self) -> pa.Array:
        return self.from_pool(_STATES, below(bits(self._drawn, 40, 12), 12, len(STATES)))

    def extra(self) -> pa.Array:
        return self.from_pool(self.model.texts.person_extras, bits(self._drawn, 52, POOL_BITS))


_PARTS: dict[Stream, Callable[[Model, Stream, int, int], _Part]] = {
    "person": _Persons,
    "auction": _Auctions,
    "bid": _Bids,
}
_CITIES, _STATES = pa.array(CITIES), pa.array(STATES)


def price_of(drawn: Any) -> Any:
    """From 24 random bits a price, int64: 10^(6U) in whole hundredths, so a hundred to a hundred million.

    The power is the product of two from tables: the same to the last bit on any machine.
    """
    high, low = _powers()
    return np.rint(high[drawn >> 12] * low[drawn & 0xFFF]).astype(np.int64)


@lru_cache(maxsize=1)
def _powers() -> tuple[Any, Any]:
    high = np.array([100.0 * 10.0 ** (6.0 * step / 4096) for step in range(4096)])
    low = np.array([10.0 ** (6.0 * step / 4096**2) for step in range(4096)])
    return high, low
