"""Sources in several subtasks that each read all, and lists that each subtask has for itself: the log says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from understudy import DataStream, IndexShare, KeyedOperator, Operator, OperatorListState, Source, StreamEnvironment
from understudy.runtime.api.translation import translate


class Numbers(Source):
    def poll(self) -> Any:
        self.context.wake()
        return [self.context.clock.now_ms()]

    def offset(self) -> Any: ...

    def seek(self, offset: Any) -> None: ...


class ByIndex(Numbers):
    def open(self) -> None:
        self.index = self.context.subtask_index


class ByShare(Numbers):
    def open(self) -> None:
        self.share = IndexShare.fresh(*self.where())  # type: ignore[attr-defined]


class ByHelper(Numbers):
    def open(self) -> None:
        self.reader = print(self.context)


class ByRescale(Numbers):
    def rescale(self, offsets: Any) -> None: ...


def said(caplog: pytest.LogCaptureFixture, build: Callable[[StreamEnvironment], DataStream]) -> str:
    env = StreamEnvironment()
    build(env).collect()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        translate(env, default_parallelism=2, task_managers=2, work_dir="work")
    return caplog.text


def test_a_source_that_asks_for_no_subtask_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    text = said(caplog, lambda env: env.from_source(Numbers, name="numbers"))
    assert "source 'numbers' runs in 2 subtasks, and nothing in Numbers asks which of them it is" in text
    assert "from_source(..., parallelism=1)" in text


@pytest.mark.parametrize("kind", [ByIndex, ByShare, ByHelper, ByRescale])
def test_one_that_does_is_not(caplog: pytest.LogCaptureFixture, kind: type[Source]) -> None:
    assert said(caplog, lambda env: env.from_source(kind)) == ""


def test_one_subtask_may_read_all(caplog: pytest.LogCaptureFixture) -> None:
    assert said(caplog, lambda env: env.from_source(Numbers, parallelism=1)) == ""


class Rules(Operator):
    inputs = 2
    rules = OperatorListState(dict, mode="broadcast")

    def process_batch(self, batch: Any, out: Any) -> None: ...

    def process_batch_2(self, batch: Any, out: Any) -> None: ...


def joined(env: StreamEnvironment, prepare: Callable[[DataStream], DataStream], **options: Any) -> DataStream:
    rules = prepare(env.from_collection([{"id": 1}]))
    return env.from_collection([1, 2]).connect(rules).process(Rules, name="rated", **options)


def test_a_list_for_all_that_each_subtask_makes_of_its_share_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    text = said(caplog, lambda env: joined(env, lambda rules: rules, parallelism=2))
    assert "operator 'rated' has 2 subtasks and an OperatorListState with mode='broadcast', 'rules'" in text


def test_one_that_all_make_of_the_same_is_not(caplog: pytest.LogCaptureFixture) -> None:
    assert said(caplog, lambda env: joined(env, DataStream.broadcast, parallelism=2)) == ""
    assert said(caplog, lambda env: joined(env, lambda rules: rules, parallelism=1)) == ""


class Forgetting(Operator):
    """Its list has no mode."""

    inputs = 2
    rules = OperatorListState(dict)

    def process_batch(self, batch: Any, out: Any) -> None:
        out.emit([rule["id"] for rule in self.rules.get()])

    def process_batch_2(self, batch: Any, out: Any) -> None:
        self.rules.update([*(rule for rule in self.rules.get() if rule["id"]), *batch])


class ForgettingByKey(KeyedOperator):
    inputs = 2
    rules = OperatorListState(dict, mode="union")

    def process(self, record: Any, out: Any) -> None:
        out.collect(len(self.rules.get()))

    def process_2(self, record: Any, out: Any) -> None:
        self.rules.add(record)


class OwnShare(Forgetting):
    """Its list has what the subtask's own records have brought: docs/coming-from.md, Every five seconds."""

    def process_batch(self, batch: Any, out: Any) -> None:
        self.rules.add_all(batch)


def test_a_list_of_rules_that_would_be_dealt_out_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    def beside(kind: type[Operator]) -> Callable[[StreamEnvironment], Any]:
        def build(env: StreamEnvironment) -> Any:
            rules = env.from_collection([{"id": 1}]).broadcast()
            numbers = env.from_collection([1, 2])
            first = numbers.key_by(abs) if issubclass(kind, KeyedOperator) else numbers
            return first.connect(rules).process(kind, name="rated")

        return build

    text = said(caplog, beside(Forgetting))
    assert "operator 'rated' puts into the list 'rules' only what its broadcast stream brings (" in text
    assert f"{__file__}:" in text
    assert "its mode is 'split': when the job goes on with another parallelism, its items are dealt out" in text
    assert "Write OperatorListState(..., mode='broadcast')" in text
    text = said(caplog, beside(ForgettingByKey))
    assert "its mode is 'union': when the job goes on, each subtask has the items of all of them" in text
    assert said(caplog, beside(OwnShare)) == ""
