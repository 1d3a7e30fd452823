"""A generic class may be named with its argument, `Top[dict]`, wherever a class without arguments is taken."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import pytest

from understudy import (
    AggregateFunction,
    DataStream,
    InvalidOperator,
    KeyedOperator,
    Operator,
    ProcessWindowFunction,
    Source,
    StreamEnvironment,
    monotonous,
    tumbling,
)

T = TypeVar("T")


class Top(KeyedOperator, Generic[T]):
    def process(self, record: T, out: Any) -> None:
        out.collect(record)


class Out(Operator, Generic[T]):
    def process_batch(self, batch: Any, out: Any) -> None:
        pass


class Numbers(Source, Generic[T]):
    def poll(self) -> Any:
        return None

    def offset(self) -> Any:
        return 0

    def seek(self, offset: Any) -> None:
        pass


class Length(AggregateFunction, Generic[T]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, accumulator: int, record: T) -> int:
        return accumulator + 1


class Each(ProcessWindowFunction, Generic[T]):
    def process(self, window: Any, records: Any, out: Any) -> None:
        out.collect(self.key)


@pytest.fixture
def numbers() -> DataStream:
    return StreamEnvironment().from_collection([1, 2])


def test_it_is_the_class(numbers: DataStream) -> None:
    """Which needs no argument at run time."""
    made = numbers.key_by(lambda n: n).process(Top[int])  # type: ignore[arg-type]
    assert type(made._own_node().operator) is Top
    assert type(numbers.sink_to(Out[int])._own_node().operator) is Out  # type: ignore[arg-type,func-returns-value]
    source = StreamEnvironment().from_source(Numbers[int])  # type: ignore[arg-type]
    assert type(source._own_node().operator) is Numbers
    windows = numbers.assign_timestamps(lambda n: n, monotonous()).key_by(lambda n: n).window(tumbling(10))
    windows.aggregate(Length[int]).map(str)  # type: ignore[arg-type]
    windows.process(Each[int]).map(str)  # type: ignore[arg-type]


def test_another_class_is_named(numbers: DataStream) -> None:
    with pytest.raises(InvalidOperator, match="wanted a subclass of Operator, found the class list"):
        numbers.process(list[int])  # type: ignore[arg-type]
    with pytest.raises(InvalidOperator, match=r"found the operator Top: use process\(...\)"):
        numbers.map(Top[int])
