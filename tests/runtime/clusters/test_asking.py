"""Questions to running operators, the job's status as its user sees it, and its figures."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from understudy import (
    ActorDead,
    AskFailed,
    AskTimeout,
    InvalidSetting,
    InvalidTimeout,
    JobCanceled,
    JobHandle,
    JobStatus,
    KeyWanted,
    LocalCluster,
    NotRunning,
    RemoteCluster,
    fixed_delay,
    message,
)
from understudy.messages import AskOperator, CheckpointCompleted
from understudy.runtime.clusters.job_errors import UnknownOperator
from understudy.state import InvalidKey

from .jobs import KEYS, WAIT_S, Counting, Gate, Mark, Witness, counting, counts_of, environment, eventually, kill

T = TypeVar("T")
RATE = 3000
StartCluster = Callable[..., LocalCluster]


@message
class Seen:
    """A question of the user's own."""

    factor: int


class Answering(Counting):
    def on_receive(self, message: Any) -> Any:
        if isinstance(message, Seen):
            return self.seen.value() * message.factor
        return super().on_receive(message)


@pytest.fixture
def job(shared_cluster: LocalCluster) -> Iterator[JobHandle]:
    """A counting job in the middle of its work, whose result must come out exact whatever it is asked."""
    env = environment()
    counting(env, None, RATE, Answering).collect(name="all")
    job = shared_cluster.submit(env)
    Witness(job).checkpoints(1)
    yield job
    assert _stopped(job) == 0


def _stopped(job: JobHandle) -> int:
    """Stop the endless job and check that it counted every index it was given once; returns how often it restarted."""
    job.stop().result(timeout=WAIT_S)
    restarts = job.wait(timeout=WAIT_S).restarts
    found = counts_of(job.results("all"))
    last = {key: max(number for each, number, _ in found if each == key) for key in range(KEYS)}
    assert found == Counter(
        (key, number, (number - 1) * KEYS + key) for key in range(KEYS) for number in range(1, last[key] + 1)
    )
    return restarts


def ask(job: JobHandle, message: Any, **options: Any) -> Any:
    return job.ask("count", message=message, **options).result(timeout=2 * WAIT_S)


def test_a_job_that_is_ready_can_be_asked_and_has_savepoints(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, None, RATE).collect(name="all")
    job = shared_cluster.submit(env)
    early = job.ask("count", message="seen", key=3, wait_ms=1000 * WAIT_S)
    job.ready().result(timeout=WAIT_S)
    assert job.details().status is JobStatus.RUNNING
    assert ask(job, "seen", key=3) >= 0
    assert early.result(timeout=WAIT_S) >= 0
    assert job.trigger_savepoint().result(timeout=WAIT_S).startswith("jobmanager://")
    assert _stopped(job) == 0
    job.ready().result(timeout=0)


def test_an_event_loop_goes_on_while_a_job_is_watched() -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    async def scenario() -> None:
        async with LocalCluster(task_managers=2) as cluster:
            heart = asyncio.ensure_future(beat())
            env = environment()
            counting(env, None, RATE).collect(name="all")
            job = await _with_beats(cluster.submit_async(env, "counted"))
            await job.ready()
            details, metrics = await _with_beats(job.details_async()), await _with_beats(job.metrics_async())
            assert details.status is JobStatus.RUNNING
            assert len(metrics.vertices) == 2
            assert await job.ask("count", message="seen", key=3, wait_ms=5_000) >= 0
            assert (await _with_beats(job.checkpoint_history_async())).job_id == job.job_id
            async with RemoteCluster(cluster.address, cluster._curve) as client:
                (summary,) = await _with_beats(client.jobs_async())
                assert (await _with_beats(client.find_async("counted"))).job_id == summary.job_id == job.job_id
                assert (await _with_beats(client.details_async(job.job_id))).name == "counted"
                assert (await _with_beats(client.checkpoints_async(job.job_id))).job_id == job.job_id
                assert await client.stop_with_savepoint(job.job_id)
            await job
            assert await _with_beats(job.results_async("all"))
            heart.cancel()

    async def _with_beats(waited_for: Awaitable[T]) -> T:
        before = beats
        found = await waited_for
        assert beats > before, f"nothing else came to run during {waited_for}"
        return found

    asyncio.run(scenario())


