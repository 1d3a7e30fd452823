"""Loops on real processes: killed in the middle, stopped and gone on with in another parallelism, and looked at."""

from __future__ import annotations

import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import DataStream, FileSink, JobHandle, KeyedOperator, LocalCluster, StreamEnvironment, ValueState
from understudy.runtime.clusters.watermark_explanation import HeldBy

from .jobs import (
    KEYS,
    WAIT_S,
    Gate,
    Mark,
    Witness,
    environment,
    eventually,
    generated,
    read_records,
    visible_files,
)

pytestmark = pytest.mark.every_run

COUNT, RATE = 2000, 1500
StartCluster = Callable[..., LocalCluster]


# ---- a loop in a stream


Hop = tuple[int, int, int]
"""Key, index, and how often it goes round yet."""


class Hopping(KeyedOperator):
    """Numbers what comes by key, however often a record has gone round; a record leaves with the number of its hops."""

    hops = ValueState(int, default=0)

    def process(self, hop: Hop, out: Any) -> None:
        self.hops.update(self.hops.value() + 1)
        key, index, left = hop
        out.collect((key, index, left - 1))

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            out.collect((key, -1, -self.hops.value()))


def started(index: int) -> Hop:
    return index % KEYS, index, index % 5


def round_and_round(env: StreamEnvironment, gate: Gate | None, **options: Any) -> DataStream:
    """Each record of key k goes round as often as `left` says; at the end each key says how often it was called."""

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        hopped = loop.key_by(0).process(Hopping, name="hops")
        leaves = hopped.filter(lambda hop: hop[2] < 0, name="leaves")
        return hopped.filter(lambda hop: hop[2] >= 0, name="stays"), leaves

    records = generated(env, COUNT, RATE, gate, "numbers", function=started, **options)
    result = records.iterate(step, name="loop")
    return result.map(lambda hop: {"key": hop[0], "index": hop[1], "left": hop[2]}, name="shown")


Triples = Counter[tuple[int, int, int]]


def all_hops() -> Triples:
    calls = Counter({key: sum(1 + index % 5 for index in range(key, COUNT, KEYS)) for key in range(KEYS)})
    left = [(index % KEYS, index, -1) for index in range(COUNT)]
    return Counter([*left, *((key, -1, -calls[key]) for key in range(KEYS))])


def triples_of(records: list[dict[str, Any]]) -> Triples:
    return Counter((int(each["key"]), int(each["index"]), int(each["left"])) for each in records)


