"""A keyed stream with a broadcast one beside it: every key has the same rules, which records of theirs change."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy import (
    Collector,
    InvalidOperator,
    InvalidProgram,
    KeyedOperator,
    KeyedTimer,
    MapState,
    Operator,
    OperatorListState,
    StreamEnvironment,
    ValueState,
)
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.elements import TimedBatch
from understudy.testing import HarnessMisused, OperatorHarness, assert_exactly_once, assert_survives_restore

LIMITS = [{"limit": 3}, {"limit": 2}]
EVENTS = [("a", 1), ("b", 2), ("a", 3), ("a", 4)]


class Alerts(KeyedOperator):
    """Counts per key, and emits where the count reaches the newest limit."""

    inputs = 2
    rules = OperatorListState(dict, mode="broadcast")
    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.seen.update(self.seen.value() + 1)
        for rule in self.rules.get()[-1:]:
            if self.seen.value() >= rule["limit"]:
                out.collect((self.key, self.seen.value()))

    def process_2(self, record: Any, out: Collector) -> None:
        self.rules.add(record if isinstance(record, dict) else {"limit": record.limit})

    def on_receive(self, message: Any) -> int:
        return len(self.rules.get())


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_each_key_has_the_rules_which_a_snapshot_holds(backend: str) -> None:
    with OperatorHarness(Alerts, key_by=0, broadcast_2=True, state_backend=backend) as harness:
        harness.process(EVENTS[:2])
        harness.process(LIMITS[:1], 1)
        harness.process(EVENTS[2:3])
        assert harness.take_output() == []
        harness.process(pa.RecordBatch.from_pylist(LIMITS[1:]), 1)
        snapshot = harness.snapshot()
    for after in (harness.restored(snapshot), harness.restored(snapshot, parallelism=1)):
        after.process(EVENTS[3:])
        assert after.take_output() == [("a", 3)]


def test_after_a_rescale_all_subtasks_have_them() -> None:
    with OperatorHarness(Alerts, key_by=0, broadcast_2=True) as harness:
        harness.process(LIMITS, 1)
        snapshot = harness.snapshot()
    for index in range(3):
        with harness.restored(snapshot, parallelism=3, subtask_index=index) as part:
            assert part.ask("how many?", key="a") == 2


def failure(operator: type[Operator]) -> str:
    """What the operator raises, with its cause."""
    with OperatorHarness(operator, key_by=0, broadcast_2=True) as harness:
        try:
            harness.process([("a", 1)])
            harness.process(LIMITS, 1)
        except UserCodeError as error:
            return f"{error}: {error.__cause__}"
    return "nothing"


def test_there_is_no_key_where_a_rule_comes() -> None:
    class Reads(Alerts):
        def process_2(self, record: Any, out: Collector) -> None:
            out.collect(self.key)

    class Writes(Alerts):
        def process_2(self, record: Any, out: Collector) -> None:
            self.seen.update(7)

    class Remembers(Alerts):
        by_name = MapState(str, dict)

        def process_2(self, record: Any, out: Collector) -> None:
            self.by_name.put("limit", record)

    assert "self.key was used in `process_2`, which is called without a key: a broadcast " in failure(Reads)
    said = "keep what every key needs in an OperatorListState(..., mode='broadcast'), which `process` reads, or go"
    assert said in failure(Remembers)
    assert "keyed state 'seen' was used in `process_2`, which is called without a key: a broadcast " in failure(Writes)


def test_what_all_have_is_not_changed_where_there_is_a_key() -> None:
    class Adds(Alerts):
        def process(self, record: Any, out: Collector) -> None:
            rules = self.rules  # `self.rules.add(...)` is refused before the job runs
            rules.add({"limit": 1})

    class AddsForEach(Alerts):
        def process_2(self, record: Any, out: Collector) -> None:
            for _ in self.keys():
                self.rules.add(record)

        def process(self, record: Any, out: Collector) -> None:
            self.seen.update(1)

    for kind in (Adds, AddsForEach):
        said = failure(kind)
        assert "list 'rules' must be the same in all subtasks (mode='broadcast'), but was changed while" in said
        assert "change it in process_2 of keyed.connect(rules.broadcast()), outside of loops over" in said


def test_a_rule_may_go_through_all_keys() -> None:
    class Resets(Alerts):
        def process_2(self, record: Any, out: Collector) -> None:
            for key in self.keys():
                out.collect((key, self.seen.value()))
                self.seen.clear()

    with OperatorHarness(Resets, key_by=0, broadcast_2=True) as harness:
        harness.process(EVENTS)
        harness.process(LIMITS, 1)
        assert sorted(harness.take_output()) == [("a", 3), ("b", 1)]


def test_a_record_gets_the_time_of_its_rule_and_timers_wait_for_both() -> None:
    class Times(KeyedOperator):
        inputs = 2

        def process(self, record: Any, out: Collector) -> None:
            self.timers.at_event_time(self.timestamp + 10)

        def process_2(self, record: Any, out: Collector) -> None:
            out.collect(("rule", self.timestamp))

        def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
            out.collect((self.key, timer.time_ms))

    with OperatorHarness(Times, key_by=0, broadcast_2=True) as harness:
        harness.process([("a", 1)], timestamps=[5])
        harness.process(LIMITS, 1, timestamps=[6, 9])
        harness.watermark(20)
        assert harness.take_output() == [("rule", 6), ("rule", 9)]
        harness.watermark(20, 1)
        assert harness.take_output() == [("a", 15)]


def test_the_number_of_a_record_that_fails_counts_rules_too() -> None:
    """As in the task's figures of what came in."""
    with OperatorHarness(Alerts, key_by=0, broadcast_2=True) as harness:
        harness.process(LIMITS, 1)
        with pytest.raises(UserCodeError) as failed:
            harness.process([*EVENTS[:1], ()])
        assert failed.value.record_position == 3


