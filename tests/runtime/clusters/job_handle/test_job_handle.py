"""JobHandle against a scripted JobManager: what it asks, and what it makes of answers and events."""

from __future__ import annotations

import _thread
import asyncio
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest

from understudy.messages import (
    CancelJob,
    CancelWithSavepoint,
    CheckpointHistory,
    FailureCause,
    FailureKind,
    JobDetails,
    JobStatus,
    JobStatusChanged,
    StopJob,
    StopWithSavepoint,
    TriggerSavepoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.clusters.job_dialogue import _OutletOfJob
from understudy.runtime.clusters.job_errors import (
    JobCanceled,
    JobFailed,
    JobLost,
    SavepointFailed,
)
from understudy.runtime.clusters.job_handle import JobHandle
from understudy.runtime.system.future import ActorFuture

from .clients import Client, Swallow, translated


def test_status_is_what_was_last_heard(job: JobHandle, client: Client) -> None:
    assert (job.job_id, job.name, job.status) == ("job-7", "worst-delay", JobStatus.CREATED)
    client.move(JobStatus.RESTARTING)
    assert job.status is JobStatus.RESTARTING
    assert repr(job) == "<job 'worst-delay' (job-7): restarting>"


def test_the_history_of_its_checkpoints_is_the_job_managers(job: JobHandle) -> None:
    assert job.checkpoint_history() == CheckpointHistory("job-7", 7, 5, 2, 4, ())


def test_wait_returns_the_details_of_a_finished_job(job: JobHandle, client: Client) -> None:
    threading.Timer(0.05, client.move, [JobStatus.FINISHED]).start()
    assert job.wait(timeout=10).completed_checkpoints == 5


def test_wait_knows_a_job_that_had_ended_before_anybody_listened(job: JobHandle, client: Client) -> None:
    client.status = JobStatus.FINISHED
    assert job.wait(timeout=10).status is JobStatus.FINISHED
    assert job.status is JobStatus.FINISHED


def test_an_interrupted_wait_says_that_the_job_goes_on(job: JobHandle) -> None:
    threading.Timer(0.05, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        job.wait(timeout=10)
    assert caught.value.__notes__ == ["job 'worst-delay' goes on, as long as its cluster runs: job.cancel() ends it"]


def test_an_interrupt_that_closes_the_cluster_too_does_not_say_that_the_job_goes_on(
    job: JobHandle, caplog: pytest.LogCaptureFixture
) -> None:
    """Its note would be the last line that the user sees, below the one that says that the job is canceled."""
    threading.Timer(0.05, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt) as caught:  # noqa: PT012 - as `with` does
        try:
            job.wait(timeout=10)
        finally:
            job.before_close(0.0)
    assert caught.value.__notes__ == []
    assert "KeyboardInterrupt closed its cluster, and is canceled" in caplog.text


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_job_that_can_be_resumed_says_how_when_its_cluster_closes(
    error: type[BaseException] | None, job: JobHandle, caplog: pytest.LogCaptureFixture
) -> None:
    job._is_resumed = True
    with suppress(KeyboardInterrupt):
        try:
            if error is not None:
                raise error
        finally:
            job.before_close(0.0)
    said = "submitted again with resume='latest', it goes on from its newest checkpoint"
    assert f"and is canceled: {'wait for its end with job.wait(); ' if error is None else ''}{said}" in caplog.text


def test_an_await_in_a_notebook_can_be_interrupted(job: JobHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel cancels the cell's task from a signal handler, and wakes no event loop by that."""
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    too_late: list[bool] = []

    async def cell() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon(task.cancel) and None)
        interrupt = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        guard = loop.call_later(20, too_late.append, True)
        interrupt.start()
        try:
            await job
        finally:
            guard.cancel()
            interrupt.join()
            signal.signal(signal.SIGINT, before)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cell())
    assert not too_late


def test_wait_gives_up_after_its_timeout(job: JobHandle) -> None:
    with pytest.raises(TimeoutError, match=r"job 'worst-delay' is running after 0\.01 seconds; 2 restarts so far$"):
        job.wait(timeout=0.01)


def test_the_timeout_of_a_job_that_is_down_says_why(job: JobHandle, client: Client) -> None:
    raised = FailureCause(
        "UserCodeError",
        "raised",
        operator_name="worst delay",
        cause=FailureCause("KeyError", "'x'"),
        kind=FailureKind.USER_CODE,
    )
    client.status, client.failures = JobStatus.RESTARTING, (FailureCause("OSError", "older"), raised)
    with pytest.raises(TimeoutError) as caught:
        job.wait(timeout=0.01)
    assert str(caught.value) == (
        "job 'worst-delay' is restarting after 0.01 seconds; 2 restarts so far; "
        "last failure: KeyError: 'x' (in operator 'worst delay')"
    )


def test_the_timeout_says_what_was_heard_when_nobody_answers(job: JobHandle, client: Client) -> None:
    failure = FailureCause("KeyError", "'x'")
    client.callback(JobStatusChanged("job-7", JobStatus.RESTARTING, JobStatus.RUNNING, 0, failure))
    client.is_silent = True
    with pytest.raises(TimeoutError, match=r"restarting after .* seconds; last failure: KeyError: 'x'"):
        job.wait(timeout=0.01)


def test_a_failed_job_tells_the_chain_of_causes(job: JobHandle, client: Client) -> None:
    raised = FailureCause("ValueError", "bad row", traceback="Traceback: line 3\n")
    client.failures = (
        FailureCause("OSError", "an older failure"),
        FailureCause(
            "UserCodeError",
            "operator 'worst delay' raised",
            vertex_name="worst delay -> out",
            operator_name="worst delay",
            subtask_index=1,
            attempt_number=3,
            record_position=4711,
            cause=raised,
            kind=FailureKind.USER_CODE,
        ),
    )
    client.move(JobStatus.FAILED)
    with pytest.raises(JobFailed) as caught:
        job.wait(timeout=10)
    story = str(caught.value)
    assert "job 'worst-delay' (job-7) failed after 2 restarts" in story
    assert "operator 'worst delay', subtask 1, attempt 3, record 4711" in story
    assert "caused by ValueError: bad row" in story
    assert "Traceback: line 3" in story
    assert "older" not in story
    assert caught.value.details.failures == client.failures


def test_a_job_that_failed_again_and_again_says_so_first(job: JobHandle, client: Client) -> None:
    typo = FailureCause(
        "UserCodeError",
        "raised",
        operator_name="worst delay",
        cause=FailureCause("KeyError", "'x'"),
        kind=FailureKind.USER_CODE,
    )
    client.failures = (
        FailureCause(
            "RepeatedFailure", "failed 5 times in operator 'worst delay': it", cause=typo, kind=FailureKind.REPEATED
        ),
    )
    client.move(JobStatus.FAILED)
    with pytest.raises(JobFailed) as caught:
        job.wait(timeout=10)
    first, second, *story = str(caught.value).splitlines()
    assert first == "job 'worst-delay' (job-7) failed 5 times in operator 'worst delay': it"
    assert second == "failed after 2 restarts"
    assert story == ["UserCodeError: raised (operator 'worst delay')", "caused by KeyError: 'x'"]


def test_a_canceled_job(job: JobHandle, client: Client) -> None:
    client.move(JobStatus.CANCELED)
    with pytest.raises(JobCanceled, match=r"job 'worst-delay' \(job-7\) was canceled"):
        job.wait(timeout=10)


def test_a_lost_cluster_ends_the_wait(job: JobHandle, client: Client) -> None:
    client.move(JobStatus.RUNNING)
    job.lost("the JobManager's process was killed")
    with pytest.raises(JobLost, match="was running when its cluster went away: the JobManager's process was killed"):
        job.wait(timeout=10)


def test_what_another_leader_goes_on_with_is_not_said_to_be_canceled(
    job: JobHandle, caplog: pytest.LogCaptureFixture
) -> None:
    """A deposed JobManager's process closes its cluster: nothing is canceled, and no checkpoint deleted."""
    job.lost("this process leads no more, and whoever leads now goes on with the job")
    job.lost("the cluster was closed")
    job.before_close(0.0)
    assert caplog.records == []
    with pytest.raises(JobLost, match="whoever leads now goes on with the job"):
        job.wait(timeout=0)


def test_a_job_that_still_runs_when_its_cluster_closes_is_said_to_be_canceled(
    job: JobHandle, caplog: pytest.LogCaptureFixture
) -> None:
    job.before_close(0.0)
    (said,) = caplog.records
    assert "is canceled" in said.getMessage()


def test_a_cluster_that_closes_waits_for_the_last_savepoint_that_is_under_way(
    job: JobHandle, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever has forgotten to await `job.stop_with_savepoint()` has stopped the job with a savepoint all the same."""
    savepoint: ActorFuture[Any] = ActorFuture()
    client.savepoint = savepoint
    asked = job.stop_with_savepoint()

    def stop() -> None:
        savepoint.try_set(TriggerSavepointSuccess("job-7", "/savepoints/1"))
        client.move(JobStatus.FINISHED)

    threading.Timer(0.05, stop).start()
    job.before_close(30.0)
    assert (asked.result(timeout=0), job.status, caplog.records) == ("/savepoints/1", JobStatus.FINISHED, [])


def test_one_whose_last_savepoint_does_not_come_is_told_what_to_await(
    job: JobHandle, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.savepoint = ActorFuture[Any]()
    job.stop_with_savepoint()
    job.before_close(0.01)
    (said,) = caplog.records
    assert "is canceled: its savepoint was asked for and is not there: write `await job.stop_with" in said.getMessage()


def test_a_job_can_be_awaited_by_several(job: JobHandle, client: Client) -> None:
    async def scenario() -> list[JobDetails]:
        waiting = [asyncio.ensure_future(job.wait_async()) for _ in range(2)]
        impatient = asyncio.ensure_future(job.wait_async())
        await asyncio.sleep(0)
        impatient.cancel()
        client.move(JobStatus.FINISHED)
        return [await job, *await asyncio.gather(*waiting)]

    assert [details.status for details in asyncio.run(scenario())] == [JobStatus.FINISHED] * 3


def test_a_handle_begins_with_the_status_that_the_job_has_by_then(client: Client, env: StreamEnvironment) -> None:
    client.at_first = JobStatus.RUNNING
    env.from_collection([1]).sink_to(Swallow, name="out")
    job = JobHandle(client, translated(env, job_id="job-7"))
    assert job.status is JobStatus.RUNNING
    job.ready().result(timeout=0)


def test_what_was_said_at_first_does_not_undo_an_event_that_came_before_it(env: StreamEnvironment) -> None:
    class Late(Client):
        def listen(self, callback: Callable[[Any], None]) -> JobStatus:
            super().listen(callback)
            self.move(JobStatus.RUNNING)
            return JobStatus.CREATED

    env.from_collection([1]).sink_to(Swallow, name="out")
    assert JobHandle(Late(), translated(env, job_id="job-7")).status is JobStatus.RUNNING


class TestReady:
    def test_a_job_is_ready_when_it_runs(self, job: JobHandle, client: Client) -> None:
        ready = job.ready()
        assert not ready.done()
        client.move(JobStatus.RESTARTING)
        assert not ready.done()
        client.move(JobStatus.RUNNING)
        ready.result(timeout=0)
        job.ready().result(timeout=0)

    def test_a_job_that_restarts_is_not_ready_until_it_runs_again(self, job: JobHandle, client: Client) -> None:
        client.move(JobStatus.RUNNING)
        client.move(JobStatus.RESTARTING)
        again = job.ready()
        assert not again.done()
        client.move(JobStatus.RUNNING)
        again.result(timeout=0)

    def test_a_finished_job_has_run(self, job: JobHandle, client: Client) -> None:
        ready = job.ready()
        client.move(JobStatus.FINISHED)
        job.lost("the cluster was closed")
        for future in (ready, job.ready()):
            future.result(timeout=0)

    @pytest.mark.parametrize(
        ("status", "error"),
        [(JobStatus.FAILED, JobFailed), (JobStatus.CANCELED, JobCanceled)],
        ids=["failed", "canceled"],
    )
    def test_a_job_that_ends_otherwise_says_how(
        self, job: JobHandle, client: Client, status: JobStatus, error: type[Exception]
    ) -> None:
        before = job.ready()
        client.failures = (FailureCause("ValueError", "bad row"),)
        client.move(status)
        for future in (before, job.ready()):
            with pytest.raises(error, match="job 'worst-delay'"):
                future.result(timeout=0)

    def test_a_lost_job_will_not_run(self, job: JobHandle, client: Client) -> None:
        before = job.ready()
        client.move(JobStatus.RESTARTING)
        job.lost("the JobManager's process was killed")
        for future in (before, job.ready()):
            with pytest.raises(JobLost, match="was restarting when its cluster went away"):
                future.result(timeout=0)

    def test_it_can_be_awaited(self, job: JobHandle, client: Client) -> None:
        async def scenario() -> None:
            waiting = asyncio.ensure_future(_awaited(job.ready()))
            await asyncio.sleep(0)
            client.move(JobStatus.RUNNING)
            await waiting
            await job.ready()

        asyncio.run(scenario())

    def test_a_wait_for_it_that_is_over_says_why(self, job: JobHandle, client: Client) -> None:
        client.status, client.failures = JobStatus.RESTARTING, (FailureCause("OSError", "no such column"),)
        with pytest.raises(TimeoutError) as caught:
            job.ready().result(timeout=0.01)
        assert str(caught.value) == (
            "the start of job 'worst-delay' is not done after 0.01 seconds: it is restarting; last failure: OSError: "
            "no such column"
        )

    def test_a_wait_for_one_without_a_failure_says_where_to_look(self, job: JobHandle, client: Client) -> None:
        client.status = JobStatus.CREATED
        with pytest.raises(
            TimeoutError, match=r"seconds: it is created, and no task has failed\. If a TaskManager does"
        ):
            job.ready().result(timeout=0.01)


async def _awaited(future: ActorFuture[None]) -> None:
    await future


def test_orders_are_futures(job: JobHandle, client: Client) -> None:
    job.cancel().result(timeout=1)
    job.stop().result(timeout=1)
    assert client.asked == [CancelJob("job-7"), StopJob("job-7")]


def test_a_savepoint_is_its_path_or_a_failure(job: JobHandle, client: Client) -> None:
    assert job.trigger_savepoint().result(timeout=1) == "/savepoints/1"
    client.savepoint = TriggerSavepointFailure("job-7", "expired")
    for ask in (job.trigger_savepoint, job.stop_with_savepoint, job.cancel_with_savepoint):
        with pytest.raises(SavepointFailed, match="the savepoint of job job-7 failed: expired"):
            ask().result(timeout=1)


def test_savepoints_go_where_they_are_wanted_and_what_follows_is_told(job: JobHandle, client: Client) -> None:
    job.trigger_savepoint("daily").result(timeout=1)
    job.stop_with_savepoint("daily", drain=True).result(timeout=1)
    job.stop_with_savepoint().result(timeout=1)
    job.cancel_with_savepoint("daily").result(timeout=1)
    assert client.asked == [
        TriggerSavepoint("job-7", "daily"),
        StopWithSavepoint("job-7", "daily", drain=True),
        StopWithSavepoint("job-7"),
        CancelWithSavepoint("job-7", "daily"),
    ]


def test_a_listener_that_raises_does_not_silence_the_others(
    job: JobHandle, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    job.on_event(lambda event: 1 / 0)
    job.on_event(heard.append)
    client.move(JobStatus.FINISHED)
    assert [event.status for event in heard] == [JobStatus.FINISHED]
    assert "a listener of job job-7 failed on JobStatusChanged" in caplog.text


def test_an_outlet_whose_job_is_over_does_not_warn_of_the_wait_that_it_does_itself(
    job: JobHandle, client: Client
) -> None:
    client.move(JobStatus.FINISHED)

    async def scenario() -> object:
        return _OutletOfJob(job).ended()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(scenario()) == job.details()
