"""A column that no record of a collection has is found where it is written, not when the job runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from understudy import (
    Avg,
    Count,
    DataStream,
    InvalidProgram,
    LocalCluster,
    Max,
    SchemaMismatch,
    StreamEnvironment,
    Sum,
    UnknownColumn,
    bounded_out_of_orderness,
    tumbling,
)

IN_ORDER = bounded_out_of_orderness(5)
FLIGHTS: list[Any] = [{"origin": "JFK", "delay": 1, "at": 5}, {"origin": "LGA", "delay": None, "at": 6}]


def flights(records: list[Any] = FLIGHTS) -> DataStream:
    return StreamEnvironment().from_collection(records, name="flights")


def timed(records: list[Any] = FLIGHTS) -> DataStream:
    return flights(records).assign_timestamps("at", IN_ORDER)


async def _is_late(record: Any) -> bool:
    return bool(record["delay"])


@pytest.mark.parametrize(
    ("write", "method", "column", "meant"),
    [
        (lambda: flights().assign_timestamps("att", IN_ORDER), "assign_timestamps", "att", "at"),
        (lambda: timed().key_by("orgin"), "key_by", "orgin", "origin"),
        (lambda: flights().filter(bool).key_by("orgin"), "key_by", "orgin", "origin"),
        (lambda: flights().filter(_is_late).key_by("orgin"), "key_by", "orgin", "origin"),
        (lambda: flights().rebalance().key_by("orgin"), "key_by", "orgin", "origin"),
        (lambda: flights().key_by("origin").aggregate(late=Sum("dely")), "aggregate", "dely", "delay"),
        (lambda: timed().filter(bool).key_by("origin").aggregate(late=Sum("dely")), "aggregate", "dely", "delay"),
        (
            lambda: timed().key_by("origin").window(tumbling(ms=5)).aggregate(n=Count(), late=Max("dely")),
            "aggregate",
            "dely",
            "delay",
        ),
        (lambda: timed().window_all(tumbling(ms=5)).aggregate(late=Avg("dely")), "aggregate", "dely", "delay"),
        (lambda: flights().key_by("origin").top_n(3, ["at", "dely"]), "top_n", "dely", "delay"),
    ],
)
def test_a_misspelt_column_gets_the_nearest_one(write: Callable[[], Any], method: str, column: str, meant: str) -> None:
    told = f"^{method}: there is no '{column}' in record 0 of 'flights'; it has origin, delay, at"
    with pytest.raises(UnknownColumn, match=rf"{told}; did you mean '{meant}'\?$"):
        write()


def test_the_branch_of_a_union_that_lacks_the_column_is_named() -> None:
    env = StreamEnvironment()
    first, second = env.from_collection([{"a": 1}], name="first"), env.from_collection([{"b": 1}], name="second")
    with pytest.raises(UnknownColumn, match="key_by: there is no 'a' in record 0 of 'second'; it has b"):
        first.union(second).filter(bool).key_by("a")


def test_text_that_is_summed_is_found_where_it_is_written() -> None:
    text = r"aggregate: in 'flights': Sum\('origin'\): wanted a column of integers or floats, found .* string: map it"
    with pytest.raises(SchemaMismatch, match=text):
        flights().key_by("delay").aggregate(total=Sum("origin"))


@pytest.mark.parametrize(
    ("time", "text"),
    [("2026-01-01", r"map it to datetime.fromisoformat\(time\)"), (None, "every record needs an event time")],
)
def test_what_is_no_time_is_found_where_it_is_written(time: Any, text: str) -> None:
    with pytest.raises(InvalidProgram, match=f"assign_timestamps: in 'flights': the time column 'at' is .*{text}"):
        flights([{"at": 5}, {"at": time}]).assign_timestamps("at", IN_ORDER)


@dataclass
class Trip:
    at: int

    @property
    def origin(self) -> str:
        return "JFK"


MIXED = [{"kind": "a", "at": 1, "x": "text"}] * 150 + [{"kind": "b", "at": 1, "y": 1}]


@pytest.mark.parametrize(
    "write",
    [
        lambda: timed([Trip(5)]).filter(bool).key_by("origin").aggregate(n=Count(), first=Max("origin")),
        lambda: flights([Trip(5)]).key_by("origin").top_n(1, "origin"),
        lambda: flights(MIXED).filter(lambda record: "y" in record).key_by("y"),
        lambda: flights(MIXED).key_by("kind").aggregate(total=Sum("y")),
        lambda: flights(MIXED).filter(bool).key_by("kind").aggregate(total=Sum("x")),
        lambda: (
            flights([{"at": None}]).filter(lambda record: record["at"] is not None).assign_timestamps("at", IN_ORDER)
        ),
        lambda: flights([]).key_by("x").aggregate(total=Sum("y")),
        lambda: flights([1, 2]).key_by("value").aggregate(total=Sum("y")),
        lambda: flights().map(str).key_by("x").aggregate(total=Sum("y")),
        lambda: flights().key_by("origin").aggregate(total=Sum("delay"), n=Count("delay")),
    ],
)
def test_columns_that_may_be_there_when_the_job_runs_are_let_through(write: Callable[[], Any]) -> None:
    write()


def test_a_filtered_union_of_keys_of_two_kinds_can_be_joined() -> None:
    env = StreamEnvironment()
    numbers, words = (env.from_collection([{"key": key}]) for key in (1, "one"))
    either = numbers.union(words).filter(bool).key_by("key")
    either.join(env.from_collection([{"key": "one"}]).key_by("key")).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("out") == [({"key": "one"}, {"key": "one"})]
