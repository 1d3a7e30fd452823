"""Programs that are right and look odd: functions of all kinds, records of all kinds, streams with and without types.

Checked, not run. mypy --strict and pyright, in its strict mode too, take all of it: tests/test_types_for_users.py. What
`assert_type` says is what a user's editor completes behind a dot.
"""

from __future__ import annotations

import asyncio
import functools
import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, TypeVar, assert_type, overload

from understudy import (
    END,
    Collector,
    Count,
    DataStream,
    KeyedOperator,
    KeyedStream,
    KeyedTimer,
    Operator,
    OperatorListState,
    OutputTag,
    ProcessWindowFunction,
    Source,
    SourceState,
    StreamEnvironment,
    TimeWindow,
    ValueState,
    WindowedStream,
    bounded_out_of_orderness,
    monotonous,
    tumbling,
)

T = TypeVar("T")


# -- records


@dataclass(frozen=True)
class Bid:
    user: str
    price: int
    at_ms: int


class Click(NamedTuple):
    user: str
    page: str


class Order(TypedDict):
    customer: str
    amount: int


class HasUser(Protocol):
    @property
    def user(self) -> str: ...


BIDS = [Bid("ann", 3, 0), Bid("bob", 4, 1)]
CLICKS = [Click("ann", "/"), Click("bob", "/cart")]
ORDERS: list[Order] = [{"customer": "ann", "amount": 3}]


# -- functions


def price_of(bid: Bid) -> int:
    return bid.price


def user_of(record: HasUser) -> str:
    return record.user


def of_anything(record: object) -> str:
    return repr(record)


def amount_of(order: Order) -> int:
    return order["amount"]


def not_said(record: Any) -> Any:
    return record


def with_default(bid: Bid, factor: int = 2) -> int:
    return factor * bid.price


def scaled(factor: int, bid: Bid) -> int:
    return factor * bid.price


def any_number(*bids: Bid) -> int:
    return len(bids)


def pages(click: Click) -> Iterator[str]:
    yield from click.page.split("/")


def maybe(bid: Bid) -> list[Bid] | tuple[()]:
    return [bid] if bid.price else ()


def dearer(one: Bid, other: Bid) -> Bid:
    return max(one, other, key=price_of)


def identity(record: T) -> T:
    return record


@overload
def shown(value: int) -> str: ...
@overload
def shown(value: str) -> bytes: ...
def shown(value: int | str) -> str | bytes:
    return str(value) if isinstance(value, int) else value.encode()


@functools.cache
def cached(number: int) -> str:
    return str(number)


class Scale:
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, bid: Bid) -> int:
        return self.factor * bid.price

    def twice(self, bid: Bid) -> float:
        return 2.0 * self(bid)

    @classmethod
    def named(cls, bid: Bid) -> str:
        return f"{cls.__name__} {bid.user}"

    @staticmethod
    def plain(bid: Bid) -> bytes:
        return bid.user.encode()


class Priced:
    def __init__(self, bid: Bid, currency: str = "EUR") -> None:
        self.bid, self.currency = bid, currency

    def total(self) -> int:
        return self.bid.price


async def fetch(bid: Bid) -> str:
    await asyncio.sleep(0)
    return bid.user


async def fetch_order(bid: Bid) -> dict[str, Any]:
    return {"customer": bid.user, "amount": bid.price}


async def fetch_many(bid: Bid) -> list[Click]:
    return [Click(bid.user, "/")]


async def is_known(bid: Bid) -> bool:
    return bool(bid.user)


class Client:
    async def get(self, bid: Bid) -> Click:
        return Click(bid.user, "/")


# -- operators


class Total(KeyedOperator):
    """Of which a type checker knows nothing."""

    total = ValueState(int, default=0)

    def process(self, record: Bid, out: Collector) -> None:
        self.total.update(self.total.value() + record.price)
        out.collect((record.user, self.total.value()))