class Reached(KeyedOperator):
    """How far event time has come where each record is taken."""

    inputs = 2

    def process(self, record: Any, out: Collector) -> None:
        out.collect(("event", self.watermark))

    def process_2(self, record: Any, out: Collector) -> None:
        out.collect(("rule", self.watermark))


def test_how_far_the_split_of_a_rule_has_come_says_nothing_of_the_events_after_it() -> None:
    with OperatorHarness(Reached, key_by=0, broadcast_2=True) as harness:
        for index in range(2):
            harness.watermark(5, index)
        harness._attempt.process(TimedBatch(["one", "two"], np.array([30, 40]), None, np.array([2, 20])), 1)
        harness.process([("a", 1)], timestamps=[10])
        assert harness.take_output() == [("rule", 5), ("rule", 20), ("event", 5)]


def test_which_streams_can_be_connected() -> None:
    env = StreamEnvironment()
    events, rules = env.from_collection(EVENTS), env.from_collection(LIMITS)
    keyed = events.key_by(0)
    keyed.connect(rules.broadcast()).process(Alerts)
    with pytest.raises(InvalidProgram, match=r"the first stream is keyed, the other not: .*keyed\.connect\(rules\.bro"):
        keyed.connect(rules)
    with pytest.raises(InvalidProgram, match=r"swap them, keyed\.connect\(rules\.broadcast\(\)\)"):
        rules.broadcast().connect(keyed)
    with pytest.raises(InvalidProgram, match="the second stream is keyed, the other not: key both or neither"):
        rules.connect(keyed)


def test_coroutines_are_refused() -> None:
    class Asks(Alerts):
        async def process(self, record: Any, out: Collector) -> None:  # type: ignore[override]
            out.collect(record)

    class AsksForBoth(Asks):
        process_2 = Asks.process  # type: ignore[assignment]

    env = StreamEnvironment()
    rules = env.from_collection(LIMITS).broadcast()
    for kind in (Asks, AsksForBoth):  # not "write both as `async def`", which would be refused, too
        said = f"{kind.__name__} runs coroutines, which are ordered by key, and records of the broadcast stream have no"
        with pytest.raises(InvalidOperator, match=said):
            env.from_collection(EVENTS).key_by(0).connect(rules).process(kind)
        with pytest.raises(InvalidOperator, match=said):
            OperatorHarness(kind, key_by=0, broadcast_2=True)


