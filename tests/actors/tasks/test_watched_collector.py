"""A record that is changed after it was collected is found where time is simulated, and in the harness; of a running
task among the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from understudy import Collector, JobFailed, KeyedOperator, LocalCluster, Operator, StreamEnvironment, ValueState
from understudy.actors.errors import UserCodeError
from understudy.actors.tasks.watched_collector import FIRST_RECORDS, first_records_collector
from understudy.testing import OperatorHarness


class FillsOneAgain(KeyedOperator):
    def __init__(self) -> None:
        self.row: dict[str, Any] = {}

    def process(self, record: Any, out: Collector) -> None:
        self.row["n"] = record["n"]
        out.collect(self.row)


class Clears(Operator):
    def process_batch(self, batch: Any, out: Collector) -> None:
        found = []
        for record in batch:
            found.append(record["n"])
            out.collect(found)
            found.clear()


class NewOnes(Operator):
    """The same one twice, and one that is changed before it is collected, are fine."""

    def process_batch(self, batch: Any, out: Collector) -> None:
        for record in batch:
            row = dict(record)
            row["n"] += 1
            out.collect(row)
            out.collect(row)


class GivesItsState(KeyedOperator):
    """A tuple holds what the state holds, and the next record changes it."""

    row = ValueState(dict, default={})

    def process(self, record: Any, out: Collector) -> None:
        row = self.row.value()
        row["n"] = record["n"]
        self.row.update(row)
        out.collect((self.key, row))


@dataclass
class Row:
    n: int
    notes: list[int]


class FillsAnObjectAgain(Operator):
    def process_batch(self, batch: Any, out: Collector) -> None:
        row = Row(0, [])
        for record in batch:
            row.n = record["n"]
            out.collect(row)


class GrowsAnObject(Operator):
    def process_batch(self, batch: Any, out: Collector) -> None:
        notes: list[int] = []
        for record in batch:
            notes.append(record["n"])
            out.collect(Row(record["n"], notes))


SAID = r"FillsOneAgain has changed a record after out\.collect\(\.\.\.\): it was {'n': 1}, and is {'n': 2} now\. .*dict"


def in_harness(operator: Operator, key_by: str | None) -> str:
    with OperatorHarness(operator, key_by=key_by) as harness, pytest.raises(UserCodeError) as raised:
        harness.process([{"n": 1}, {"n": 2}])
    return str(raised.value.__cause__)


def test_the_harness_finds_it() -> None:
    assert re.search(SAID, in_harness(FillsOneAgain(), "n"))


def test_of_a_list_too() -> None:
    assert "Clears has changed a record after out.collect(...): it was [1], and is [] now" in in_harness(Clears(), None)


def test_new_records_are_fine() -> None:
    with OperatorHarness(NewOnes) as harness:
        harness.process([{"n": 1}])
        assert harness.output() == [{"n": 2}, {"n": 2}]


def test_the_debugger_finds_it() -> None:
    env = StreamEnvironment()
    env.from_collection([{"n": 1}, {"n": 2}]).key_by(lambda _: 0).process(FillsOneAgain).collect(name="out")
    with LocalCluster(debug=True) as cluster, pytest.raises(JobFailed, match=SAID):
        cluster.submit(env).wait()


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        (
            GivesItsState(),
            r"it was \('a', {'n': 1}\), and is \('a', {'n': 2}\) now\. Collect copies of what is changed later, as in",
        ),
        (
            FillsAnObjectAgain(),
            r"it was {'n': 1, 'notes': \[\]}, and is {'n': 2, 'notes': \[\]} now\. .*replace\(record\)",
        ),
        (GrowsAnObject(), r"it was {'n': 1, 'notes': \[1\]}, and is {'n': 1, 'notes': \[1, 2\]} now"),
    ],
)
def test_what_a_tuple_or_an_object_holds_is_looked_at_too(operator: Operator, said: str) -> None:
    with OperatorHarness(operator, key_by="k" if isinstance(operator, KeyedOperator) else None) as harness:
        with pytest.raises(UserCodeError) as raised:
            harness.process([{"k": "a", "n": 1}, {"k": "a", "n": 2}])
        assert re.search(said, str(raised.value.__cause__))


class CannotBeCopied:
    """And cannot be compared."""

    def __deepcopy__(self, _memo: object) -> object:
        raise RuntimeError("not this one")

    def __eq__(self, _other: object) -> bool:
        raise RuntimeError("nor like this")


def in_a_task(operator: Operator, records: list[Any], batches: int = 1) -> tuple[Any, Any]:
    """What the collector of a running task, and its operator's context, become."""
    operator.context = SimpleNamespace(name="rows-1")  # type: ignore[assignment]
    out = first_records_collector(operator)
    given = []
    for _ in range(batches):
        operator.process_batch(records, out)
        given.append(out.drain())
    return out, given


def test_a_running_task_warns_of_it_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    out, given = in_a_task(FillsAnObjectAgain(), [{"n": 1}, {"n": 2}], batches=2)
    assert [len(batch) for (batch,) in given] == [2, 2]
    (said,) = [record.getMessage() for record in caplog.records]
    assert "operator 'rows-1': FillsAnObjectAgain has changed a record after out.collect(...): it was {'n': 1" in said
    assert type(out) is Collector


def test_a_running_task_says_nothing_of_new_records(caplog: pytest.LogCaptureFixture) -> None:
    out, _ = in_a_task(NewOnes(), [{"n": 1}], batches=FIRST_RECORDS // 2 - 1)
    assert type(out) is not Collector
    out, _ = in_a_task(NewOnes(), [{"n": 1}], batches=FIRST_RECORDS // 2)
    assert type(out) is Collector, "it looks at the first ones only"
    assert not caplog.records


def test_a_running_task_finds_it_in_a_batch_of_more(caplog: pytest.LogCaptureFixture) -> None:
    out, ((given,),) = in_a_task(FillsAnObjectAgain(), [{"n": n} for n in range(3 * FIRST_RECORDS)])
    assert len(given) == 3 * FIRST_RECORDS
    assert len(caplog.records) == 1
    assert type(out) is Collector


def test_what_comes_after_the_batch_is_not_the_operators(caplog: pytest.LogCaptureFixture) -> None:
    out, ((given,), _) = in_a_task(NewOnes(), [{"n": 1}], batches=2)
    given[0]["n"] = 7  # the next operator has it
    out.drain()
    assert not caplog.records


def test_objects_that_cannot_be_copied_or_compared_go_on(caplog: pytest.LogCaptureFixture) -> None:
    class Gives(Operator):
        def process_batch(self, batch: Any, out: Collector) -> None:
            for record in batch:
                out.collect([record])

    _, ((given,),) = in_a_task(Gives(), [CannotBeCopied(), CannotBeCopied()])
    assert len(given) == 2
    assert not caplog.records


class CollectsTwo(Operator):
    def process_batch(self, batch: Any, out: Any) -> None:
        for record in batch:
            out.collect("a", record)


def test_two_records_at_once_are_refused_with_what_to_write() -> None:
    said = r"out\.collect takes one record, found 2: write a tuple or a dict of them, as in out\.collect\(\('a', 1\)\)"
    with pytest.raises(TypeError, match=said):
        in_a_task(CollectsTwo(), [1])
    with OperatorHarness(CollectsTwo()) as harness, pytest.raises(UserCodeError) as raised:
        harness.process([1])
    assert re.search(said, str(raised.value.__cause__))