class TypedTotal(KeyedOperator[Bid, tuple[str, int]]):
    total = ValueState(int, default=0)

    def __init__(self, factor: int = 1) -> None:
        self.factor = factor

    def process(self, record: Bid, out: Collector[tuple[str, int]]) -> None:
        self.total.update(self.total.value() + record.price)
        out.collect((record.user, self.factor * self.total.value()))

    def on_end(self, out: Collector[tuple[str, int]]) -> None:
        out.collect(("", 0))


class OfUsers(KeyedOperator[HasUser, str]):
    """Takes more than the stream has."""

    async def process(self, record: HasUser, out: Collector[str]) -> None:
        out.collect(record.user)


class BareCollector(KeyedOperator[Bid, int]):
    def process(self, record: Bid, out: Collector) -> None:
        out.collect(record.price)


DEAR: OutputTag[Bid] = OutputTag("dear")
CHEAP = OutputTag[Bid]("cheap")
OTHER = OutputTag("other")


class Split(Operator[Bid, int]):
    def process_batch(self, batch: list[Bid], out: Collector[int]) -> None:
        for bid in batch:
            out.collect_to(DEAR if bid.price > 3 else CHEAP, bid)
            out.collect_to(OTHER, bid.user)


class Both(KeyedOperator[Bid, str]):
    inputs = 2

    def process(self, record: Bid, out: Collector[str]) -> None:
        out.collect(record.user)

    def process_2(self, record: Click, out: Collector[str]) -> None:
        out.collect(record.page)


class Numbers(Source[int]):
    def poll(self) -> list[int] | Literal[SourceState.END] | None:
        return END

    def offset(self) -> int:
        return 0

    def seek(self, offset: int) -> None: ...


class Untyped(Source):
    def poll(self) -> list[int] | Literal[SourceState.END] | None:
        return END


