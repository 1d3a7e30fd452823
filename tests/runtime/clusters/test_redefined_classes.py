"""A notebook's cell that is run again replaces its classes, while jobs, and what they have brought, have others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from understudy import LocalCluster
from understudy.messages import UnsupportedValue, record_types
from understudy.runtime.api.errors import InvalidOperator, InvalidSetting
from understudy.runtime.connectors import CollectionSource

from .jobs import WAIT_S, environment

PAIR = "from dataclasses import dataclass\n@dataclass\nclass Pair:\n    a: int\n    b: int\n"
SINGLE = PAIR.replace("    b: int\n", "")
Cell = Callable[..., Any]


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """Runs code as a cell of a notebook does, and gives what stands under a name then."""
    monkeypatch.setattr(record_types, "_registered", {})

    def run(code: str, name: str = "Pair") -> Any:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(code, names)
        monkeypatch.setattr(sys.modules["__main__"], name, names[name], raising=False)
        return names[name]

    return run


def test_results_are_of_the_class_that_the_job_has(shared_cluster: LocalCluster, cell: Cell) -> None:
    pair = cell(PAIR)
    env = environment()
    stream = env.from_collection([pair(1, 2)])
    stream.collect(name="pairs")
    stream.to_outlet(name="out")
    waited, unwaited = shared_cluster.submit(env), shared_cluster.submit(env)
    waited.wait(WAIT_S)
    single = cell(SINGLE)
    env = environment()
    env.from_collection([single(1)]).collect(name="singles")  # it makes the new class known
    unwaited.wait(WAIT_S)
    for job in (waited, unwaited):
        assert job.results("pairs") == [pair(1, 2)]
    assert [batch.records for batch in waited.outlet("out")] == [[pair(1, 2)]]


def test_a_stream_of_records_of_a_class_that_is_gone_is_refused(shared_cluster: LocalCluster, cell: Cell) -> None:
    pair = cell(PAIR)
    env = environment()
    env.from_collection([pair(1, 2)], name="pairs").collect(name="out")
    cell(SINGLE)
    with pytest.raises(InvalidOperator, match=r"operator 'pairs': item 0 .*two classes Pair.*builds the stream"):
        shared_cluster.submit(env)
    with pytest.raises(InvalidSetting, match=r"from_collection: item 0 .*two classes Pair"):
        env.from_collection([pair(1, 2)])
    cell(PAIR)
    job = shared_cluster.submit(env)
    job.wait(WAIT_S)
    assert [(each.a, each.b) for each in job.results("out")] == [(1, 2)]


def test_an_inlet_takes_no_record_that_its_job_cannot_read(shared_cluster: LocalCluster, cell: Cell) -> None:
    pair = cell(PAIR)
    env = environment()
    env.from_inlet("in").collect(name="out")
    job = shared_cluster.submit(env)
    job.ready().result(WAIT_S)
    inlet = job.inlet("in")
    single, later = cell(SINGLE), cell(PAIR.replace("Pair", "Later"), "Later")
    with pytest.raises(UnsupportedValue, match="two classes Pair"):
        inlet.send(single(1))
    with pytest.raises(UnsupportedValue, match="Later was defined after the job was submitted: submit it again"):
        inlet.send_many([later(1, 2)])
    assert inlet.send(pair(1, 2)).result(WAIT_S) == 1
    job.stop().result(WAIT_S)
    job.wait(WAIT_S)
    assert job.results("out") == [pair(1, 2)]


class Odd:
    """No record."""


def test_what_stays_in_one_chain_need_not_travel(shared_cluster: LocalCluster) -> None:
    env = environment()
    env.from_source(CollectionSource([Odd()])).map(lambda odd: type(odd).__name__).collect(name="out")
    job = shared_cluster.submit(env)
    job.wait(WAIT_S)
    assert job.results("out") == ["Odd"]
