"""SolutionSet: a delta iteration keeps one record per key, under its own key."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.actors.errors import UserCodeError
from understudy.actors.operators.solution_set import SolutionSet
from understudy.testing import OperatorHarness


def _harness(improve: Any) -> OperatorHarness:
    return OperatorHarness(SolutionSet(improve), key_by="node", key_by_2="node")


def _moved(known: Any, candidate: Any) -> Any:
    return {"node": candidate["node"] + 1, "dist": candidate["dist"]}


def _merged(known: Any, candidate: Any) -> Any:
    return {**known, "dist": min(known["dist"], candidate["dist"])}


def test_a_better_record_of_another_key_is_refused() -> None:
    with _harness(_moved) as harness:
        harness.process([{"node": 1, "dist": 5}], input_index=1, timestamps=[0])
        harness.process([{"node": 1, "dist": 3}], timestamps=[1])
        harness.watermark(1, input_index=1)
        with pytest.raises(UserCodeError) as raised:
            harness.watermark(1)
        assert "returned a record of the key 2 for the key 1" in str(raised.value.__cause__)


def test_a_record_made_of_both_goes_on_under_its_key() -> None:
    with _harness(_merged) as harness:
        harness.process([{"node": 1, "dist": 5}], input_index=1, timestamps=[0])
        harness.process([{"node": 1, "dist": 3}, {"node": 1, "dist": 4}], timestamps=[1, 1])
        harness.watermark(1, input_index=1)
        harness.watermark(1)
        assert harness.output() == [{"node": 1, "dist": 3}]


def test_a_record_of_the_key_nan_goes_on_under_it() -> None:
    nan = float("nan")
    with _harness(_merged) as harness:
        harness.process([{"node": nan, "dist": 5}], input_index=1, timestamps=[0])
        harness.process([{"node": float("nan"), "dist": 3}], timestamps=[1])
        harness.watermark(1, input_index=1)
        harness.watermark(1)
        assert [record["dist"] for record in harness.output()] == [3]
