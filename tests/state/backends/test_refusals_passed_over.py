"""A refusal of state that an `except Exception` of the operator has caught comes to light at the next snapshot."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import pytest

from understudy import Collector, KeyedOperator, MapState, ValueState
from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness

RECORDS = [{"who": "ann", "item": 1}, {"who": "bob", "item": 2}]


class Careless(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        with suppress(Exception):
            self.take(record)

    def take(self, record: Any) -> None:
        raise NotImplementedError


class Basket(Careless):
    items = ValueState(list, default=[])

    def take(self, record: Any) -> None:
        self.items.value().append(record["item"])


class Rows(Careless):
    rows = MapState(str, list)

    def take(self, record: Any) -> None:
        self.rows.get("x", []).append(record["item"])


class Total(Careless):
    total = ValueState(int, default=0)

    def take(self, record: Any) -> None:
        self.total.update(str(record["item"]))  # type: ignore[arg-type]

    def on_receive(self, message: Any) -> Any:
        return self.total.value()


@pytest.mark.parametrize("operator", [Basket, Rows])
@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_a_forgotten_update_fails_the_next_checkpoint(operator: Any, backend: str) -> None:
    with OperatorHarness(operator, key_by="who", state_backend=backend) as harness:
        harness.process(RECORDS)
        with pytest.raises(UserCodeError) as caught:
            harness.snapshot()
    assert "put it back in the same call" in str(caught.value.__cause__)


class Asked(KeyedOperator):
    items = ValueState(list, default=[])

    def process(self, record: Any, out: Collector) -> None:
        self.items.value().append(record["item"])

    def on_receive(self, message: Any) -> Any:
        return self.items.value()


def test_a_forgotten_update_that_a_question_has_found_fails_the_next_checkpoint() -> None:
    with OperatorHarness(Asked, key_by="who") as harness:
        harness.process(RECORDS[:1])
        with pytest.raises(Exception, match="changed in place"):
            harness.ask("items?", key="bob")
        with pytest.raises(UserCodeError) as caught:
            harness.snapshot()
    assert "for key 'ann'" in str(caught.value.__cause__)


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_a_value_of_another_type_is_warned_of_once(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    with OperatorHarness(Total, key_by="who", state_backend=backend) as harness:
        for _ in range(2):
            harness.process(RECORDS)
            harness.snapshot()
        assert harness.ask("total?", key="ann") == 0
    (warning,) = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert "'total'" in warning
    assert "passed over" in warning
