"""A function of `reduce` whose result is no record is refused at the first one, a key's second record."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from understudy import JobFailed, LocalCluster, StreamEnvironment
from understudy.actors.errors import UnwantedResult
from understudy.actors.operators.reduce import KeyedReduce
from understudy.actors.windows import count_window, keep_last
from understudy.actors.windows.window_contents import Reduced
from understudy.actors.windows.window_operator import WindowOperator
from understudy.actors.windows.window_settings import WindowSettings
from understudy.messages import row_type
from understudy.testing import OperatorHarness


@dataclass
class Sale:
    n: int


class Trip(NamedTuple):
    n: int


def results(function: Any, *records: Any) -> list[Any]:
    with OperatorHarness(KeyedReduce(function), key_by=lambda _: 1) as harness:
        harness.process(list(records))
        return harness.output()


def matching(total: Any, sale: Any) -> Any:
    match total:
        case int():
            return total + sale["n"]
        case _:
            return total["n"] + sale["n"]


def trying(total: Any, sale: Any) -> Any:
    try:
        return total["n"] + sale["n"]
    except TypeError:
        return total + sale["n"]


@pytest.mark.parametrize(
    ("function", "record", "said"),
    [
        (lambda total, sale: total["n"] + sale["n"], {"n": 1}, "2, of type int, for two records of type dict"),
        (lambda total, sale: total.n + sale.n, Sale(1), "2, of type int, for two records of type Sale"),
        (lambda total, sale: total.n + sale.n, Trip(1), "2, of type int, for two records of type Trip"),
        (
            lambda total, sale: total["n"] / sale["n"],
            row_type(("n",))(1),
            "1.0, of type float, for two records of",
        ),
        (lambda total, sale: f"{total[0]} {sale[0]}", [1], "'1 1', of type str, for two records of type list"),
        (lambda total, sale: np.float64(total["n"]), {"n": 1}, "of type float64, for two records of type dict"),
    ],
)
def test_a_single_value_in_place_of_a_record_is_refused(function: Any, record: Any, said: str) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011
        results(function, record, record)
    error = raised.value if isinstance(raised.value, UnwantedResult) else raised.value.__cause__
    assert isinstance(error, UnwantedResult)
    assert re.match(r"the function of reduce \(.*test_reduced_type\.py:\d+\) returned ", str(error))
    assert said in str(error)
    assert "wanted a " in str(error)


@pytest.mark.parametrize(
    ("function", "records", "wanted"),
    [
        (operator.add, [1, 2.5, 3], [1, 3.5, 6.5]),
        (lambda total, one: f"{total}, {one}", [1, 2, 3], [1, "1, 2", "1, 2, 3"]),
        (operator.add, [(1,), (2,)], [(1,), (1, 2)]),
        (lambda total, one: {**total, **one}, [{"a": 1}, {"b": 2}], [{"a": 1}, {"a": 1, "b": 2}]),
        (lambda total, one: Sale(total.n + one.n), [Trip(1), Trip(2), Trip(3)], [Trip(1), Sale(3), Sale(6)]),
        (lambda total, one: [total, one], [1, 2, 3], [1, [1, 2], [[1, 2], 3]]),
        (matching, [{"n": 1}, {"n": 2}, {"n": 3}], [{"n": 1}, 3, 6]),
        (trying, [{"n": 1}, {"n": 2}, {"n": 3}], [{"n": 1}, 3, 6]),
        (
            lambda total, one: (total if isinstance(total, int) else total["n"]) + one["n"],
            [{"n": 1}, {"n": 2}, {"n": 3}],
            [{"n": 1}, 3, 6],
        ),
    ],
)
def test_what_the_function_can_go_on_with_is_taken(function: Any, records: Any, wanted: Any) -> None:
    assert results(function, *records) == wanted


def of_windows(function: Any, records: Any, **settings: Any) -> list[Any]:
    windows = WindowOperator(WindowSettings.of(count_window(3), **settings), Reduced(function))
    with OperatorHarness(windows, key_by=lambda _: 1) as harness:
        harness.process(list(records))
        return harness.output()


@pytest.mark.parametrize("settings", [{}, {"evictor": keep_last(3)}], ids=["combined at once", "when it fires"])
def test_windows_refuse_the_same(settings: Any) -> None:
    def price(total: Any, sale: Any) -> Any:
        return total["n"] + sale["n"]

    with pytest.raises(Exception) as raised:  # noqa: PT011
        of_windows(price, [{"n": 1}] * 3, **settings)
    error = raised.value if isinstance(raised.value, UnwantedResult) else raised.value.__cause__
    assert isinstance(error, UnwantedResult)
    assert "returned 2, of type int, for two records of type dict" in str(error)


@pytest.mark.parametrize("settings", [{}, {"evictor": keep_last(3)}], ids=["combined at once", "when it fires"])
def test_windows_look_at_the_first_result_and_take_what_can_go_on(settings: Any) -> None:
    """What a window holds is the function's from then on, with nothing in between."""
    assert of_windows(operator.add, [1, 2, 3], **settings) == [6]
    assert of_windows(trying, [{"n": 1}, {"n": 2}, {"n": 3}], **settings) == [6]
    assert of_windows(lambda total, one: {**total, **one}, [{"a": 1}, {"b": 2}, {"c": 3}], **settings) == [
        {"a": 1, "b": 2, "c": 3}
    ]


def test_the_job_ends_at_once_and_names_the_operator() -> None:
    env = StreamEnvironment(parallelism=1)
    sales = env.from_collection([{"k": 1, "n": n} for n in range(3)]).key_by("k")
    sales.reduce(lambda total, sale: total["n"] + sale["n"], name="totals").collect(name="out")
    with LocalCluster(debug=True) as cluster, pytest.raises(JobFailed, match=r"failed once .*'totals'.* of type int"):
        cluster.submit(env).wait()
