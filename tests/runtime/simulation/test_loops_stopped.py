"""Jobs with loops that are stopped in the middle, drained, or killed go on, and commit what they would have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from understudy import (
    DataStream,
    FileSink,
    StreamEnvironment,
)
from understudy.runtime.simulation.world.faults import JOB_MANAGER
from understudy.testing import SimulatedCluster

from .looping_jobs import (
    COUNT,
    ENDS,
    KEYED,
    KEYS,
    LAST,
    ROUNDS,
    STARTS,
    Counting,
    RoundOver,
    Spread,
    better,
    ended,
    environment,
    goes_on,
)


def paced_stream(parallelism: int) -> StreamEnvironment:
    env = environment(parallelism=parallelism)

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        counted = loop.key_by("key").process(Counting, name="count")
        counted.side_output(Counting.ALL).collect(name="totals")
        return counted.filter(goes_on), counted.filter(lambda each: not goes_on(each))

    starts = env.from_collection(STARTS, name="starts", records_per_second=60)
    starts.iterate(step, name="loop").map(ended).collect(name="ends")
    return env


LINE = 80


def paced_delta(parallelism: int) -> StreamEnvironment:
    """A line: as many rounds as vertices."""
    env = environment(parallelism=parallelism)
    edges = env.from_collection([(n, n + 1) for n in range(LINE)], name="edges", records_per_second=100)
    vertices = env.from_collection([(n, n) for n in range(LINE + 1)], name="vertices")

    def step(changed: DataStream) -> DataStream:
        return changed.key_by(0).connect(edges.key_by(0)).process(Spread, name="spread")

    vertices.delta_iterate(step, key=0, improve=better, name="spreading").collect(name="components")
    return env


Found = dict[str, Counter[Any]]


def output_of(job: Any, sinks: Iterable[str]) -> Found:
    return {sink: Counter(tuple(each) for each in job.results(sink)) for sink in sinks}


def stopped_at(
    build: Callable[[int], StreamEnvironment], sinks: Iterable[str], at_ms: float, drain: bool, *, further: int
) -> Found:
    """What the job commits until a stop, and if it was not drained, what it commits from there on."""
    with SimulatedCluster(2, slots_per_task_manager=2, seed=round(at_ms)) as cluster:
        job = cluster.submit(build(2))
        cluster.run_for(at_ms)
        assert not job.status.is_terminal, "the moment is too late for this job"
        path = job.stop_with_savepoint(drain=drain).result()
        job.wait()
        found = output_of(job, sinks)
        if not drain:
            later = cluster.submit(build(further), from_savepoint=path)
            later.wait()
            found = {sink: found[sink] + more for sink, more in output_of(later, sinks).items()}
    return found


@pytest.mark.parametrize(("at_ms", "further"), [(520, 1), (700, 3), (810, 2)])
def test_a_loop_in_a_stream_goes_on_behind_a_stop(at_ms: float, further: int) -> None:
    found = stopped_at(paced_stream, KEYED, at_ms, drain=False, further=further)
    assert found == {sink: Counter(records) for sink, records in KEYED.items()}


@pytest.mark.parametrize(("at_ms", "further"), [(520, 1), (850, 3), (1100, 2)])
def test_rounds_go_on_behind_a_stop(at_ms: float, further: int) -> None:
    found = stopped_at(paced_delta, ["components"], at_ms, drain=False, further=further)
    assert found == {"components": Counter((n, 0) for n in range(LINE + 1))}


@pytest.mark.parametrize("at_ms", [520, 700, 810])
def test_a_drain_lets_a_loop_work_off_what_is_in_it(at_ms: float) -> None:
    """Every record that was taken in comes out, with all its hops; and the totals say so."""
    found = stopped_at(paced_stream, KEYED, at_ms, drain=True, further=0)
    assert not found["ends"] - Counter(ENDS)
    assert len(found["ends"]) < COUNT
    hops = sum(hops * times for (_, _, hops), times in found["ends"].items())
    assert hops == sum(taken for _, taken in found["totals"])


def test_a_drain_lets_rounds_come_to_their_end() -> None:
    found = stopped_at(paced_delta, ["components"], 1_100, drain=True, further=0)
    assert found == {"components": Counter((n, 0) for n in range(LINE + 1))}


OUT = "sim://service/out"


def service(rounds: bool) -> StreamEnvironment:
    """Of sums in rounds, or of hops, into files."""
    env = environment(checkpoint_dir="sim://service/checkpoints")
    if rounds:
        numbers = env.from_collection([(n % KEYS, n) for n in range(30)], name="numbers", records_per_second=50)
        last = numbers.bulk_iterate(
            lambda loop: loop.key_by(0).process(RoundOver, name="over"), max_rounds=ROUNDS, name="rounds"
        )
    else:
        starts = env.from_collection(STARTS, name="starts", records_per_second=60)
        last = starts.iterate(by_hops, name="loop").map(ended)
    last.map(lambda each: {"of": list(each)}).sink_to(FileSink(OUT, "jsonl"))
    return env


def by_hops(loop: DataStream) -> tuple[DataStream, DataStream]:
    counted = loop.key_by("key").process(Counting, name="count")
    return counted.filter(goes_on), counted.filter(lambda each: not goes_on(each))


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_service_with_a_loop_that_is_killed_goes_on_from_its_latest_checkpoint(rounds: bool, seed: int) -> None:
    with SimulatedCluster(2, seed=seed) as cluster:
        for _ in range(2):
            cluster.submit(service(rounds), "service", resume="latest")
            cluster.run_for(450 + 100 * seed)
            driver = cluster.process(JOB_MANAGER)
            assert driver is not None
            driver.kill("kill -9")
            cluster.start_again()
        cluster.submit(service(rounds), "service", resume="latest").wait()
        files = cluster.disk.contents(OUT.removeprefix("sim:/"))
        found = [
            tuple(json.loads(line)["of"])
            for name, content in files.items()
            if not name.startswith(".")
            for line in content.splitlines()
        ]
        assert sorted(found) == sorted(LAST if rounds else ENDS)
        assert not cluster.probes.violations
