"""What a newcomer gets wrong in a job that runs is said with the way out: how it is awaited and closed, whose files lie
beside its own, what its functions return.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    AggregateFunction,
    Collector,
    FileSink,
    JobFailed,
    KeyedOperator,
    LocalCluster,
    ValueState,
    monotonous,
    tumbling,
)
from understudy.runtime.api.environment import StreamEnvironment


def test_a_debug_job_that_is_awaited_lets_time_outs_and_other_coroutines_through() -> None:
    async def run() -> int:
        env = StreamEnvironment()
        env.generate(lambda n: n, records_per_second=1000).collect(name="out")
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        beating = asyncio.create_task(beat())
        async with LocalCluster(debug=True) as cluster:
            job = cluster.submit(env)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(job.wait_async(), 0.3)
            with pytest.raises(TimeoutError, match=r"is running after 0\.2 seconds"):
                await job.wait_async(0.2)
        beating.cancel()
        return beats

    assert asyncio.run(run()) > 2


def test_to_block_an_event_loop_is_warned_of() -> None:
    async def run() -> None:
        env = StreamEnvironment()
        env.from_collection([1]).collect(name="out")
        async with LocalCluster(debug=True) as cluster:
            cluster.submit(env).wait()

    with pytest.warns(RuntimeWarning, match="write `await job`") as warned:
        asyncio.run(run())
    places = [each.filename for each in warned if each.category is RuntimeWarning]
    assert places == [__file__, __file__], "submit and wait, each once, at this line"


def test_a_cluster_that_closes_on_a_running_job_says_so(
    caplog: pytest.LogCaptureFixture, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("checkpoints")
    env = StreamEnvironment(checkpoint_interval_ms=50, checkpoint_dir=str(folder))
    env.generate(lambda n: n, records_per_second=100).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        cluster.submit(env, name="endless").ready().result(timeout=5)
    assert "job 'endless' was running when its cluster closed" in caplog.text
    assert "retain_checkpoints='on_cancellation' keeps them" in caplog.text
    assert "wait for its end with job.wait(), or end it by job.stop_with_savepoint()" in caplog.text


def test_a_cluster_that_closes_on_a_job_that_was_canceled_has_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    """Its user has said what they want."""
    env = StreamEnvironment()
    env.generate(lambda n: n, records_per_second=100).print()
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env, name="endless")
        job.ready().result(timeout=5)
        job.cancel()
    assert "its cluster closed" not in caplog.text


def test_of_two_jobs_of_one_name_a_cluster_that_closes_says_which(caplog: pytest.LogCaptureFixture) -> None:
    with LocalCluster(debug=True) as cluster:
        for _ in range(2):
            env = StreamEnvironment()
            env.generate(lambda n: n, records_per_second=100).print()
            cluster.submit(env, name="endless").ready().result(timeout=5)
    said = [each for each in caplog.messages if "its cluster closed" in each]
    begins = [f"job 'endless' ({handle.job_id[:12]}) was running" for handle in cluster.handles]
    assert [each[: len(begin)] for each, begin in zip(said, begins, strict=True)] == begins


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_a_cluster_that_an_interrupt_closes_does_not_advise_to_wait(
    on_a_loop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """On a loop it is a CancelledError, and the cluster is closed on another thread."""
    env = StreamEnvironment()
    env.generate(lambda n: n, records_per_second=100).collect(name="out")

    def run() -> None:
        with LocalCluster(debug=True) as cluster:
            cluster.submit(env, name="endless").ready().result(timeout=5)
            raise KeyboardInterrupt

    async def run_on_a_loop() -> None:
        async with LocalCluster() as cluster:
            job = await cluster.submit_async(env, name="endless")
            await job.ready()
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError if on_a_loop else KeyboardInterrupt) as info:
        asyncio.run(run_on_a_loop()) if on_a_loop else run()
    said = f"job 'endless' was running when {info.type.__name__} closed its cluster, and is canceled: to go on with it"
    assert said in caplog.text
    assert "wait for its end" not in caplog.text


Warned = Callable[..., tuple[list[str], str]]


@pytest.fixture
def warned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Warned:
    """Runs a job into a folder; returns the lines of its log with these words, and a savepoint of it."""

    def run(words: str, **options: Any) -> tuple[list[str], str]:
        caplog.clear()
        env = StreamEnvironment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=50)
        numbers = env.generate(lambda n: {"n": n}, records_per_second=100)
        numbers.sink_to(FileSink(str(tmp_path / "out"), format="jsonl"), name="sink")
        with LocalCluster(debug=True) as cluster:
            job = cluster.submit(env, **options)
            job.ready().result(timeout=5)
            savepoint = job.stop_with_savepoint().result(timeout=5)
            job.wait()
        return [text for each in caplog.records if words in (text := each.getMessage())], savepoint

    return run


def test_a_job_that_begins_beside_the_files_of_another_is_warned(tmp_path: Path, warned: Warned) -> None:
    said = "earlier jobs"
    texts, savepoint = warned(said)
    assert texts == []
    (text,), _ = warned(said)
    assert text.startswith(
        f"sink 'sink': {tmp_path / 'out'} holds 1 file of earlier jobs, and this job starts from the"
    )
    assert warned(said, from_savepoint=savepoint)[0] == []


def test_a_job_that_repeats_what_its_folder_holds_already_is_warned(tmp_path: Path, warned: Warned) -> None:
    """The second job to go on from one savepoint; its folder holds what the first made of the same records."""
    said = "goes on from"
    _, savepoint = warned(said)
    assert warned(said, from_savepoint=savepoint)[0] == []
    (text,), _ = warned(said, from_savepoint=savepoint)
    assert text.startswith(f"sink 'sink': {tmp_path / 'out'} holds 1 file of other jobs, or of job job-")


@pytest.mark.parametrize("result", [None, {}])
def test_a_reduce_that_returns_nothing_fails_the_job_with_its_line(result: Any) -> None:
    env = StreamEnvironment()
    records = env.from_collection([{"k": 1, "n": n} for n in range(3)])
    records.key_by("k").reduce(lambda held, record: result).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        if result is None:
            with pytest.raises(JobFailed, match=rf"the function of reduce \({__file__}:\d+\) returned None"):
                job.wait()
        else:
            job.wait()


def test_a_reduce_of_records_that_may_be_none_may_give_none(env: StreamEnvironment) -> None:
    env.from_collection([1, None, 2]).key_by(lambda record: 0).reduce(lambda held, record: record).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("out") == [1, None, 2]


class AddsNothing(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, accumulator: list[int], record: Any) -> Any:
        accumulator[0] += record["n"]

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]


def test_an_aggregate_function_that_returns_nothing_is_named_with_its_line(env: StreamEnvironment) -> None:
    timed = env.from_collection([{"k": 1, "n": 1}]).assign_timestamps("n", monotonous())
    timed.key_by("k").window(tumbling(seconds=1)).aggregate(AddsNothing()).collect(name="out")
    with LocalCluster(debug=True) as cluster, pytest.raises(JobFailed, match=r"AddsNothing\.add \(.*\) returned None"):
        cluster.submit(env).wait()


def test_a_value_that_is_none_says_where_it_may_come_from(env: StreamEnvironment) -> None:
    class Counts(KeyedOperator):
        n = ValueState(int)

        def process(self, record: Any, out: Collector) -> None:
            self.n.update(self.n.value() + 1)

    env.from_collection([1]).key_by(lambda record: 0).process(Counts).collect(name="out")
    with LocalCluster(debug=True) as cluster, pytest.raises(JobFailed, match=r"ValueState without default= for a new"):
        cluster.submit(env).wait()
