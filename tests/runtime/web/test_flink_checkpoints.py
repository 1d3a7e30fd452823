"""Figures of checkpoints as Flink's REST has them."""

from __future__ import annotations

import pytest

from understudy.runtime.web.flink_checkpoints import numbers


def test_a_quantile_is_the_least_value_that_so_many_are_not_above() -> None:
    found = numbers(range(100, 0, -1))
    assert (found["min"], found["max"], found["avg"]) == (1, 100, 50)
    assert [found[name] for name in ("p50", "p90", "p95", "p99", "p999")] == [50.0, 90.0, 95.0, 99.0, 100.0]


@pytest.mark.parametrize("value", [0, 7])
def test_of_one_value_each_figure_is_that(value: int) -> None:
    assert set(numbers([value]).values()) == {value}
