"""JobHandle against a scripted JobManager: what it asks, and what it makes of answers and events."""

from __future__ import annotations

import asyncio
import math
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.operator import Operator
from understudy.messages import (
    AskOperator,
    CancelJob,
    CancelWithSavepoint,
    CheckpointHistory,
    CheckpointId,
    FailureCause,
    FailureKind,
    JobDetails,
    JobStatus,
    JobStatusChanged,
    OperatorAnswer,
    RequestCheckpointStatistics,
    RequestJobStatus,
    StopJob,
    StopWithSavepoint,
    TriggerSavepoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
    message,
    pack_plain,
)
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.errors import InvalidSetting
from understudy.runtime.api.translation import Translation, translate
from understudy.runtime.clusters.job_errors import (
    JobCanceled,
    JobFailed,
    JobLost,
    ResultsUnavailable,
    SavepointFailed,
    UnknownOperator,
)
from understudy.runtime.clusters.job_handle import JobHandle
from understudy.runtime.connectors import FileSink
from understudy.runtime.connectors.files.committed_files import fingerprint
from understudy.runtime.system.future import ActorFuture
from understudy.state import InvalidKey


@message
class WorstSoFar:
    airport: str


class Worst(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class Swallow(Operator):
    """A sink."""

    takes = "any"

    def process_batch(self, batch: Any, out: Collector) -> None: ...


def translated(env: StreamEnvironment, **settings: Any) -> Translation:
    return translate(env, default_parallelism=2, task_managers=2, work_dir="/work-dir", **settings)


class Client:
    """Answers at once; `move` tells the job's next status."""

    def __init__(self) -> None:
        self.at_first = JobStatus.CREATED
        self.status = JobStatus.RUNNING
        self.waits_ms: list[float] = []
        self.failures: tuple[FailureCause, ...] = ()
        self.asked: list[Any] = []
        self.is_silent = False
        self.savepoint: Any = TriggerSavepointSuccess("job-7", "/savepoints/1")
        self.callback: Callable[[Any], None]

    def listen(self, callback: Callable[[Any], None]) -> JobStatus:
        self.callback = callback
        return self.at_first

    def settle_output(self, timeout: float) -> None:
        self.asked.append("output")

    def promise(self) -> ActorFuture[None]:
        return ActorFuture()

    def ask(self, question: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
        self.asked.append(question)
        future: ActorFuture[Any] = ActorFuture()
        match question:
            case _ if self.is_silent:
                pass
            case RequestJobStatus():
                future.set(JobDetails("job-7", "worst-delay", self.status, 2, self.failures, 5, 5, "/c/5", ()))
            case TriggerSavepoint() | StopWithSavepoint() | CancelWithSavepoint():
                assert timeout_ms == math.inf, "a savepoint has as long as its checkpoint may take"
                future.set(self.savepoint)
            case RequestCheckpointStatistics(job_id):
                future.set(CheckpointHistory(job_id, 7, 5, 2, CheckpointId(4), ()))
            case _:
                future.set(None)
        return future

    def ask_operator(self, question: AskOperator, wait_ms: float, deadline_ms: float) -> ActorFuture[OperatorAnswer]:
        self.asked.append(question)
        self.waits_ms.append(wait_ms)
        future: ActorFuture[OperatorAnswer] = ActorFuture()
        future.set(OperatorAnswer(1301.0))
        return future

    def move(self, status: JobStatus) -> None:
        previous, self.status = self.status, status
        self.callback(JobStatusChanged("job-7", status, previous, 0))


@pytest.fixture
def env() -> StreamEnvironment:
    return StreamEnvironment()


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def job(client: Client, env: StreamEnvironment) -> JobHandle:
    stream = env.from_collection([1], name="flights").key_by(0).process(Worst, name="worst delay")
    stream.sink_to(Swallow, name="out")
    return JobHandle(client, translated(env, job_id="job-7", name="worst-delay"))


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

    def test_a_wait_for_it_has_a_limit(self, job: JobHandle) -> None:
        with pytest.raises(TimeoutError):
            job.ready().result(timeout=0.01)


async def _awaited(future: ActorFuture[None]) -> None:
    await future


def test_ask_sends_the_question_and_unwraps_the_answer(job: JobHandle, client: Client) -> None:
    assert job.ask("worst delay", key="JFK", message=WorstSoFar("JFK")).result(timeout=1) == 1301.0
    assert client.asked == [AskOperator("job-7", "worst delay", True, "JFK", WorstSoFar("JFK"), None)]


def test_ask_takes_plain_data_an_operator_id_and_no_key(job: JobHandle, client: Client) -> None:
    operator_id = job._graph.vertices[1].operators[0].operator_id
    job.ask(operator_id, message={"how": "many"}, key=0)
    job.ask(operator_id, message="all")
    assert [(one.has_key, one.question, one.plain_question) for one in client.asked] == [
        (True, None, {"how": "many"}),
        (False, None, "all"),
    ]


def test_ask_waits_for_the_operator_if_it_is_told_to(job: JobHandle, client: Client) -> None:
    job.ask("worst delay", message="all")
    job.ask("worst delay", message="all", wait_ms=2_500)
    assert client.waits_ms == [0, 2500]


@pytest.mark.parametrize("wait_ms", [-1, float("nan")])
def test_ask_refuses_a_time_that_is_none(job: JobHandle, client: Client, wait_ms: float) -> None:
    with pytest.raises(InvalidSetting, match=f"at least 0, found {wait_ms}"):
        job.ask("worst delay", message="all", wait_ms=wait_ms)
    assert not client.asked


@pytest.mark.parametrize("key", [None, [], threading.Lock()], ids=["none", "list", "lock"])
def test_ask_refuses_what_cannot_be_a_key_at_once(job: JobHandle, client: Client, key: Any) -> None:
    with pytest.raises(InvalidKey):
        job.ask("worst delay", message="all", key=key)
    assert not client.asked


def test_ask_refuses_an_unknown_operator_at_once(job: JobHandle, client: Client) -> None:
    with pytest.raises(UnknownOperator, match="has no operator 'wrost'; it has flights, worst delay, out"):
        job.ask("wrost", message="all")
    assert not client.asked


@pytest.mark.parametrize("key", [None, [1], {}, 1j, (1, [2])])
def test_ask_refuses_at_once_what_cannot_be_a_key(job: JobHandle, client: Client, key: Any) -> None:
    with pytest.raises(InvalidKey):
        job.ask("worst delay", key=key, message="all")
    assert not client.asked


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


class TestResults:
    @pytest.fixture
    def job(self, client: Client, tmp_path: Path) -> JobHandle:
        env = StreamEnvironment(checkpoint_dir=str(tmp_path))
        stream = env.from_collection([1])
        stream.collect(name="collected")
        stream.sink_to(FileSink(str(tmp_path / "out"), format="csv"), name="files")
        return JobHandle(client, translated(env, job_id="job-7"))

    def test_results_are_what_has_been_committed(self, job: JobHandle, client: Client, tmp_path: Path) -> None:
        assert job.results("collected") == []
        records = pack_plain(["one", "two"])
        directory = tmp_path / "collected" / "job-7" / "collected"
        directory.mkdir(parents=True)
        content = len(records).to_bytes(4, "big") + records
        for job_id in ("job-7", "job-8"):
            name = f"part-collected-00000-0000000001-{fingerprint(job_id)}-0-attempt.records"
            (directory / name).write_bytes(content)
        assert job.results("collected") == ["one", "two"]

    def test_results_outlive_the_clusters_files(self, job: JobHandle, client: Client, tmp_path: Path) -> None:
        self.test_results_are_what_has_been_committed(job, client, tmp_path)
        client.move(JobStatus.FINISHED)
        job.wait(timeout=10)
        shutil.rmtree(tmp_path)
        assert job.results("collected") == ["one", "two"]

    def test_a_dataframe_of_what_a_file_sink_wrote(self, job: JobHandle, client: Client, tmp_path: Path) -> None:
        with pytest.raises(ResultsUnavailable, match="job 'job' is created; its output is whole once it has finished"):
            job.to_dataframe("files", None)
        client.move(JobStatus.FINISHED)
        with pytest.raises(ResultsUnavailable, match=r"job 'job' has committed no record to .*out"):
            job.to_dataframe("files", None)
        (tmp_path / "out").mkdir()
        mine = f"part-files-00000-0000000001-{fingerprint('job-7')}-0-attempt.csv"
        for name in (mine, mine.replace("files", "other"), mine.replace(fingerprint("job-7"), fingerprint("job-8"))):
            (tmp_path / "out" / name).write_text("a\n1\n")
        reader = Reader()
        assert job.to_dataframe("files", reader) == f"csv ['{tmp_path}/out/{mine}']"
        assert reader.chosen == {"header": "true", "inferSchema": "true"}

    def test_a_sink_of_another_kind_or_none(self, job: JobHandle, client: Client) -> None:
        client.move(JobStatus.FINISHED)
        with pytest.raises(ResultsUnavailable, match="sink 'files' is a FileSink; results come from collect"):
            job.results("files")
        with pytest.raises(
            ResultsUnavailable, match="'collected' is a CollectSink; a DataFrame is read from a FileSink"
        ):
            job.to_dataframe("collected", Reader())
        with pytest.raises(UnknownOperator, match="job 'job' has no sink 'out'; it has collected, files"):
            job.results("out")


class Reader:
    """A SparkSession that tells what it is asked to read."""

    def __init__(self) -> None:
        self.read = self
        self.chosen: dict[str, str] = {}
        self.kind = ""

    def format(self, kind: str) -> Reader:
        self.kind = kind
        return self

    def options(self, **options: str) -> Reader:
        self.chosen = options
        return self

    def load(self, path: list[str]) -> str:
        return f"{self.kind} {path}"