class Median(ProcessWindowFunction[Bid, int]):
    def process(self, window: TimeWindow | Any, records: Sequence[Bid], out: Collector[int]) -> None:
        out.collect(sorted(each.price for each in records)[len(records) // 2])


class BareWindows(ProcessWindowFunction):
    def process(self, window: Any, records: Sequence[Any], out: Collector) -> None:
        out.collect(len(records))


def in_window(key: str, window: Any, records: list[Bid], out: Collector) -> None:
    out.collect((key, len(records)))


def grouped(key: str, window: Any, bids: Iterable[Bid], clicks: Sequence[Click], out: Collector[int]) -> None:
    out.collect(len(list(bids)) + len(clicks))


# -- programs


def functions(env: StreamEnvironment) -> None:
    bids = env.from_collection(BIDS)
    clicks = env.from_collection(CLICKS)
    assert_type(bids, DataStream[Bid])
    assert_type(bids.map(price_of), DataStream[int])
    assert_type(bids.map(user_of), DataStream[str])
    assert_type(bids.map(of_anything), DataStream[str])
    assert_type(bids.map(not_said), DataStream[Any])
    assert_type(bids.map(with_default), DataStream[int])
    assert_type(bids.map(any_number), DataStream[int])
    assert_type(bids.map(identity), DataStream[Bid])
    assert_type(bids.map(functools.partial(scaled, 3)), DataStream[int])
    assert_type(bids.map(functools.partial(with_default, factor=3)), DataStream[int])
    assert_type(bids.map(Scale(3)), DataStream[int])
    assert_type(bids.map(Scale(3).twice), DataStream[float])
    assert_type(bids.map(Scale.named), DataStream[str])
    assert_type(bids.map(Scale.plain), DataStream[bytes])
    assert_type(bids.map(Priced).map(Priced.total), DataStream[int])
    assert_type(bids.map(repr).map(str.upper).map(len), DataStream[int])
    assert_type(bids.map(price_of).map(shown), DataStream[str])
    assert_type(bids.map(price_of).map(cached), DataStream[str])
    assert_type(bids.map(price_of).map(str).map(int).map(float).map(bool), DataStream[bool])
    assert_type(bids.map(repr).map(json.loads).map(lambda read: read["user"]), DataStream[Any])
    assert_type(bids.map(lambda bid: (bid.user, bid.price)).map(lambda pair: pair[1] + 1), DataStream[int])
    assert_type(bids.map(lambda bid: bid.user if bid.price else None), DataStream[str | None])
    assert_type(bids.map(lambda bid: Click(bid.user, "/")), DataStream[Click])
    assert_type(bids.map(operator.attrgetter("price")), DataStream[Any])
    assert_type(clicks.map(operator.itemgetter(0)), DataStream[Any])
    bids.map(print, name="printed", parallelism=1)
    chosen: Callable[[Bid], int] = price_of if env.parallelism else with_default
    assert_type(bids.map(chosen), DataStream[int])


def many(env: StreamEnvironment) -> None:
    bids, clicks = env.from_collection(BIDS), env.from_collection(CLICKS)
    assert_type(clicks.flat_map(pages), DataStream[str])
    assert_type(bids.flat_map(maybe), DataStream[Bid])
    assert_type(bids.flat_map(lambda bid: [bid.price] * 2), DataStream[int])
    assert_type(bids.flat_map(lambda bid: (bid.user for _ in range(bid.price))), DataStream[str])
    assert_type(bids.map(repr).flat_map(str.split), DataStream[str])
    assert_type(bids.map(lambda bid: [bid]).flat_map(lambda each: each), DataStream[Bid])
    assert_type(bids.map(not_said).flat_map(lambda row: row.items), DataStream[Any])
    assert_type(bids.flat_map(lambda bid: [{"user": bid.user, "n": 1}]).map(lambda row: row["n"] + 1), DataStream[Any])
    assert_type(bids.filter(lambda bid: bid.price > 3), DataStream[Bid])
    assert_type(bids.filter(lambda bid: bid.user), DataStream[Bid])
    assert_type(bids.filter(price_of).filter(bool).filter(is_known), DataStream[Bid])


def async_functions(env: StreamEnvironment) -> None:
    bids = env.from_collection(BIDS)
    assert_type(bids.map(fetch), DataStream[str])
    assert_type(bids.map(fetch).async_settings(max_in_flight=10), DataStream[str])
    assert_type(bids.map(Client().get), DataStream[Click])
    bids.map(functools.partial(Client.get, Client())).map(lambda click: click.page)
    assert_type(bids.map(fetch_order).map(lambda order: order["amount"] + 1), DataStream[Any])
    assert_type(bids.flat_map(fetch_many), DataStream[Click])


def rows(env: StreamEnvironment, read: Any) -> None:
    """Dicts and Rows: what their items are nobody has said, so that they may be read as they are."""
    plain = env.from_collection([{"customer": "ann", "amount": 3}, {"customer": "bob", "amount": 4}])
    assert_type(plain, DataStream[Any])
    plain.map(lambda row: row["amount"] + row.amount).map(lambda total: total + 1)
    plain.map(amount_of)
    plain.key_by("customer").aggregate(orders=Count()).map(lambda row: row.orders + 1)
    env.from_parquet("orders").map(amount_of).map(lambda amount: amount + 1)
    env.from_collection(read).map(lambda row: row.x).map(lambda x: x.y)
    env.from_collection([]).map(lambda row: row.x)
    env.from_collection([Counter("ann")]).map(lambda counts: counts["a"])
    typed = env.from_collection(ORDERS)
    assert_type(typed, DataStream[Order])
    assert_type(typed.map(amount_of), DataStream[int])
    assert_type(typed.map(lambda order: order["customer"].upper()), DataStream[str])
    made = env.generate(lambda index: {"index": index, "user": f"user-{index % 3}"}, 100)
    made.map(lambda row: row["index"] + 1).map(lambda number: number + 1)
    env.from_collection(BIDS).map(lambda bid: {"user": bid.user, "price": bid.price}).map(lambda row: row["price"] + 1)
    assert_type(env.generate(lambda index: index), DataStream[int])
    assert_type(env.generate(str, 10, name="texts"), DataStream[str])
    assert_type(env.from_collection(range(10)), DataStream[int])
    assert_type(env.from_collection(str(each) for each in range(10)), DataStream[str])
    assert_type(env.from_source(Numbers), DataStream[int])
    assert_type(env.from_source(Numbers()), DataStream[int])
    assert_type(env.from_source(Untyped), DataStream[Any])


def keyed(env: StreamEnvironment) -> None:
    bids, clicks = env.from_collection(BIDS), env.from_collection(CLICKS)
    timed = bids.assign_timestamps(lambda bid: bid.at_ms, bounded_out_of_orderness(10))
    assert_type(timed, DataStream[Bid])
    by_user = timed.key_by(lambda bid: bid.user)
    assert_type(by_user, KeyedStream[Bid])
    assert_type(by_user.reduce(dearer), DataStream[Bid])
    assert_type(by_user.reduce(lambda one, other: one if one.price > other.price else other), DataStream[Bid])
    assert_type(bids.map(price_of).key_by(lambda price: price % 2).reduce(max), DataStream[int])
    pairs = bids.map(lambda bid: (bid.user, 1)).key_by(0).reduce(lambda one, other: (one[0], one[1] + other[1]))
    assert_type(pairs, DataStream[tuple[str, int]])
    clicks.key_by("user").reduce(lambda one, other: one._replace(page=other.page)).map(lambda click: click.page)
    assert_type(by_user.process(Total), DataStream[Any])
    assert_type(by_user.process(TypedTotal).map(lambda pair: pair[1]), DataStream[int])
    assert_type(by_user.process(TypedTotal(3)), DataStream[tuple[str, int]])
    assert_type(by_user.process(OfUsers), DataStream[str])
    assert_type(by_user.process(BareCollector), DataStream[int])
    sides = bids.process(Split)
    assert_type(sides, DataStream[int])
    assert_type(sides.side_output(DEAR).union(sides.side_output(CHEAP)), DataStream[Bid])
    assert_type(sides.side_output(OTHER), DataStream[Any])
    by_click = clicks.key_by("user")
    assert_type(by_user.connect(by_click).process(Both), DataStream[str])
    by_user.connect(by_click).process(Total)
    by_user.join(by_click).map(lambda pair: pair[0].price)
    by_user.co_group(by_click, tumbling(minutes=1), grouped).print()
    by_user.top_n(3, lambda bid: bid.price).collect(name="best")


def windows(env: StreamEnvironment) -> None:
    bids = env.from_collection(BIDS).assign_timestamps("at_ms", bounded_out_of_orderness(10))
    by_user = bids.key_by("user")
    per_minute: WindowedStream = by_user.window(tumbling(minutes=1))
    per_minute.aggregate(bids=Count()).map(lambda row: row.bids)
    typed = by_user.window(tumbling(minutes=1)).allowed_lateness(seconds=1)
    assert_type(typed, WindowedStream[Bid])
    assert_type(typed.reduce(dearer), DataStream[Bid])
    assert_type(typed.reduce(dearer, Median), DataStream[int])
    assert_type(typed.reduce(dearer, in_window), DataStream[Any])
    assert_type(typed.process(in_window), DataStream[Any])
    assert_type(typed.process(Median()), DataStream[int])
    assert_type(typed.process(BareWindows), DataStream[Any])
    typed.process(lambda key, window, records, out: out.collect((key, records[0].price)))
    bids.window_all(tumbling(minutes=1)).process(in_window).map(lambda pair: pair[1])


def unions(env: StreamEnvironment) -> None:
    bids, clicks = env.from_collection(BIDS), env.from_collection(CLICKS)
    assert_type(bids.union(clicks), DataStream[Bid | Click])
    assert_type(bids.union(clicks).map(lambda each: each.user), DataStream[str])
    assert_type(bids.union(clicks).map(user_of), DataStream[str])
    assert_type(bids.union(bids), DataStream[Bid])
    assert_type(bids.union(clicks).flat_map(lambda each: [each] if isinstance(each, Click) else []), DataStream[Click])
    anything: DataStream[Any] = bids.union(clicks)
    anything.filter(lambda each: hasattr(each, "price")).map(lambda bid: bid.price)
    several = [bids, bids]
    assert_type(bids.union(*several), DataStream[Bid])


def bare(stream: DataStream, keys: KeyedStream) -> DataStream:
    """Without brackets: what records are is not said."""
    stream.map(lambda record: record.price).filter(lambda price: price > 3)
    keys.reduce(dearer).map(price_of)
    return stream.connect(stream.broadcast()).process(Split)


def counted(stream: DataStream[T]) -> DataStream[tuple[T, int]]:
    return stream.map(lambda record: (record, 1))


def distinct(stream: DataStream[T], by: Callable[[T], str]) -> KeyedStream[T]:
    return stream.key_by(by)


def doubled(stream: DataStream[T]) -> DataStream[T]:
    return stream.union(stream).rebalance().filter(lambda record: record is not None)


def wider(stream: DataStream[object]) -> DataStream[str]:
    return stream.map(str)


def loops(env: StreamEnvironment) -> None:
    bids = env.from_collection(BIDS)
    assert_type(counted(bids), DataStream[tuple[Bid, int]])
    assert_type(distinct(bids, user_of), KeyedStream[Bid])
    assert_type(doubled(bids), DataStream[Bid])
    assert_type(wider(bids), DataStream[str])
    wider(bare(bids, bids.key_by("user")))
    numbers = env.from_collection([1, 2, 3])
    halves = numbers.iterate(lambda loop: (loop.filter(lambda n: n > 1).map(lambda n: n // 2), loop.map(str)))
    assert_type(halves, DataStream[str])
    assert_type(numbers.bulk_iterate(lambda loop: loop.map(lambda n: n - 1), max_rounds=3), DataStream[int])


# -- rules beside keys


@dataclass(frozen=True)
class Limit:
    name: str
    price: float


HIGH = OutputTag[Bid]("high")


class OverLimit(KeyedOperator[Bid, tuple[str, Limit]]):
    inputs = 2
    limits = OperatorListState(Limit, mode="broadcast")
    waiting = ValueState(int, default=0)

    def process(self, record: Bid, out: Collector[tuple[str, Limit]]) -> None:
        for limit in self.limits.get():
            if record.price > limit.price:
                out.collect((self.key, limit))
                out.collect_to(HIGH, record)
        self.timers.at_event_time(self.timestamp + 1_000)

    def process_2(self, record: Limit, out: Collector[tuple[str, Limit]]) -> None:
        self.limits.update([*(each for each in self.limits.get() if each.name != record.name), record])

    def on_timer(self, timer: KeyedTimer, out: Collector[tuple[str, Limit]]) -> None:
        self.waiting.clear()


async def described(found: tuple[str, Limit]) -> str:
    await asyncio.sleep(0)
    return f"{found[0]} {found[1].name}"


def rules_of_an_inlet(env: StreamEnvironment) -> None:
    bids: DataStream[Bid] = env.from_inlet("bids")
    limits: DataStream[Limit] = env.from_inlet("limits")
    timed = limits.assign_timestamps(lambda limit: 0, monotonous(), idle_after_ms=1_000)
    over = bids.key_by(user_of).connect(timed.broadcast()).process(OverLimit)
    assert_type(over, DataStream[tuple[str, Limit]])
    assert_type(over.map(described).async_settings(max_in_flight=10), DataStream[str])
    assert_type(over.side_output(HIGH), DataStream[Bid])
