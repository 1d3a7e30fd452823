"""TaskManagers of a job with compiled operators are forked from a template that has Numba ready; others without it."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from understudy import KeyedOperator, LocalCluster, Operator, StreamEnvironment
from understudy.runtime.api.translation import translate
from understudy.runtime.clusters.interface import load
from understudy.runtime.clusters.preload import warm_up_of

from ...messages.generated import generated
from .jobs import WAIT_S

pytest.importorskip("numba")


class Same(KeyedOperator):
    compiled = True

    def process(self, record: Any, out: Any) -> None:
        out.collect((self.key, record[1] + 1))


class PlainSame(Same):
    compiled = False


class Witness(Operator):
    """Chained after the operator, so it is unpickled with it: before anything is compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.found = "numba" in sys.modules

    def process_batch(self, batch: Any, out: Any) -> None:
        for record in batch:
            out.collect((*record, self.found))


class Vocabulary(Operator):
    """Gives out the messages that its process could not read or write when it came, and can at the end of the data."""

    def __init__(self) -> None:
        super().__init__()
        self.known: frozenset[type] = frozenset()

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state, known=generated())

    def process_batch(self, batch: Any, out: Any) -> None:
        pass

    def on_end(self, out: Any) -> None:
        for cls in generated() - self.known:
            out.collect(cls.__name__)


@pytest.mark.parametrize(("operator", "ready"), [(Same, True), (PlainSame, False)])
def test_numba_is_there_before_user_code_is(operator: type[KeyedOperator], ready: bool) -> None:
    env = StreamEnvironment(parallelism=1)
    env.from_collection([(1, 1), (2, 2)]).key_by(0).process(operator).process(Witness).collect(name="found")
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert sorted(map(tuple, job.results("found"))) == [(1, 2, ready), (2, 3, ready)]


def test_the_messages_of_a_usual_job_are_ready_before_a_fork() -> None:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=50)
    stream = env.generate(lambda index: (index % 7, index), 100, records_per_second=200).key_by(0)
    stream.process(PlainSame).process(Vocabulary).collect(name="found")
    with LocalCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert job.results("found") == []


OPERATORS = """
import sys
WAS_THERE = "understudy.runtime.api.environment" in sys.modules
from understudy import Operator, StreamEnvironment

class Asks(Operator):
    def process_batch(self, batch, out):
        out.collect(WAS_THERE)
"""


def test_a_users_module_finds_what_it_imports_in_the_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks before it imports anything of that itself."""
    (tmp_path / "jobs_of_a_user.py").write_text(OPERATORS)
    monkeypatch.syspath_prepend(str(tmp_path))
    env = StreamEnvironment(parallelism=1)
    env.from_collection([1]).process(import_module("jobs_of_a_user").Asks).collect(name="found")
    program = translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere").program
    assert warm_up_of(program) == (f"{load.__module__}:{load.__name__}",)
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert job.results("found") == [True]


def test_a_program_without_modules_loads_nothing_ahead() -> None:
    env = StreamEnvironment(parallelism=1)
    env.from_collection([1]).map(str).collect(name="found")
    program = translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere").program
    ours = {name: file for name, file in program.modules.items() if name.startswith("understudy.")}
    assert ours, "and what other tests have registered in this process"
    assert warm_up_of(replace(program, modules=ours)) == ()
