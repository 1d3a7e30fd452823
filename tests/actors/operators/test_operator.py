"""Operators as objects: how they travel, and where they keep what they ask for with each record."""

from __future__ import annotations

import copy
import gc
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

from understudy import Collector, KeyedOperator, Operator, ValueState
from understudy.actors.errors import UserCodeError
from understudy.actors.operators.keyed_operator import PIECE_ROWS
from understudy.actors.tasks.operator_chain import OperatorChain


class Totals(KeyedOperator):
    total = ValueState(int, default=0)

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def process(self, record: Any, out: Any) -> None:
        self.total.update(self.total.value() + self.factor * record[1])
        out.collect((self.key, self.total.value()))


class Slotted(KeyedOperator):
    __slots__ = ("factor",)

    def process(self, record: Any, out: Any) -> None: ...


def has_a_dict_of_its_own(operator: KeyedOperator) -> bool:
    """Seen without asking for it, which would make one."""
    return any(type(each) is dict and "factor" in each for each in gc.get_referents(operator))


def test_attributes_of_an_operator_that_has_travelled_are_found_quickly(opened: Callable[..., Totals]) -> None:
    operator = opened(Totals(3), 0)
    out = Collector()
    operator.process_batch([("a", 1), ("b", 2), ("a", 3)], out)
    assert out.drain() == [[("a", 3), ("b", 6), ("a", 12)]]
    assert not has_a_dict_of_its_own(operator)
    vars(operator)
    if sys.version_info < (3, 13):  # from then on attributes stay where they are, and are found as quickly
        assert has_a_dict_of_its_own(operator)


def test_no_class_attribute_stands_before_the_key() -> None:
    assert not hasattr(KeyedOperator, "key")
    assert not hasattr(Totals(1), "key")


@pytest.mark.parametrize("travelled", [lambda it: cloudpickle.loads(cloudpickle.dumps(it)), copy.copy, copy.deepcopy])
def test_what_an_operator_holds_travels_with_it(travelled: Callable[[Any], Any]) -> None:
    totals, slotted = Totals(3), Slotted()
    slotted.factor, slotted.other = 4, [5]  # type: ignore[attr-defined]
    assert vars(travelled(totals)) == {"factor": 3}
    arrived = travelled(slotted)
    assert (arrived.factor, arrived.other, hasattr(arrived, "key")) == (4, [5], False)


class Sizes(Operator):
    """Emits how many records came at a time, and what the first and the last were."""

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.collect((len(batch), batch[0], batch[-1]))


def rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"key": ["a"] * count, "value": list(range(count))})


def test_the_next_operator_takes_what_a_large_batch_gives_piece_by_piece(opened: Callable[..., Totals]) -> None:
    emitted: list[Any] = []
    OperatorChain([opened(Totals(1), "key"), opened(Sizes())], emitted.append).process(rows(2 * PIECE_ROWS + 1))
    total = [sum(range(count + 1)) for count in range(2 * PIECE_ROWS + 1)]
    assert emitted == [
        [(PIECE_ROWS, ("a", 0), ("a", total[PIECE_ROWS - 1]))],
        [(PIECE_ROWS, ("a", total[PIECE_ROWS]), ("a", total[2 * PIECE_ROWS - 1]))],
        [(1, ("a", total[-1]), ("a", total[-1]))],
    ]


def test_what_goes_to_other_tasks_is_not_cut(opened: Callable[..., Totals]) -> None:
    emitted: list[Any] = []
    OperatorChain([opened(Totals(1), "key")], emitted.append).process(rows(2 * PIECE_ROWS))
    assert list(map(len, emitted)) == [2 * PIECE_ROWS]


def test_an_error_in_a_later_piece_names_the_record(opened: Callable[..., Totals]) -> None:
    batch = pa.RecordBatch.from_pydict({"key": ["a"] * 3000, "value": [*range(2500), None, *range(499)]})
    with pytest.raises(UserCodeError, match="at record 2500 "):
        OperatorChain([opened(Totals(1), "key"), opened(Sizes())], [].append).process(batch)


@pytest.mark.parametrize("record", [{"a": 1}, "ann", (1, 2), b"ann", 5])
def test_one_record_is_no_batch(record: Any) -> None:
    """Its keys, letters or items would come out as records."""
    out = Collector()
    with pytest.raises(TypeError, match=r"out.emit takes a whole batch.*out\.collect\(record\)"):
        out.emit(record)
    assert not out


def test_an_operator_that_has_not_been_started_can_be_printed() -> None:
    class Printed(Operator):
        pass

    assert "Printed object at" in f"{Printed()}"