def test_each_key_answers_from_the_subtask_that_holds_it(job: JobHandle) -> None:
    eventually(lambda: all(ask(job, "seen", key=key) > 0 for key in range(KEYS)))
    assert ask(job, Seen(0), key=3) == 0
    assert ask(job, "seen", key=KEYS) == 0, "a key that never came has the default"


def test_each_subtask_answers_for_its_own_keys(shared_cluster: LocalCluster) -> None:
    class Listing(Counting):
        def on_receive(self, message: Any) -> Any:
            return self.context.subtask_index, sorted(self.keys())

    env = environment()
    counting(env, None, RATE, Listing).collect(name="all")
    job = shared_cluster.submit(env)
    Witness(job).checkpoints(1)
    answers = [each.result(timeout=WAIT_S) for each in job.ask_each("count", message="keys", timeout=WAIT_S)]
    assert [subtask for subtask, _ in answers] == list(range(len(answers)))
    assert len(answers) == 2
    assert all(keys for _, keys in answers)
    assert sorted(key for _, keys in answers for key in keys) == list(range(KEYS))
    with pytest.raises(UnknownOperator, match="has no operator 'counts'"):
        job.ask_each("counts", message="keys")
    job.cancel().result(timeout=WAIT_S)


def test_a_question_that_changes_state_is_refused_and_harms_nothing(job: JobHandle) -> None:
    with pytest.raises(AskFailed, match="ReadOnlyState: state 'seen' is read-only"):
        ask(job, "change", key=3)


def test_a_question_without_a_key_neither_reads_nor_changes_the_state_of_some_key(job: JobHandle) -> None:
    with pytest.raises(KeyWanted) as raised:
        ask(job, "seen")
    assert str(raised.value) == (
        "operator 'count': keyed state 'seen' was used in `on_receive`, which is called without a key: ask with "
        "key=..., or go through all keys with `for key in self.keys():`"
    )
    with pytest.raises(AskFailed, match="ReadOnlyState"):
        ask(job, "change")


def test_a_handler_that_raises_fails_the_question_and_nothing_else(job: JobHandle) -> None:
    with pytest.raises(AskFailed, match=r"^operator 'count': ValueError: so there$"):
        ask(job, ["raise", "so there"], key=3)
    assert ask(job, "seen", key=3) > 0


def test_a_key_that_cannot_be_one_fails_the_question_and_nothing_else(job: JobHandle) -> None:
    """Also when whoever asks does not look at it first, as a JobHandle does."""
    question = AskOperator(job.job_id, "count", True, [1], None, "seen")
    with pytest.raises(InvalidKey, match=r"a list cannot be a key"):
        job._client.ask(question).result(timeout=WAIT_S)
    with pytest.raises(InvalidKey):
        job.ask("count", key=[1], message="seen")
    assert ask(job, "seen", key=3) > 0


def test_an_unknown_operator_is_refused_at_once_by_name(job: JobHandle) -> None:
    with pytest.raises(UnknownOperator, match=r"no operator 'cuont'; it has .*count.*; did you mean 'count'\?$"):
        job.ask("cuont", message="seen", key=3)


def test_figures_add_up_over_the_tasks(job: JobHandle) -> None:
    def counted_in() -> int:
        return sum(task.records_in for task in job.details().tasks if "count" in task.vertex_name)

    eventually(counted_in)
    eventually(lambda: {task.status for task in job.details().tasks} == {"running"}, "a heartbeat of each that says so")


def test_the_status_goes_from_created_over_running_to_finished(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, 100, None).collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    job.wait(timeout=WAIT_S)
    witness.status(JobStatus.FINISHED)
    assert witness.statuses() == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert [event.final for event in witness.of(CheckpointCompleted)][-1:] == [True]
    assert job.status is JobStatus.FINISHED


def test_a_listener_may_ask_its_job_and_wait_for_the_answer(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, None, 1000).collect(name="all")
    job = shared_cluster.submit(env)
    answers: list[Any] = []
    answered = threading.Event()

    def on_event(event: Any) -> None:
        if isinstance(event, CheckpointCompleted) and not answered.is_set():
            answers.append(job.details(timeout=5).status)
            answered.set()

    job.on_event(on_event)
    assert answered.wait(WAIT_S)
    assert answers == [JobStatus.RUNNING]
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


