"""User code that raises: restarts as configured, a story that tells where and why, and an exact result afterwards."""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, JobFailed, JobStatus, LocalCluster, Source, fixed_delay, no_restart
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.source import END
from understudy.messages import FailureCause, TaskManagerChanged
from understudy.runtime.api.environment import StreamEnvironment
from understudy.state import key_group, operator_index_of

from .jobs import (
    KEYS,
    WAIT_S,
    Counting,
    Gate,
    Mark,
    Passing,
    Witness,
    all_names,
    counted,
    counting,
    counts_of,
    environment,
    read_output,
)

COUNT, RATE = 2000, 4000


def fail(text: str) -> None:
    raise ValueError(text)  # the user's own line


class Numbers(Source):
    """0 .. 999, and whatever a test puts in the way."""

    def __init__(self) -> None:
        self.next = 0

    def poll(self) -> Any:
        if self.next >= 1000:
            return END
        self.next += 100
        return list(range(self.next - 100, self.next))

    def offset(self) -> int:
        return self.next

    def seek(self, offset: int) -> None:
        self.next = offset


def run_to_failure(cluster: LocalCluster, env: StreamEnvironment, name: str = "doomed") -> JobFailed:
    job = cluster.submit(env, name=name)
    with pytest.raises(JobFailed) as caught:
        job.wait(timeout=WAIT_S)
    assert job.status is JobStatus.FAILED
    return caught.value


def causes(failure: FailureCause) -> Iterator[FailureCause]:
    step: FailureCause | None = failure
    while step is not None:
        yield step
        step = step.cause


def test_the_error_of_a_record_tells_job_operator_subtask_attempt_position_and_line(
    shared_cluster: LocalCluster,
) -> None:
    class Picky(Counting):
        def process(self, record: int, out: Collector) -> None:
            if record == 1003:
                fail(f"cannot stand {record}")
            super().process(record, out)

    env = environment(restart_strategy=fixed_delay(attempts=2, delay_ms=0), checkpoint_interval_ms=None)
    counting(env, COUNT, None, Picky).collect(name="all")
    error = run_to_failure(shared_cluster, env)
    text = str(error)
    assert "job 'doomed'" in text
    assert "failed after 2 restarts" in text
    assert "operator 'count'" in text
    assert "attempt 2" in text
    assert "ValueError: cannot stand 1003" in text
    assert "raise ValueError(text)  # the user's own line" in text
    assert 'fail(f"cannot stand {record}")' in text
    decisive = error.details.failures[-1]
    assert 1003 % KEYS in _keys_of(decisive.subtask_index)
    mine = [index for index in range(1003) if index % KEYS in _keys_of(decisive.subtask_index)]
    assert decisive.record_position >= len([index for index in mine if index % 2 == 1003 % 2]), (
        "those of its own source"
    )
    assert len(error.details.failures) == 3


def _keys_of(subtask: int) -> set[int]:
    """The keys that the keyed subtask holds."""
    return {key for key in range(KEYS) if operator_index_of(key_group(key, 128), 128, 2) == subtask}


@pytest.mark.parametrize("where", ["open", "on_end", "on_checkpoint", "on_checkpoint_complete", "close"])
def test_an_error_in_a_hook_of_an_operator_names_the_operator_and_shows_the_line(
    shared_cluster: LocalCluster, where: str
) -> None:
    def hook(self: Any, *_args: Any) -> None:
        fail(f"no {where} today")

    hooked = type("Hooked", (Counting,), {where: hook})
    env = environment(restart_strategy=no_restart())
    counting(env, 500, None, hooked).collect(name="all")
    text = str(run_to_failure(shared_cluster, env))
    assert f"ValueError: no {where} today" in text
    assert "raise ValueError(text)  # the user's own line" in text
    assert "operator 'count'" in text


@pytest.mark.parametrize("where", ["open", "poll", "offset"])
def test_an_error_in_a_source_names_the_source_and_shows_the_line(shared_cluster: LocalCluster, where: str) -> None:
    def hook(self: Any) -> None:
        fail(f"no {where} today")

    hooked = type("Hooked", (Numbers,), {where: hook})
    env = environment(restart_strategy=no_restart())
    env.from_source(hooked, name="spring", parallelism=1).collect(name="all")
    text = str(run_to_failure(shared_cluster, env))
    assert f"ValueError: no {where} today" in text
    assert "raise ValueError(text)  # the user's own line" in text
    assert "operator 'spring'" in text


