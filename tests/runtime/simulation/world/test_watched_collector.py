"""A record that is changed after it was collected is found where time is simulated, and in the harness."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from understudy import Collector, JobFailed, KeyedOperator, LocalCluster, Operator, StreamEnvironment, ValueState
from understudy.actors.errors import UserCodeError
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
