"""A later version of a program starts from a savepoint: what becomes of each state is said by name at submit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from understudy import KeyedOperator, LocalCluster, Savepoint, StateDoesNotFit, StreamEnvironment, ValueState


class First(KeyedOperator):
    count = ValueState(int, default=0)
    worst = ValueState(int, default=0)
    delay = ValueState(str)
    same = ValueState(int, default=0)

    def process(self, number: int, out: Any) -> None:
        raise NotImplementedError


@dataclass
class Delay:
    minutes: int
    cause: str


def from_text(text: str) -> Delay:
    minutes, _, cause = text.partition(" ")
    return Delay(int(minutes), cause)


class Second(KeyedOperator):
    seen = ValueState(int, default=0).formerly("count")
    worst = ValueState(float, default=0.0)
    delay = ValueState(Delay).migrating(str, from_text)
    same = ValueState(int, default=0)

    def process(self, number: int, out: Any) -> None:
        out.collect((self.seen.value(), self.worst.value(), self.delay.value().cause, self.same.value()))


class WithoutWorst(KeyedOperator):
    """The state that is gone is carried along."""

    count = ValueState(int, default=0)
    delay = ValueState(str)
    same = ValueState(int, default=0)

    def process(self, number: int, out: Any) -> None:
        out.collect(self.count.value())


class Unfit(Second):
    worst = ValueState(bytes)  # type: ignore[assignment]


def savepoint_of_first(folder: Path) -> str:
    new = Savepoint.new()
    operator = new.add("delays", First)
    for name, value in {"count": 3, "worst": 40, "delay": "5 fog", "same": 1}.items():
        operator.state(name).put({7: value})
    return new.write(folder)


def job(folder: Path, operator: type[KeyedOperator]) -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_dir=str(folder))
    env.from_collection([7]).key_by(lambda number: number).process(operator, name="delays").collect(name="out")
    return env


def test_each_state_is_compatible_or_migrated_and_submit_says_which(tmp_path: Path) -> None:
    path = savepoint_of_first(tmp_path)
    with LocalCluster(1, debug=True) as cluster:
        handle = cluster.submit(job(tmp_path, Second), from_savepoint=path)
        handle.wait(timeout=60)
        assert handle.results("out") == [(3, 40.0, "fog", 1)]
        assert handle.submitted.restored_states == {
            "delays.seen": "migrated: was called 'count'",
            "delays.worst": "migrated: was int, is float",
            "delays.delay": "migrated: was str, is Delay(minutes: int, cause: str)",
            "delays.same": "compatible",
        }
        assert handle.submitted.restored_operators == ("delays",)


def test_a_state_that_is_not_declared_any_more_is_listed_as_carried_along(tmp_path: Path) -> None:
    path = savepoint_of_first(tmp_path)
    with LocalCluster(1, debug=True) as cluster:
        handle = cluster.submit(job(tmp_path, WithoutWorst), from_savepoint=path)
        handle.wait(timeout=60)
        assert handle.submitted.restored_states == {
            "delays.count": "compatible",
            "delays.worst": "not declared, carried along",
            "delays.delay": "compatible",
            "delays.same": "compatible",
        }
        assert handle.submitted.left_behind == ()


def test_what_is_refused_is_named_at_submit(tmp_path: Path) -> None:
    path = savepoint_of_first(tmp_path)
    with (
        LocalCluster(1, debug=True) as cluster,
        pytest.raises(
            StateDoesNotFit, match=r"state 'worst' of operator 'delays' does not fit: int does not become bytes"
        ),
    ):
        cluster.submit(job(tmp_path, Unfit), from_savepoint=path)
