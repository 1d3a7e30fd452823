"""What an operator finds wrong at submit is raised there, names the operator, and no job is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, Operator, StreamEnvironment
from understudy.actors.operators.collector import Collector
from understudy.runtime.api.errors import InvalidProgram, OperatorCheckFailed
from understudy.runtime.clusters.spark_cluster import SparkCluster
from understudy.runtime.connectors.errors import UnusableOutput
from understudy.testing import SimulatedCluster


def test_a_sink_that_cannot_write(tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("a file")
    env = StreamEnvironment()
    env.from_collection([1]).sink_to(FileSink(f"{file}/out", "jsonl"), name="store")
    with SimulatedCluster() as cluster, pytest.raises(OperatorCheckFailed) as caught:
        cluster.submit(env)
    assert isinstance(caught.value, InvalidProgram)
    assert str(caught.value).startswith(f"operator 'store' (FileSink): cannot write to {file}/out: {file} is a file")
    assert isinstance(caught.value.__cause__, UnusableOutput)


class Checking(Operator):
    """A user's own connector."""

    def __init__(self, seen: list[bool]) -> None:
        self.seen = seen

    def check_at_submit(self, on_this_machine: bool) -> None:
        self.seen.append(on_this_machine)
        if len(self.seen) > 1:
            raise ConnectionError("no broker at localhost:9092")

    def process_batch(self, batch: Any, out: Collector) -> None: ...


def test_an_operator_of_ones_own_is_asked_once_for_each_submission() -> None:
    env, seen = StreamEnvironment(), list[bool]()
    env.from_collection([1]).sink_to(Checking(seen), name="broker", parallelism=2)
    with SimulatedCluster(2) as cluster:
        cluster.submit(env).wait()
        assert seen == [True]
        with pytest.raises(OperatorCheckFailed, match=r"operator 'broker' \(Checking\): no broker at localhost:9092"):
            cluster.submit(env)


@pytest.mark.parametrize(
    ("master", "is_here"), [("local", True), ("local[4]", True), ("spark://host:7077", False), ("yarn", False)]
)
def test_executors_of_other_machines_have_files_of_their_own(master: str, is_here: bool) -> None:
    class Session:
        class sparkContext:
            pass

    Session.sparkContext.master = master  # type: ignore[attr-defined]
    assert SparkCluster(Session())._runs_on_this_machine() is is_here  # type: ignore[arg-type]