class Matched(KeyedOperator):
    """At the end, for each key: how many of its events each rule has hit. It does not depend on what comes first."""

    inputs = 2
    rules = OperatorListState(int, mode="broadcast")
    values = MapState(int, int)

    def process(self, record: Any, out: Collector) -> None:
        self.values.put(record[1], self.values.get(record[1], 0) + 1)

    def process_2(self, record: Any, out: Collector) -> None:
        self.rules.add(record)

    def on_end(self, out: Collector) -> None:
        for key in self.keys():
            out.collect((key, [(rule, self.values.get(rule)) for rule in sorted(self.rules.get())]))


def matches(alignment_timeout_ms: int | None = None) -> StreamEnvironment:
    env = StreamEnvironment(
        parallelism=2, checkpoint_interval_ms=200, alignment_timeout_ms=alignment_timeout_ms, buffer_timeout_ms=500
    )
    events = env.from_collection([(number % 5, number % 7) for number in range(200)], records_per_second=200)
    rules = env.from_collection([1, 2, 3, 4, 5], records_per_second=5)
    events.key_by(0).connect(rules.broadcast()).process(Matched, name="matched").collect(name="hits")
    return env


@pytest.mark.parametrize("alignment_timeout_ms", [None, 0])
def test_each_rule_counts_once_for_every_key_whatever_fails(alignment_timeout_ms: int | None) -> None:
    survived = assert_exactly_once(partial(matches, alignment_timeout_ms), histories=8)
    assert survived.recoveries > 3


def test_a_restore_at_any_place_between_events_and_rules_changes_nothing() -> None:
    batches = [EVENTS[:1], (1, LIMITS[:1]), EVENTS[1:3], (1, LIMITS[1:]), EVENTS[3:]]
    assert_survives_restore(Alerts, batches, key_by=0, broadcast_2=True)


def test_the_harness_asks_whether_rules_are_broadcast() -> None:
    with pytest.raises(HarnessMisused, match=r"Alerts .*'rules'.*: write broadcast_2=True, or key_by_2="):
        OperatorHarness(Alerts, key_by=0)
    with OperatorHarness(Alerts, key_by=0, key_by_2="limit") as keyed_both:
        keyed_both.process(EVENTS)
    with pytest.raises(HarnessMisused, match="broadcast_2: Counts has one input"):
        OperatorHarness(Counts, key_by=0, broadcast_2=True)


class Counts(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


def test_an_iterator_of_keys_that_was_kept_leaves_no_key_to_the_next_rule() -> None:
    class Keeps(Alerts):
        def process_2(self, record: Any, out: Collector) -> None:
            if record == LIMITS[0]:
                self.kept = self.keys()
                next(self.kept)
            else:
                self.seen.update(99)

    assert "keyed state 'seen' was used in `process_2`, which is called without a key" in failure(Keeps)


def test_what_another_method_does_wrong_afterwards_is_not_said_of_process_2() -> None:
    class Batches(Alerts):
        def process_batch(self, batch: Any, out: Collector) -> None:
            if self.rules.get():
                self.seen.value()

    with OperatorHarness(Batches, key_by=0, broadcast_2=True) as harness:
        harness.process(LIMITS, 1)
        with pytest.raises(UserCodeError, match="keyed state 'seen' was used without a key: "):
            harness.process([("a", 1)])


def test_a_stream_knows_whether_its_second_input_is_broadcast() -> None:
    env = StreamEnvironment()
    rules = env.from_collection(LIMITS).broadcast()
    stream = env.from_collection(EVENTS).key_by(0).connect(rules).process(Alerts)
    with pytest.raises(HarnessMisused, match="leave broadcast_2 out"):
        OperatorHarness(stream, broadcast_2=True)
