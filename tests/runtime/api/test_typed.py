"""Types of records are for type checkers: what is written with them is, when a program runs, what it is without."""

from __future__ import annotations

import pickle
from typing import Any, Generic, TypeVar, get_args, get_type_hints

import cloudpickle
import pytest

from understudy import (
    Collector,
    ConnectedStreams,
    DataStream,
    KeyedOperator,
    KeyedStream,
    Operator,
    OutputTag,
    ProcessWindowFunction,
    Source,
    StreamEnvironment,
    TwoPhaseCommitSink,
    WindowedStream,
    tumbling,
)
from understudy.testing import OperatorHarness

K = TypeVar("K")


class Lengths(KeyedOperator[str, int]):
    def process(self, record: str, out: Collector[int]) -> None:
        out.collect(len(record))


class Named(KeyedOperator[Any, K], Generic[K]):
    """Generic itself."""

    def process(self, record: Any, out: Collector[K]) -> None:
        out.collect(record)


@pytest.mark.parametrize("kind", [Operator, KeyedOperator, Source, OutputTag, ProcessWindowFunction])
def test_with_types_in_brackets_a_class_is_itself(kind: Any) -> None:
    assert kind[int, str] is kind


def test_the_class_of_an_operator_with_types_is_like_one_without() -> None:
    assert Lengths.__bases__ == (KeyedOperator,)
    assert "__orig_bases__" not in vars(Lengths)
    assert [each for each in Lengths.__mro__ if each is not Lengths] == list(KeyedOperator.__mro__)


@pytest.mark.parametrize("pickled", [pickle.dumps, cloudpickle.dumps])
@pytest.mark.parametrize("kind", [Lengths, Named, Named[int]])
def test_an_operator_with_types_is_pickled_and_runs(kind: Any, pickled: Any) -> None:
    harness = OperatorHarness(pickle.loads(pickled(kind())), key_by=lambda record: record)
    harness.process(["abc"])
    assert harness.take_output() == [3 if kind is Lengths else "abc"]


def test_an_operator_with_parameters_of_its_own_is_generic() -> None:
    X = TypeVar("X")

    class Base(KeyedOperator, Generic[X]):
        def of_what(self) -> Any:
            return get_args(type(self).__orig_bases__[0])[0]  # type: ignore[attr-defined]

    class OfInts(Base[int]): ...

    assert OfInts().of_what() is int


def test_the_second_records_of_connected_streams_may_be_left_out() -> None:
    assert get_args(ConnectedStreams[int]) == (int, Any)
    assert get_args(ConnectedStreams[int, str]) == (int, str)


def test_a_sink_has_its_transactions_in_brackets() -> None:
    class Orders(TwoPhaseCommitSink[str]):
        """Of which only the class counts."""

    assert issubclass(Orders, TwoPhaseCommitSink)


def some(
    one: DataStream[int], keyed: KeyedStream[str], both: ConnectedStreams[int, str], windows: WindowedStream[int]
) -> DataStream[tuple[int, Collector[str]]]: ...


def test_annotations_of_streams_can_be_evaluated() -> None:
    hints = get_type_hints(some)
    assert hints["one"].__origin__ is DataStream
    assert hints["windows"].__args__ == (int,)


def test_streams_are_instances_of_their_classes_and_say_what_is_missing() -> None:
    numbers = StreamEnvironment().from_collection([1, 2])
    windows = numbers.key_by(lambda number: number).window(tumbling(1))
    assert isinstance(numbers, DataStream)
    assert isinstance(windows, WindowedStream)
    assert type(windows.discarding()) is WindowedStream
    with pytest.raises(AttributeError, match="a DataStream has no 'mapp'; did you mean 'map'"):
        _ = numbers.mapp  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="a window has no 'apply': write process"):
        _ = windows.apply  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="map has no argument 'nam'; did you mean 'name'"):
        numbers.map(str, nam="texts")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="a stream has no records before its job runs"):
        list(numbers)  # type: ignore[call-overload]