@pytest.mark.parametrize("where", ["write", "pre_commit", "commit"])
def test_an_error_in_a_sink_names_the_sink_and_shows_the_line(
    shared_cluster: LocalCluster, tmp_path: Path, where: str
) -> None:
    def hook(self: Any, *_args: Any) -> None:
        fail(f"no {where} today")

    hooked = type("Hooked", (FileSink,), {where: hook})
    env = environment(restart_strategy=no_restart())
    counting(env, 500, None).sink_to(hooked(str(tmp_path / "out"), "jsonl"), name="drain")
    text = str(run_to_failure(shared_cluster, env))
    assert f"ValueError: no {where} today" in text
    assert "raise ValueError(text)  # the user's own line" in text
    assert "operator 'drain'" in text


def test_an_error_in_a_map_function_tells_the_records_position(shared_cluster: LocalCluster) -> None:
    env = environment(restart_strategy=no_restart())
    (
        env.generate(lambda index: index, 3000, parallelism=1, name="numbers")
        .map(lambda index: 1 // (index - 1234), name="divide", parallelism=1)
        .collect(name="all")
    )
    error = run_to_failure(shared_cluster, env)
    assert "ZeroDivisionError" in str(error)
    assert error.details.failures[-1].operator_name == "divide"
    assert error.details.failures[-1].record_position == 1234


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_what_is_no_exception_of_the_ordinary_kind_fails_the_task_too(
    shared_cluster: LocalCluster, raised: BaseException
) -> None:
    class Rude(Passing):
        def process_batch(self, batch: Any, out: Collector) -> None:
            raise raised

    env = environment(restart_strategy=fixed_delay(attempts=1, delay_ms=0))
    env.generate(lambda index: index, 100).process(Rude, name="rude").collect(name="all")
    job = shared_cluster.submit(env, name="doomed")
    witness = Witness(job)
    with pytest.raises(JobFailed, match=type(raised).__name__) as caught:
        job.wait(timeout=WAIT_S)
    assert "operator 'rude'" in str(caught.value)
    assert caught.value.details.restarts == 1
    assert not [event for event in witness.of(TaskManagerChanged) if "failed" in event.reason], "only the task fails"


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I have no words")


def circle() -> Exception:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def tower() -> Exception:
    error = ValueError("ground")
    for floor in range(200):
        above = ValueError(f"floor {floor}")
        above.__cause__, error = error, above
    return error


@pytest.mark.parametrize(
    "make",
    [Mute, circle, tower, lambda: ValueError("x" * 40_000_000), lambda: ValueError("\ud800 is no text")],
    ids=["mute", "circle", "tower", "huge", "surrogate"],
)
def test_an_error_that_is_hard_to_tell_is_told_as_well_as_possible(
    shared_cluster: LocalCluster, make: Callable[[], Exception]
) -> None:
    class Rude(Passing):
        def process_batch(self, batch: Any, out: Collector) -> None:
            raise make()  # the user's own line

    env = environment(restart_strategy=fixed_delay(attempts=1, delay_ms=0))
    env.generate(lambda index: index, 100).process(Rude, name="rude").collect(name="all")
    text = str(run_to_failure(shared_cluster, env))
    assert "raise make()  # the user's own line" in text
    assert "operator 'rude'" in text
    assert type(make()).__name__ in text
    assert len(text) < 1_000_000


def test_code_that_ends_its_process_costs_a_restart_and_not_the_job(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    mark = Mark(tmp_path, "ended")

    class Ending(Counting):
        def process(self, record: int, out: Collector) -> None:
            if record == 1000 and mark.take():
                os._exit(7)
            super().process(record, out)

    env = environment()
    counting(env, COUNT, RATE, Ending).collect(name="all")
    job = shared_cluster.submit(env)
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert counts_of(job.results("all")) == counted(COUNT)
    assert "exited with code 7" in job.details().failures[0].error_message


def test_a_task_whose_thread_ends_under_it_has_failed(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    """As when another thread throws an exception into it, which strikes between two calls of user code."""
    mark = Mark(tmp_path, "thrown")

    class Thrown(Counting):
        def process(self, record: int, out: Collector) -> None:
            if record == 1000 and mark.take():
                threading.Thread(target=throw_into, args=(threading.get_ident(),)).start()
            super().process(record, out)

    env, gate = environment(), Gate(tmp_path)
    counting(env, COUNT, RATE, Thrown, gate=gate).collect(name="all")
    job = shared_cluster.submit(env)
    Witness(job).status(JobStatus.RESTARTING)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert counts_of(job.results("all")) == counted(COUNT)


def test_a_job_that_is_stopped_while_it_is_down_says_of_what_it_was_down(
    shared_cluster: LocalCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mark = Mark(tmp_path, "raised")

    class Stumbling(Counting):
        def process(self, record: int, out: Collector) -> None:
            if record == 1000 and mark.take():
                fail("never overcome")
            super().process(record, out)

    env = environment(restart_strategy=fixed_delay(attempts=3, delay_ms=3_000))
    counting(env, COUNT, RATE, Stumbling).collect(name="all")
    job = shared_cluster.submit(env)
    Witness(job).status(JobStatus.RESTARTING)
    job.stop().result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    (line,) = (each for each in caplog.messages if "is stopped while it is down" in each)
    assert "because of ValueError: never overcome (in " in line
    assert line.endswith(": what they have behind that is not read")


def throw_into(thread: int) -> None:
    time.sleep(0.02)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def test_an_error_that_does_not_come_again_leaves_an_exact_result(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    mark = Mark(tmp_path, "raised")

    class Stumbling(Counting):
        def process(self, record: int, out: Collector) -> None:
            super().process(record, out)
            if record == 1000 and mark.take():
                fail("only once")

    env = environment()
    counting(env, COUNT, RATE, Stumbling).collect(name="all")
    job = shared_cluster.submit(env)
    details = job.wait(timeout=WAIT_S)
    assert details.restarts == 1
    assert [cause.error_message for cause in causes(details.failures[0])][-1] == "only once"
    assert counts_of(job.results("all")) == counted(COUNT)


def test_a_commit_that_fails_once_is_made_good_by_the_restart(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    mark = Mark(tmp_path, "raised")
    out = tmp_path / "out"

    class Stumbling(FileSink):
        def commit(self, transaction: Any) -> None:
            if transaction["final"] and mark.take():
                fail("only once")
            super().commit(transaction)

    env = environment()
    counting(env, COUNT, RATE).sink_to(Stumbling(str(out), "jsonl"))
    assert shared_cluster.submit(env).wait(timeout=WAIT_S).restarts == 1
    assert read_output(out, "jsonl") == counted(COUNT)
    assert all_names(out) == set()


def test_the_root_cause_is_told_though_its_neighbours_fail_first(shared_cluster: LocalCluster) -> None:
    """The failing task closes its channels before it has closed its operators, so others see a broken channel first."""

    class SlowToClose(Counting):
        def process(self, record: int, out: Collector) -> None:
            if record == 500:
                fail("the root of it")

        def close(self) -> None:
            time.sleep(0.3)

    env = environment(restart_strategy=no_restart())
    counting(env, 1000, None, SlowToClose).collect(name="all")
    for _ in range(3):
        assert "ValueError: the root of it" in str(run_to_failure(shared_cluster, env))


def test_without_restarts_the_first_error_ends_the_job_and_frees_its_place(shared_cluster: LocalCluster) -> None:
    env = environment(restart_strategy=no_restart())
    env.generate(lambda index: fail("never"), 10).collect(name="all")
    error = run_to_failure(shared_cluster, env)
    assert error.details.restarts == 0
    env = environment()
    counting(env, 100, None).collect(name="all")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    assert counts_of(job.results("all")) == counted(100)


def test_jobs_can_be_awaited_and_their_failure_is_raised_there() -> None:
    async def play() -> None:
        async with LocalCluster(task_managers=2) as cluster:
            env = environment()
            counting(env, 100, None).collect(name="all")
            job = await cluster.submit_async(env)
            details = await job
            assert details.status is JobStatus.FINISHED
            assert counts_of(job.results("all")) == counted(100)
            env = environment(restart_strategy=no_restart())
            env.generate(lambda index: fail("awaited"), 10).collect(name="all")
            with pytest.raises(JobFailed, match="ValueError: awaited"):
                await (await cluster.submit_async(env))

    asyncio.run(play())
