"""What a type checker reports to a user: each line that says WRONG, and no other. See tests/test_types_for_users.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from understudy import (
    Collector,
    DataStream,
    IndexShare,
    JobHandle,
    KeyedOperator,
    ListState,
    LocalCluster,
    Operator,
    OutputTag,
    ProcessWindowFunction,
    RemoteCluster,
    Source,
    StreamEnvironment,
    TwoPhaseCommitSink,
    ValueState,
    fixed_delay,
    tumbling,
)
from understudy.testing import KillProcess, OperatorHarness, assert_exactly_once


class Total(KeyedOperator):
    total = ValueState(int, default=0)
    page = ValueState(str)
    pages = ListState(str)

    def process(self, record: Any, out: Collector) -> None:
        self.total.update("seven")  # WRONG: of another type
        total: str = self.total.value()  # WRONG: an int
        shouted = self.page.value().upper()  # WRONG: without a default it may be None
        self.pages.add(7)  # WRONG: a list of texts
        out.collect(total, shouted)  # WRONG: one record


class Ledger(TwoPhaseCommitSink[str]):
    def commit(self, transaction: int) -> None: ...  # WRONG: its transactions are texts


async def run(job: JobHandle, client: RemoteCluster, env: StreamEnvironment) -> None:
    job.trigger_savepoint().get(timeout=5)  # WRONG: it is result, as in concurrent.futures
    path: int = job.trigger_savepoint().result(timeout=5)  # WRONG: a text
    job.ask("total", message="all", wait=5)  # WRONG: wait_ms
    await job.details_async(time=5)  # WRONG: timeout
    await client.find_async(7)  # WRONG: a text
    env.from_collection([1]).process(42)  # WRONG: no operator
    LocalCluster(2).submit(env.from_collection([1]))  # WRONG: the environment, and not a stream
    fixed_delay(delay=5)  # WRONG: delay_ms
    IndexShare.fresh("0", path)  # WRONG: a number
    job.on_event(print, print)  # WRONG: one callback at a time


def test_totals() -> None:
    KillProcess("tm-0")  # WRONG: when, and the number of the TaskManager
    assert_exactly_once(StreamEnvironment, histories="10")  # WRONG: a number
    OperatorHarness(Total(), keys="customer")  # WRONG: key_by


# -- functions of records


@dataclass(frozen=True)
class Bid:
    user: str
    price: int


class Click:
    page = "/"


def price_of(bid: Bid) -> int:
    return bid.price


def sum_of(one: int, other: int) -> int:
    return one + other


def dearer(one: Bid, other: Bid) -> Bid:
    return max(one, other, key=price_of)


def users_of(bid: Bid) -> Iterator[str]:
    yield bid.user


async def fetch(bid: Bid) -> str:
    return bid.user


async def fetch_number(number: int) -> list[str]:
    return [str(number)]


class Scale:
    def times(self, number: int) -> int:
        return 2 * number


class Made:
    def __init__(self, number: int) -> None:
        self.number = number


class OfClicks(KeyedOperator[Click, str]):
    def process(self, record: Bid, out: Collector[str]) -> None: ...  # WRONG: it takes clicks


class Prices(KeyedOperator[Bid, int]):
    def process(self, record: Bid, out: Collector[int]) -> None:
        out.collect(record.user)  # WRONG: it emits numbers


class Texts(Source[str]):
    def poll(self) -> list[int]:  # WRONG: of texts
        return []


class Longest(ProcessWindowFunction[Click, str]): ...


class Split(Operator[Bid, int]):
    def process_batch(self, batch: list[Bid], out: Collector[int]) -> None:
        out.collect_to(CHEAP, batch[0].price)  # WRONG: of bids


CHEAP = OutputTag[Bid]("cheap")


def build(env: StreamEnvironment, bare: DataStream) -> None:
    numbers = env.from_collection([1, 2])
    bids = env.from_collection([Bid("ann", 3)])
    numbers.map(lambda n: n.upper())  # WRONG: an int
    bids.map(lambda bid: bid.prise)  # WRONG: price
    bids.filter(lambda bid: bid.prise > 3)  # WRONG: price
    bids.flat_map(lambda bid: bid.users)  # WRONG: user
    bids.key_by(lambda bid: bid.prise)  # WRONG: price
    bids.map(lambda bid: (bid.user, bid.price)).map(lambda pair: pair[2])  # WRONG: two items
    numbers.map(price_of)  # WRONG: of bids
    numbers.filter(price_of)  # WRONG: of bids
    bids.map(sum_of)  # WRONG: one record
    bids.map(dearer)  # WRONG: one record
    bids.flat_map(price_of)  # WRONG: many
    bids.flat_map(lambda bid: bid.price)  # WRONG: many
    bids.map(users_of).map(str.upper)  # WRONG: generators, where flat_map has texts
    bids.map(fetch).map(price_of)  # WRONG: texts
    numbers.map(fetch)  # WRONG: of bids
    bids.flat_map(fetch_number)  # WRONG: of numbers
    bids.map(Scale().times)  # WRONG: of numbers
    numbers.map(str.upper)  # WRONG: of texts
    numbers.map(len)  # WRONG: of what has a length
    bids.map(Made)  # WRONG: of a number
    numbers.map(7)  # WRONG: a function
    bids.map(price_of, nam="prices")  # WRONG: name
    by_user = bids.key_by("user")
    by_user.reduce(sum_of)  # WRONG: of numbers
    by_user.reduce(lambda one, other: one.price + other.price)  # WRONG: a bid
    by_user.reduce(price_of)  # WRONG: two records
    by_user.process(OfClicks)  # WRONG: of clicks
    by_user.process(Prices).map(lambda price: price.user)  # WRONG: numbers
    by_user.window(tumbling(minutes=1)).reduce(sum_of)  # WRONG: of numbers
    by_user.window(tumbling(minutes=1)).process(Longest)  # WRONG: of clicks
    bids.process(Split).side_output(CHEAP).map(lambda bid: bid.prise)  # WRONG: price
    bids.union(numbers).map(price_of)  # WRONG: of bids alone
    env.generate(lambda index: index.upper(), 10)  # WRONG: an int
    texts: DataStream[str] = bids.map(price_of)  # WRONG: numbers
    texts.key_by(str.upper).connect(by_user).proces(Prices)  # WRONG: process
    bare.mapp(price_of)  # WRONG: map
