"""A state is no attribute: a method that assigns to it is refused, and its use as a value says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy import Collector, InvalidOperator, KeyedOperator, ListState, MapState, StreamEnvironment, ValueState
from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness


class Counting(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.total.update(self.total.value() + 1)


class Assigning(Counting):
    def process(self, record: Any, out: Collector) -> None:
        self.total = 1  # type: ignore[assignment]


class AssigningInOpen(Counting):
    def open(self) -> None:
        super().open()
        self.total = record = 1  # type: ignore[assignment]  # noqa: F841


class OfAnother(Counting):
    def process(self, record: Any, out: Collector) -> None:
        record.total = self.total.value()
        self.last_total = record.total


@pytest.mark.parametrize("operator", [Assigning, AssigningInOpen])
def test_a_method_that_assigns_to_a_state_is_refused_with_its_line(operator: type[KeyedOperator]) -> None:
    keyed = StreamEnvironment().from_collection([1]).key_by(str)
    text = rf"{operator.__name__}\.\w+ assigns to the state 'total' \(.*\.py:\d+\).*write self\.total\.update"
    with pytest.raises(InvalidOperator, match=text):
        keyed.process(operator)


def test_an_attribute_of_the_same_name_of_something_else_is_not() -> None:
    StreamEnvironment().from_collection([1]).key_by(str).process(OfAnother)


class Using(KeyedOperator):
    total = ValueState(int, default=0)
    seen = ListState(int)
    table = MapState(str, int)

    def __init__(self, use: Callable[[Any], Any]) -> None:
        self._use = use

    def process(self, record: Any, out: Collector) -> None:
        out.collect(self._use(self))


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda op: 1 if op.total else 0, r"state 'total' is a ValueState, and not what .* write \.value\(\) behind"),
        (lambda op: op.total == 0, r"state 'total' is a ValueState, and not what .* write \.value\(\) behind"),
        (lambda op: op.total != 0, r"state 'total' is a ValueState, and not what .* write \.value\(\) behind"),
        (lambda op: f"{op.total}", r"state 'total' is a ValueState, and not what .* write \.value\(\) behind"),
        (lambda op: not op.seen, r"state 'seen' is a ListState, and not what it holds: write \.get\(\) behind it"),
        (lambda op: op.table == {}, r"state 'table' is a MapState, and not what it holds: write \.items\(\) behind it"),
    ],
)
def test_a_state_that_is_used_as_its_value_says_how_that_is_read(
    use: Callable[[Any], Any], text: str, backend: str
) -> None:
    with (
        OperatorHarness(Using(use), key_by="k", state_backend=backend) as harness,
        pytest.raises(UserCodeError) as raised,
    ):
        harness.process([{"k": 1}])
    assert raised.value.__cause__ is not None
    with pytest.raises(TypeError, match=text):
        raise raised.value.__cause__
