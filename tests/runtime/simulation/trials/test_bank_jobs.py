"""Jobs of a bank with mistakes that colleagues make: what finds them, and what the report says."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import KeyedOperator, StreamEnvironment, ValueState
from understudy.testing import assert_exactly_once

AMOUNTS = [(37 * number) % 991 / 7 for number in range(60)]


class Sum(KeyedOperator):
    total = ValueState(float, default=0.0)

    def process(self, amount: float, out: Any) -> None:
        self.total.update(self.total.value() + amount)

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            out.collect((key, self.total.value()))


def _float_sum() -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    branches = env.from_collection(AMOUNTS).union(env.from_collection(AMOUNTS[::-1]))
    branches.key_by(lambda _: "all").process(Sum).collect(name="sums")
    return env


def test_sums_of_floats_in_another_order_are_called_so_and_no_fault_is_blamed() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(_float_sum)
    told = str(caught.value)
    assert "Likely cause: found and wanted are the same but for the last digits of floats" in told
    assert "No fault is needed for it." in told
    assert "so they matter" not in told
