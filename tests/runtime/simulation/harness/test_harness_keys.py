"""Going through all keys in an OperatorHarness: at the end, in questions, after a restore, in compiled operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from understudy import Collector, KeyedOperator, ValueState
from understudy.actors.errors import UserCodeError
from understudy.runtime.simulation.harness.harness import OperatorHarness
from understudy.state import HasCurrentKey, NoCurrentKey, ReadOnlyState


class Finals(KeyedOperator):
    """Emits the total of every key once, at the end."""

    total = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.total.update(self.total.value() + record.n)

    def on_end(self, out: Collector) -> None:
        for key in self.keys():
            out.collect((key, self.total.value()))

    def on_receive(self, message: Any) -> Any:
        match message:
            case "all":
                return sorted((key, self.total.value()) for key in self.keys())
            case "cheat":
                for _ in self.keys():
                    self.total.clear()
            case "total":
                return self.total.value()
            case "key":
                return self.key


class CompiledFinals(Finals):
    compiled = True


BATCHES = [pa.record_batch({"key": ["a", "b", "a"], "n": [1, 2, 3]}), pa.record_batch({"key": ["c"], "n": [4]})]
TOTALS = [("a", 4), ("b", 2), ("c", 4)]


@pytest.fixture(params=[Finals, CompiledFinals])
def harness(request: pytest.FixtureRequest) -> Iterator[OperatorHarness]:
    if request.param is CompiledFinals:
        pytest.importorskip("numba")
    with OperatorHarness(request.param, key_by="key", schemas=[BATCHES[0].schema]) as started:
        for batch in BATCHES:
            started.process(batch)
        yield started


def test_the_final_result_of_every_key_is_emitted_at_the_end(harness: OperatorHarness) -> None:
    harness.end()
    assert sorted(harness.output()) == TOTALS


def test_restored_keys_are_among_them(harness: OperatorHarness) -> None:
    snapshot = harness.snapshot()
    harness.crash()
    with harness.restored(snapshot) as second:
        second.process(pa.record_batch({"key": ["d", "a"], "n": [5, 6]}))
        second.end()
        assert sorted(second.output()) == [("a", 10), ("b", 2), ("c", 4), ("d", 5)]


def test_a_question_without_a_key_may_look_at_all_keys_and_change_none(harness: OperatorHarness) -> None:
    assert harness.ask("all") == TOTALS
    with pytest.raises(ReadOnlyState):
        harness.ask("cheat")
    assert harness.ask("all") == TOTALS
    with pytest.raises(HasCurrentKey, match="the key is 'b'"):
        harness.ask("all", key="b")


@pytest.mark.parametrize(("asked", "used"), [("total", "keyed state 'total'"), ("key", "self.key")])
def test_a_question_without_a_key_has_none(harness: OperatorHarness, asked: str, used: str) -> None:
    assert harness.ask(asked, key="b") == {"total": 2, "key": "b"}[asked]
    with pytest.raises(NoCurrentKey) as caught:
        harness.ask(asked)
    assert str(caught.value) == (
        f"operator '{harness.operator.context.name}': {used} was used in `on_receive`, which is called without a key: "
        "ask with key=..., or go through all keys with `for key in self.keys():`"
    )


def test_a_question_leaves_no_key_behind() -> None:
    class Reading(Finals):
        def on_checkpoint(self, checkpoint_id: int) -> None:
            self.total.value()

    with OperatorHarness(Reading, key_by="key") as harness:
        harness.process(BATCHES[0])
        harness.ask("total", key="a")
        with pytest.raises(UserCodeError) as caught:
            harness.snapshot()
        assert isinstance(caught.value.__cause__, NoCurrentKey)
