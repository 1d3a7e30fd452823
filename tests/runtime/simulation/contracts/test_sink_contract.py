"""SinkContract: our sinks pass, and mistakes are found and told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from understudy import FileSink, Operator
from understudy.testing import SinkContract

from . import sqlite_sinks as sinks


class SqliteContract(SinkContract):
    outside = ("sqlite3",)
    kind: ClassVar[Any] = sinks.ToSqlite

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder, self.tables = tmp_path, 0

    @property
    def path(self) -> str:
        return str(self.folder / f"{self.tables}.db")

    def clear(self) -> None:
        self.tables += 1

    def make_sink(self) -> Operator:
        made: Operator = self.kind(self.path)
        return made

    def contents(self) -> Iterator[Any]:
        db = sinks.connect(self.path)
        try:
            for id, value in db.execute("SELECT id, value FROM rows"):
                yield {"id": id, "value": value}
        finally:
            db.close()


@pytest.mark.drawn
class TestTheLedgerSink(SqliteContract):
    pass


@pytest.mark.drawn
class TestTheTwoPhaseCommitSink(SqliteContract):
    kind = sinks.Prepared


@pytest.mark.drawn
class TestTheIdempotentSink(SqliteContract):
    guarantee = "upsert"
    kind = sinks.Upserting


@pytest.mark.drawn
class TestTheFileSink(SinkContract):
    outside = ("fsspec", "os")
    most_points = 24

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder, self.tables = tmp_path, 0

    @property
    def path(self) -> Path:
        return self.folder / str(self.tables)

    def clear(self) -> None:
        self.tables += 1

    def make_sink(self) -> Operator:
        return FileSink(str(self.path), format="jsonl")

    def contents(self) -> Iterator[Any]:
        for path in self.path.rglob("part-*"):
            if not any(part.startswith(".") for part in path.relative_to(self.path).parts):
                yield from map(json.loads, path.read_text().splitlines())


def found(kind: Any, tmp_path: Path, test: str, guarantee: Any = "exactly once", outside: Any = ("sqlite3",)) -> str:
    """What the contract says of a sink that is wrong."""

    class Contract(SqliteContract):
        pass

    Contract.kind, Contract.guarantee, Contract.outside = kind, guarantee, outside
    contract = Contract()
    contract.folder, contract.tables = tmp_path, 0
    with pytest.raises(AssertionError) as caught:
        getattr(contract, test)()
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "test", "guarantee"),
    [
        (sinks.MarkerNotCompared, "test_a_zombie_that_wakes_up_after_its_successor", "exactly once"),
        (sinks.TwoActs, "test_a_kill_before_and_after_each_call", "exactly once"),
        (sinks.NeverReadsBack, "test_a_call_that_fails_and_one_whose_answer_is_lost", "exactly once"),
        (sinks.AtTheBarrier, "test_a_kill_before_and_after_each_call", "exactly once"),
        (sinks.Forgetful, "test_a_kill_before_and_after_each_call", "upsert"),
        (sinks.MarkerRemembered, "test_a_call_that_fails_and_one_whose_answer_is_lost", "exactly once"),
        (sinks.MarkerOfTheSink, "test_a_rescale_from_four_to_two_to_three", "exactly once"),
        (sinks.MarkerOfTheSink, "test_a_job_that_starts_from_a_savepoint", "exactly once"),
        (sinks.MarkerOfTheSink, "test_an_older_checkpoint", "exactly once"),
        (sinks.NamedByNumber, "test_a_rescale_from_four_to_two_to_three", "exactly once"),
        (sinks.DeletedAfterwards, "test_a_kill_before_and_after_each_call", "exactly once"),
        (sinks.CommitPassedOver, "test_a_call_that_fails_and_one_whose_answer_is_lost", "exactly once"),
        (sinks.CleansUp, "test_a_job_that_starts_from_a_savepoint", "exactly once"),
        (sinks.PreparedInMemory, "test_a_kill_before_and_after_each_call", "exactly once"),
    ],
    ids=lambda it: getattr(it, "__name__", None),
)
def test_a_mistake_is_found(kind: Any, test: str, guarantee: str, tmp_path: Path) -> None:
    story = found(kind, tmp_path, test, guarantee)
    assert f"{kind.__name__}: " in story
    assert "What happened:" in story


def test_a_clear_that_clears_nothing_is_named(tmp_path: Path) -> None:
    """Else the sink looks as if it wrote each record twice."""

    class Contract(SqliteContract):
        def clear(self) -> None:
            pass

    contract = Contract()
    contract.folder, contract.tables = tmp_path, 0
    with pytest.raises(AssertionError, match=r"clear\(\) has left 24 records of earlier runs, such as {id: 0"):
        contract.test_a_kill_before_and_after_each_call()


def test_what_a_pool_does_while_the_sink_waits_is_seen(tmp_path: Path) -> None:
    contract = SqliteContract()
    contract.folder, contract.tables, contract.outside = tmp_path, 0, ("sqlite3",)  # type: ignore[misc]
    contract.kind = sinks.TwoConnections  # type: ignore[misc]
    life = contract._undisturbed()
    assert life.calls[0].names.count("sqlite3.connect") == 3
    contract.most_points = 8  # type: ignore[misc]
    contract.test_a_kill_before_and_after_each_call()


@pytest.mark.parametrize("test", ["test_it_writes_what_it_is_given", "test_a_zombie_that_wakes_up_after_its_successor"])
def test_a_module_of_outside_that_is_never_called_is_named(test: str, tmp_path: Path) -> None:
    """The sink's own hooks are points, too; without the calls between them most mistakes would pass."""
    assert "no call into 'sqlite33' was seen" in found(sinks.ToSqlite, tmp_path, test, outside=("sqlite33",))


def test_the_story_says_what_was_killed_when_and_what_is_wrong(tmp_path: Path) -> None:
    story = found(sinks.TwoActs, tmp_path, "test_a_kill_before_and_after_each_call")
    print(story)
    lines = story.splitlines()
    assert lines[0] == "TwoActs: the outside system does not hold what it must."
    assert "attempt 1 starts without state" in story
    assert "attempt 1 is killed after call" in story
    assert "sqlite3.Connection.executemany, while it was informed that checkpoint 1 is complete" in story
    assert "attempt 2 is restored from checkpoint 1" in story
    assert "{id: 0, value: 'value 0'} is there 2 times, wanted 1" in story