@pytest.mark.chaos
def test_a_loop_in_a_stream_is_exact_when_a_task_manager_is_killed(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    env, gate, out = environment(), Gate(tmp_path), tmp_path / "out"
    round_and_round(env, gate).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    witness.kill(witness.pids(2)[1])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    found = [record for path in visible_files(out) for record in read_records(path, "jsonl")]
    assert triples_of(found) == all_hops()


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_loop_goes_on_from_a_savepoint_in_another_parallelism(
    start_cluster: StartCluster, tmp_path: Path, before: int, after: int
) -> None:
    gate, cluster = Gate(tmp_path), start_cluster(2)

    def built(parallelism: int) -> StreamEnvironment:
        env = environment(parallelism=parallelism, checkpoint_dir=str(tmp_path / "checkpoints"))
        round_and_round(env, gate, parallelism=1).collect(name="all")
        return env

    job = cluster.submit(built(before))
    Witness(job).checkpoints(3)
    path = job.stop_with_savepoint("now").result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    first = triples_of(job.results("all"))
    assert not first - all_hops()
    later = cluster.submit(built(after), from_savepoint=path)
    gate.open()
    later.wait(timeout=WAIT_S)
    assert first + triples_of(later.results("all")) == all_hops()


# ---- a delta iteration


FAR = 1_000
VERTICES = 40


class Steps(KeyedOperator):
    """Distances of vertices on a line: in each round one more is known. It marks that it has come to `middle`, and
    waits there for the gate, once.
    """

    inputs = 2
    distance = ValueState(int)
    neighbour = ValueState(int)

    def __init__(self, mark: Mark, gate: Gate, middle: int) -> None:
        self._mark, self._gate, self._middle = mark, gate, middle

    def process(self, record: tuple[int, int], out: Any) -> None:
        self.distance.update(record[1])
        self.timers.at_event_time(self.timestamp)

    def process_2(self, edge: tuple[int, int], out: Any) -> None:
        self.neighbour.update(edge[1])

    def on_timer(self, timer: Any, out: Any) -> None:
        time.sleep(0.02)  # so that there are checkpoints between rounds
        if self.key >= self._middle and self._mark.take():
            eventually(lambda: self._gate.is_open, "the test")
        if (to := self.neighbour.value()) is not None:
            out.collect((to, self.distance.value() + 1))


def distances(env: StreamEnvironment, mark: Mark, gate: Gate) -> None:
    line = env.from_collection([(n, n + 1) for n in range(VERTICES - 1)], name="line")
    unknown = env.from_collection([(n, FAR) for n in range(VERTICES)], name="unknown")
    start = env.from_collection([(0, 0)], name="start")

    def step(changed: DataStream) -> DataStream:
        return changed.key_by(0).connect(line.key_by(0)).process(Steps(mark, gate, VERTICES // 3), name="steps")

    def shorter(known: Any, new: Any) -> Any:
        return new if new[1] < known[1] else None

    found = unknown.delta_iterate(step, key=0, improve=shorter, workset=start, name="distances")
    found.collect(name="all")


ALL_DISTANCES = [(0, FAR), *((n, n) for n in range(1, VERTICES))]
"""Of the workset nothing is known in the solution."""


@pytest.mark.chaos
def test_a_delta_iteration_is_exact_when_a_task_manager_is_killed(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    env, mark = environment(), Mark(tmp_path, "middle")
    distances(env, mark, Gate(tmp_path))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.kill(mark.wait())
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert sorted(map(tuple, job.results("all"))) == ALL_DISTANCES


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_delta_iteration_goes_on_from_a_savepoint_in_another_parallelism(
    start_cluster: StartCluster, tmp_path: Path, before: int, after: int
) -> None:
    mark, gate, cluster = Mark(tmp_path, "middle"), Gate(tmp_path), start_cluster(2)

    def built(parallelism: int) -> StreamEnvironment:
        env = environment(parallelism=parallelism, checkpoint_dir=str(tmp_path / "checkpoints"))
        distances(env, mark, gate)
        return env

    job = cluster.submit(built(before))
    mark.wait()
    savepoint = job.stop_with_savepoint("now")
    gate.open()
    path = savepoint.result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    assert job.results("all") == []
    later = cluster.submit(built(after), from_savepoint=path)
    later.wait(timeout=WAIT_S)
    assert sorted(map(tuple, later.results("all"))) == ALL_DISTANCES


# ---- looked at


@pytest.fixture
def watched(start_cluster: StartCluster) -> LocalCluster:
    return start_cluster(2, web_port=0, heartbeat_interval_ms=100)


def ask(cluster: LocalCluster, path: str) -> Any:
    with urllib.request.urlopen(f"{cluster.web_url}{path}", timeout=30) as answer:
        return json.loads(answer.read())


def explained(job: JobHandle, operators: tuple[str, ...]) -> dict[str, HeldBy]:
    return {each: job.explain_watermark(each).held_by for each in operators}


def check_pages(cluster: LocalCluster, job: JobHandle, head: str) -> None:
    """The way back is an edge into the head, and what goes from vertex to vertex comes to an end."""
    jid = job.job_id.removeprefix("job-")
    nodes = {each["id"]: each for each in ask(cluster, f"jobs/{jid}/plan")["plan"]["nodes"]}
    (back,) = [each for each in nodes[head]["inputs"] if each["id"] != nodes[head]["inputs"][0]["id"]]
    assert "-back" in nodes[back["id"]]["description"]
    assert len(ask(cluster, f"page/{jid}/watermarks")) <= len(nodes)
    for each in nodes:
        assert "subtasks" in ask(cluster, f"jobs/{jid}/vertices/{each}/backpressure")


def test_a_loop_in_a_stream_is_seen_and_explained(watched: LocalCluster, tmp_path: Path) -> None:
    env, gate = environment(), Gate(tmp_path)
    round_and_round(env, gate).collect(name="all")
    job = watched.submit(env)
    Witness(job).checkpoints(2)
    names = ("loop", "hops", "stays", "leaves", "shown")
    eventually(lambda: set(explained(job, names).values()) == {HeldBy.NO_ASSIGNER}, "that all tasks have reported")
    check_pages(watched, job, "loop")
    gate.open()
    job.wait(timeout=WAIT_S)
    assert triples_of(job.results("all")) == all_hops()


def turning(gate: Gate) -> StreamEnvironment:
    """Rounds until the gate is open."""
    env = environment()
    numbers = env.from_collection(list(range(50)), name="numbers")

    def slow(number: int) -> int:
        time.sleep(0.001)
        return number

    def step(loop: DataStream) -> DataStream:
        return loop.map(slow, name="slow").rebalance().filter(lambda _: not gate.is_open, name="again")

    numbers.bulk_iterate(step, max_rounds=1_000_000, name="rounds").collect(name="all")
    return env


def test_rounds_are_seen_and_explained(watched: LocalCluster, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    job = watched.submit(turning(gate))
    Witness(job).checkpoints(2)
    eventually(lambda: explained(job, ("rounds",)) == {"rounds": HeldBy.NOTHING}, "that its input has ended")
    path = job.explain_watermark("again").path
    assert len(path) <= 3, "each vertex once at most, and none before the head"
    assert not any("numbers" in step for step in path)
    check_pages(watched, job, "rounds")
    gate.open()
    job.wait(timeout=WAIT_S)
    assert job.results("all") == []