@pytest.mark.chaos
def test_while_the_job_restarts_a_question_fails_with_a_clear_error(start_cluster: StartCluster) -> None:
    env = environment(restart_strategy=fixed_delay(attempts=5, delay_ms=1000))
    counting(env, None, RATE).collect(name="all")
    job = start_cluster().submit(env)
    witness = Witness(job)
    witness.checkpoints(1)
    witness.kill(witness.pids(2)[0])
    witness.status(JobStatus.RESTARTING)
    for key in range(KEYS):
        with pytest.raises(NotRunning, match=r"operator .count.: not running: .*restarting"):
            ask(job, "seen", key=key)
    assert ask(job, "seen", key=3, wait_ms=1000 * WAIT_S) > 0
    witness.status(JobStatus.RUNNING, times=2)
    assert _stopped(job) == 1


@pytest.mark.chaos
def test_a_question_with_a_deadline_waits_for_a_task_that_restarts_or_fails_at_once_as_asked(
    start_cluster: StartCluster,
) -> None:
    env = environment(restart_strategy=fixed_delay(attempts=5, delay_ms=1000))
    counting(env, None, RATE).collect(name="all")
    job = start_cluster().submit(env)
    witness = Witness(job)
    witness.checkpoints(1)
    witness.kill(witness.pids(2)[0])
    witness.status(JobStatus.RESTARTING)
    waiting = job.ask("count", message="seen", key=3, timeout=10 * WAIT_S)
    with pytest.raises(NotRunning, match="restarting"):
        job.ask("count", message="seen", key=3, timeout=10 * WAIT_S, wait=False).result(timeout=WAIT_S)
    with pytest.raises(NotRunning, match=r"restarting.*waited for it for 0\.05 s"):
        job.ask("count", message="seen", key=3, timeout=0.05).result(timeout=WAIT_S)
    assert waiting.result(timeout=2 * WAIT_S) > 0
    witness.status(JobStatus.RUNNING, times=2)
    assert _stopped(job) == 1


def test_a_task_that_does_not_answer_by_the_deadline_fails_the_question(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)

    class Slow(Counting):
        def on_receive(self, message: Any) -> Any:
            eventually(lambda: gate.is_open)
            return "at last"

    env = environment()
    counting(env, None, 1000, Slow).collect(name="all")
    job = shared_cluster.submit(env)
    job.ready().result(timeout=WAIT_S)
    patient = job.ask("count", message="seen", key=3, timeout=10 * WAIT_S)
    for wait in (None, True, False):
        with pytest.raises(AskTimeout, match=r"'count'.*has not answered within 0\.05 s"):
            job.ask("count", message="seen", key=3, timeout=0.05, wait=wait).result(timeout=WAIT_S)
    gate.open()
    assert patient.result(timeout=2 * WAIT_S) == "at last"
    job.cancel()


def test_to_wait_without_a_deadline_is_refused(job: JobHandle) -> None:
    with pytest.raises(InvalidSetting, match="wants a deadline"):
        job.ask("count", message="seen", key=3, wait=True)
    with pytest.raises(InvalidTimeout):
        job.ask("count", message="seen", key=3, timeout="5")  # type: ignore[arg-type]
    assert ask(job, "seen", key=3, timeout=WAIT_S) >= 0


def test_when_the_job_manager_is_gone_a_deadline_is_not_waited_for(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    env = environment()
    counting(env, None, RATE).collect(name="all")
    job = cluster.submit(env)
    job.ready().result(timeout=WAIT_S)
    cluster.close()
    with pytest.raises(ActorDead, match="the cluster was closed, and its jobs with it"):
        job.ask("count", message="seen", key=3, timeout=1000 * WAIT_S).result(timeout=WAIT_S)


@pytest.mark.chaos
def test_a_question_that_waits_for_a_killed_task_manager_fails(start_cluster: StartCluster, tmp_path: Path) -> None:
    mark = Mark(tmp_path, "asked")

    class Slow(Counting):
        def on_receive(self, message: Any) -> Any:
            mark.take()
            threading.Event().wait(60)

    env = environment()
    counting(env, None, 1000, Slow).collect(name="all")
    cluster = start_cluster()
    job = cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(1)
    question = job.ask("count", message="seen", key=3)
    kill(mark.wait())
    with pytest.raises(NotRunning):
        question.result(timeout=WAIT_S)
    witness.status(JobStatus.RUNNING, times=2)
    job.cancel()


def test_a_job_that_has_ended_says_so_to_whoever_asks(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, 100, None).collect(name="all")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    with pytest.raises(NotRunning, match=r"operator .count.: not running: .*the job is finished"):
        ask(job, "seen", key=3)
    assert job.details().status is JobStatus.FINISHED
