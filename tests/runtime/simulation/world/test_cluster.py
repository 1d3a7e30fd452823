"""SimulatedCluster as its users have it: like a LocalCluster, but for the time, which is virtual."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import psutil
import pytest

from understudy import FileSink, KeyedOperator, StreamEnvironment, ValueState, fixed_delay, no_restart
from understudy.actors.ask_errors import ActorDead, NotRunning
from understudy.messages import AskOperator, CheckpointCompleted, JobStatus, RequestJobStatus
from understudy.runtime.api.errors import InvalidProgram
from understudy.runtime.clusters import cluster as cluster_module
from understudy.runtime.clusters.job_errors import (
    JobCanceled,
    JobFailed,
    JobLost,
    SavepointFailed,
    SavepointNotDisposed,
    UnknownOperator,
)
from understudy.runtime.simulation.world.cluster import SimulatedCluster, Stalled
from understudy.runtime.simulation.world.faults import JOB_MANAGER, FreezeProcess, KillProcess
from understudy.state import CheckpointStorage, InvalidKey

pytestmark = pytest.mark.every_run


class Count(KeyedOperator):
    count = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((self.key, self.count.value()))

    def on_receive(self, message: Any) -> Any:
        if message == "raise":
            raise LookupError("asked for")
        return self.count.value()


def counting(records: int = 20, per_second: float | None = 10.0, **options: Any) -> StreamEnvironment:
    env = StreamEnvironment(**{"checkpoint_interval_ms": 500, **options})
    numbers = env.from_collection(range(records), records_per_second=per_second, parallelism=env.parallelism)
    numbers.key_by(lambda number: number % 2).process(Count, name="count").collect(name="out")
    return env


@pytest.mark.parametrize("drain", [False, True])
@pytest.mark.parametrize("after_ms", [0, 1, 2, 5, 10, 20])
def test_a_stop_after_a_stop_with_savepoint_leaves_a_savepoint_or_says_why_there_is_none(
    drain: bool, after_ms: int
) -> None:
    """The stop may come first: the savepoint's folder is checked before it begins. One that has begun is finished."""
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(counting(records=1000))
        job.ready().result()
        savepoint = job.stop_with_savepoint(drain=drain)
        cluster.run_for(after_ms)
        job.stop()
        assert job.wait(timeout=60).status is JobStatus.FINISHED
        refused = savepoint.exception(timeout=0)
        if refused is None:
            second = cluster.submit(counting(records=1000), from_savepoint=savepoint.result())
            assert second.submitted.restored_checkpoint_id > 0
        else:
            assert isinstance(refused, SavepointFailed)
            assert "job_is_stopping: its data is being ended" in str(refused)
            assert str(refused).endswith("stop_with_savepoint(drain=True)"), "what can still be had"
            assert not drain


@pytest.mark.parametrize("end", ["trigger_savepoint", "stop_with_savepoint"])
def test_a_savepoint_of_a_job_that_is_being_cancelled_does_not_say_ask_again(end: str) -> None:
    faults = (FreezeProcess(at_ms=2_000, for_ms=4_000, who=0),)  # it takes that long to cancel
    with SimulatedCluster(task_managers=1, faults=faults) as cluster:
        job = cluster.submit(counting(records=1000))
        job.ready().result()
        cluster.run_for(2_500 - cluster.now_ms)
        job.cancel()
        refused = getattr(job, end)().exception()
        assert str(refused) == f"the savepoint of job {job.job_id} failed: the job is cancelling"


COUNTED = [(key, count) for key in (0, 1) for count in range(1, 11)]


class TestJobs:
    def test_finish_with_all_results(self) -> None:
        with SimulatedCluster(2) as cluster:
            job = cluster.submit(counting(), name="counting")
            assert job.wait().status is JobStatus.FINISHED
            assert job.status is JobStatus.FINISHED
            assert sorted(job.results("out")) == COUNTED
        assert sorted(job.results("out")) == COUNTED  # they outlive the cluster

    def test_of_minutes_sleep_nowhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"a real sleep of {seconds} s"))
        with SimulatedCluster(1) as cluster:
            cluster.submit(counting(records=100, per_second=1.0)).wait()
            assert cluster.now_ms > 99_000

    def test_survive_the_death_of_a_task_manager(self) -> None:
        with SimulatedCluster(2, faults=[KillProcess(at_ms=1_200, who=1)]) as cluster:
            job = cluster.submit(counting(parallelism=2))
            details = job.wait()
            assert details.restarts == 1
            assert sorted(job.results("out")) == COUNTED

    def test_one_after_the_other(self) -> None:
        with SimulatedCluster(1) as cluster:
            for _ in range(2):
                job = cluster.submit(counting())
                job.wait()
                assert sorted(job.results("out")) == COUNTED

    def test_side_by_side(self) -> None:
        with SimulatedCluster(1) as cluster:
            jobs = [cluster.submit(counting()) for _ in range(2)]
            for job in jobs:
                job.wait()
                assert sorted(job.results("out")) == COUNTED

    def test_whose_code_raises_fail_with_its_error(self) -> None:
        env = StreamEnvironment()
        env.from_collection([1, 0]).map(lambda number: 1 // number, name="inverse").collect(name="out")
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(env)
            with pytest.raises(JobFailed, match=r"(?s)inverse.*ZeroDivisionError"):
                job.wait()

    def test_that_fail_before_they_run_are_never_ready(self) -> None:
        class Closed(Count):
            def open(self) -> None:
                raise OSError("closed")

        env = StreamEnvironment(restart_strategy=no_restart())
        env.from_collection([1]).key_by(0).process(Closed).collect(name="out")
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(env)
            with pytest.raises(JobFailed, match="OSError: closed"):
                job.ready().result(timeout=30)
            with pytest.raises(JobFailed, match="OSError: closed"):
                job.ready().result(timeout=1)

    def test_are_cancelled(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting(records=1_000))
            cluster.run_for(2_000)
            job.cancel().result()
            with pytest.raises(JobCanceled):
                job.wait()

    def test_are_stopped_with_what_they_have_done_so_far(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting(records=1_000))
            cluster.run_for(2_000)
            job.stop().result()
            assert job.wait().status is JobStatus.FINISHED
            assert 10 < len(job.results("out")) < 30

    def test_are_watched(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            events: list[Any] = []
            job.on_event(events.append)
            job.wait()
            cluster.run_for(100)
            assert any(isinstance(event, CheckpointCompleted) for event in events)

    def test_listeners_may_ask_and_wait(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            seen: list[JobStatus] = []
            job.on_event(lambda _: seen.append(job.details().status))
            job.wait()
            cluster.run_for(1_000)
            assert seen[-1] is JobStatus.FINISHED

    def test_write_files_on_the_simulated_disk(self) -> None:
        env = StreamEnvironment(checkpoint_interval_ms=500)
        sink = FileSink("sim://storage/report", format="jsonl")
        env.from_collection([{"n": number} for number in range(5)]).sink_to(sink, name="files")
        with SimulatedCluster(1) as cluster:
            cluster.submit(env).wait()
            written = [path for path, _ in cluster.disk.files() if path.startswith("/storage/report/part-")]
            lines = [line for path in written for line in cluster.disk.read(path).splitlines()]
            assert len(lines) == 5


class TestQuestions:
    def test_are_answered_by_operators(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            cluster.run_for(2_000)
            answer = job.ask("count", message="how many?", key=0).result(timeout=5)
            assert 2 < answer <= 10

    def test_that_raise_fail_the_future(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            cluster.run_for(1_500)
            with pytest.raises(Exception, match="asked for"):
                job.ask("count", message="raise", key=0).result(timeout=5)

    def test_are_answered_as_soon_as_the_job_is_ready(self) -> None:
        with SimulatedCluster(2) as cluster:
            job = cluster.submit(counting())
            job.ready().result(timeout=30)
            assert job.status is JobStatus.RUNNING
            assert job.ask("count", message="how many?", key=0).result(timeout=5) >= 0
            assert job.trigger_savepoint().result(timeout=10)

    def test_wait_for_an_operator_that_is_not_running_yet(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            with pytest.raises(NotRunning, match=r"operator 'count': not running: it has no task, the job is created$"):
                job.ask("count", message="how many?", key=0).result(timeout=30)
            assert job.ask("count", message="how many?", key=0, wait_ms=30_000).result(timeout=30) >= 0

    def test_wait_for_an_operator_that_restarts(self) -> None:
        faults = [KillProcess(at_ms=2_000, who=0)]
        with SimulatedCluster(1, faults=faults) as cluster:
            job = cluster.submit(counting(records=200, restart_strategy=fixed_delay(attempts=3, delay_ms=4_000)))
            cluster.run_until(lambda: job.status is JobStatus.RESTARTING)
            assert job.ask("count", message="how many?", key=0, wait_ms=30_000).result(timeout=60) >= 1
            assert job.status is JobStatus.RUNNING

    def test_wait_no_longer_than_they_are_told(self) -> None:
        faults = [KillProcess(at_ms=2_000, who=0)]
        with SimulatedCluster(1, faults=faults) as cluster:
            job = cluster.submit(counting(records=200, restart_strategy=fixed_delay(attempts=3, delay_ms=60_000)))
            cluster.run_until(lambda: job.status is JobStatus.RESTARTING)
            before_ms = cluster.now_ms
            with pytest.raises(NotRunning, match=r"the job is restarting; .* \(waited for it for 2.5 s\)"):
                job.ask("count", message="how many?", key=0, wait_ms=2_500).result(timeout=60)
            assert cluster.now_ms - before_ms == pytest.approx(2_500, abs=100)

    def test_with_a_key_that_is_none_harm_nobody(self) -> None:
        """A client that does not check it says so to the JobManager, which has other jobs to keep."""
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            job.ready().result(timeout=30)
            question = AskOperator(job.job_id, "count", has_key=True, key=None, question=None, plain_question="?")
            with pytest.raises(InvalidKey):
                cluster.job_manager.ask(question).result(timeout=5)
            assert job.wait().status is JobStatus.FINISHED

    def test_of_a_job_that_is_over_do_not_wait(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            job.wait()
            before_ms = cluster.now_ms
            with pytest.raises(NotRunning, match=r"the job is finished$"):
                job.ask("count", message="how many?", key=0, wait_ms=60_000).result(timeout=60)
            assert cluster.now_ms - before_ms < 100

    def test_that_a_lost_task_manager_leaves_open_are_put_again(self) -> None:
        """The TaskManager stands still with the question, and is killed before it wakes up."""
        faults = [FreezeProcess(2_000, 60_000, 0), KillProcess(at_ms=3_000, who=0)]
        with SimulatedCluster(1, faults=faults) as cluster:
            job = cluster.submit(counting(records=200, restart_strategy=fixed_delay(attempts=3, delay_ms=100)))
            cluster.run_for(2_500)
            with pytest.raises(NotRunning, match="its TaskManager was lost before it answered"):
                job.ask("count", message="how many?", key=0).result(timeout=60)
            assert job.ask("count", message="how many?", key=0, wait_ms=30_000).result(timeout=60) >= 1

    def test_to_a_cluster_that_is_gone_fail(self) -> None:
        with SimulatedCluster(1, faults=[KillProcess(2_000, JOB_MANAGER)]) as cluster:
            job = cluster.submit(counting())
            cluster.run_for(2_500)
            for wait_ms in (0, 5_000):
                with pytest.raises(ActorDead):
                    job.ask("count", message="how many?", key=0, wait_ms=wait_ms).result(timeout=60)
            with pytest.raises(JobLost):
                job.ready().result(timeout=1)

    def test_to_nobody_are_refused(self) -> None:
        with SimulatedCluster(1) as cluster, pytest.raises(UnknownOperator):
            cluster.submit(counting()).ask("nobody", message="?")

    def test_answers_of_actors_can_be_mapped(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            mapped = cluster.job_manager.ask(RequestJobStatus(job.job_id)).map(lambda details: details.status)
            assert mapped.result(timeout=1) in (JobStatus.CREATED, JobStatus.RUNNING)  # type: ignore[attr-defined]

    def test_savepoints_have_a_path(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            cluster.run_for(1_500)
            path = job.trigger_savepoint().result(timeout=10)
            assert path.startswith("sim:///storage/checkpoints/savepoints/savepoint-")

    def test_savepoints_may_be_kept_in_memory(self) -> None:
        with SimulatedCluster(1, config={"savepoints.state.backend": "jobmanager"}) as cluster:
            job = cluster.submit(counting())
            cluster.run_for(1_500)
            assert job.trigger_savepoint().result(timeout=10).startswith("jobmanager://savepoints/")

    def test_savepoints_are_files_where_there_is_a_directory_and_are_disposed_of(self) -> None:
        with SimulatedCluster(1, config={"savepoints.state.backend.fs.dir": "sim://storage/savepoints"}) as cluster:
            job = cluster.submit(counting())
            cluster.run_for(1_500)
            path = job.trigger_savepoint("daily").result(timeout=10)
            assert path.startswith("sim:///storage/savepoints/daily/savepoint-")
            assert path in {f"sim://{path}" for path, _ in cluster.disk.files()}
            assert cluster.dispose_savepoint(path).result(timeout=10) == path
            assert path not in {f"sim://{path}" for path, _ in cluster.disk.files()}
            with pytest.raises(SavepointNotDisposed, match="missing savepoint"):
                cluster.dispose_savepoint(path).result(timeout=10)

    def test_metrics_and_details_are_there(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting())
            cluster.run_for(3_000)
            assert sum(task.records_out for task in job.details().tasks) > 0
            assert job.details().completed_checkpoints > 0


class TestWaiting:
    def test_timeouts_are_virtual(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting(records=100))
            before_ms = cluster.now_ms
            with pytest.raises(TimeoutError, match="after 5 seconds"):
                job.wait(timeout=5)
            assert cluster.now_ms - before_ms == 5_000
            assert job.wait(timeout=60).status is JobStatus.FINISHED

    def test_for_a_frozen_job_manager_takes_until_it_thaws(self) -> None:
        with SimulatedCluster(1, faults=[FreezeProcess(500, 4_000, JOB_MANAGER)]) as cluster:
            job = cluster.submit(counting())
            cluster.run_for(600)
            with pytest.raises(TimeoutError, match="the question for the details"):
                job.details(timeout=1)
            assert job.details(timeout=10).status is JobStatus.RUNNING

    def test_for_what_never_comes_ends(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting(records=10_000, per_second=1.0, checkpoint_interval_ms=60_000))
            with pytest.raises(Stalled):
                job.wait()

    def test_run_for_and_run_until_let_time_go_on(self) -> None:
        with SimulatedCluster(1) as cluster:
            cluster.run_for(250)
            assert cluster.now_ms == 250
            assert not cluster.run_until(lambda: False, timeout=0.05)
            assert cluster.now_ms == 300
            assert cluster.run_until(lambda: cluster.now_ms >= 300)

    def test_works_on_an_event_loop(self) -> None:
        async def main() -> list[Any]:
            async with SimulatedCluster(1) as cluster:
                job = await cluster.submit_async(counting())
                await job.ready()
                assert {task.status for task in (await job.details_async()).tasks} <= {"running"}
                assert await job.ask("count", message="how many?", key=0, wait_ms=5_000) >= 0
                details = await job
                assert details.status is JobStatus.FINISHED
                assert (await job.request_details()).status is JobStatus.FINISHED
                assert (await job.checkpoint_history_async()).completed > 0
                return await job.results_async("out")

        assert sorted(asyncio.run(main())) == COUNTED


class TestTheEnd:
    def test_of_the_cluster_is_the_end_of_a_running_job(self) -> None:
        with SimulatedCluster(1) as cluster:
            job = cluster.submit(counting(records=1_000))
            cluster.run_for(1_000)
        with pytest.raises(JobLost, match="the cluster was closed"):
            job.wait()
        with pytest.raises(JobLost):
            job.wait(timeout=1)
        with pytest.raises(RuntimeError, match="not running"):
            cluster.submit(counting())
        assert list(cluster.processes()) == []

    def test_of_the_job_manager_is_the_end_of_its_jobs(self) -> None:
        with SimulatedCluster(1, faults=[KillProcess(1_000, JOB_MANAGER)]) as cluster:
            job = cluster.submit(counting(records=100))
            with pytest.raises(JobLost, match="SIGKILL"):
                job.wait()
            with pytest.raises(JobLost, match="SIGKILL"):
                job.details()
            cluster.run_for(30_000)
            assert list(cluster.processes()) == []  # a TaskManager without a JobManager must not go on

    def test_comes_once(self) -> None:
        cluster = SimulatedCluster(1).start()
        with pytest.raises(RuntimeError, match="started already"):
            cluster.start()
        cluster.close()
        cluster.close()

    def test_leaves_the_disk_of_an_outer_cluster_alone(self) -> None:
        with SimulatedCluster(1, seed=1) as outer:
            job = outer.submit(counting())
            with SimulatedCluster(1, seed=2) as inner:
                inner.submit(counting()).wait()
            job.wait()
            assert sorted(job.results("out")) == COUNTED


class TestMistakes:
    def test_a_dataframe_is_refused(self) -> None:
        with SimulatedCluster(1) as cluster:
            env = counting()
            translation = cluster.translate(env)
            bound = translation.__class__(
                **{name: getattr(translation, name) for name in translation.__dataclass_fields__}
                | {"dataframes": (_Bound("flights"),)}
            )
            with pytest.raises(InvalidProgram, match="'flights' reads a Spark DataFrame"):
                cluster.submit_translated(bound)

    def test_settings_are_checked(self) -> None:
        with pytest.raises(ValueError, match="heartbeat_timeout_ms"):
            SimulatedCluster(1, heartbeat_interval_ms=100, heartbeat_timeout_ms=50)

    def test_a_cluster_that_was_not_started_says_so(self) -> None:
        with pytest.raises(RuntimeError, match="with SimulatedCluster"):
            SimulatedCluster(1).submit(counting())

    def test_code_that_cannot_be_unpickled_fails_the_job(self) -> None:
        env = StreamEnvironment()
        env.from_collection([1]).map(_Unloadable()).collect(name="out")
        with SimulatedCluster(1, slot_timeout_ms=5_000) as cluster:
            job = cluster.submit(env)
            with pytest.raises(JobFailed, match="cannot be loaded"):
                job.wait(timeout=600)

    def test_a_task_manager_that_cannot_come_up_ends_and_another_one_is_started(self) -> None:
        """As in reality: its process exits with a traceback."""
        with _Stillborn(1, lives=3) as cluster:
            job = cluster.submit(counting())
            job.wait()
            ends = [process.end_reason for process in cluster.world.processes if process.name.startswith("tm-")]
            assert ends[:3] == ["OSError: no storage in this life"] * 3
            assert sorted(job.results("out")) == COUNTED


class _Stillborn(SimulatedCluster):
    """Its first TaskManagers raise while they start."""

    def __init__(self, task_managers: int, lives: int) -> None:
        super().__init__(task_managers)
        self.lives = lives

    def _open_storage(self, url: str) -> CheckpointStorage:
        if self.world.current not in (None, self._driver) and self.lives:
            self.lives -= 1
            raise OSError("no storage in this life")
        return super()._open_storage(url)


class _Bound:
    def __init__(self, source_name: str) -> None:
        self.source_name = source_name


class _Unloadable:
    def __call__(self, record: Any) -> Any:
        return record

    def __reduce__(self) -> Any:
        return _fail_to_load, ()


def _fail_to_load() -> Any:
    raise ImportError("cannot be loaded")


def test_nothing_of_the_real_world_is_used() -> None:
    """No thread, no socket, no file, no process."""
    me = psutil.Process()
    threads, descriptors, children = threading.active_count(), me.num_fds(), len(me.children())
    with SimulatedCluster(2, faults=[KillProcess(1_000, 0)]) as cluster:
        job = cluster.submit(counting(parallelism=2))
        cluster.run_for(1_500)
        assert (threading.active_count(), me.num_fds(), len(me.children())) == (threads, descriptors, children)
        job.wait()
    assert (threading.active_count(), me.num_fds(), len(me.children())) == (threads, descriptors, children)


def test_files_of_modules_are_not_read_for_a_job_that_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite of thousands of histories has hundreds of modules, and nobody imports one again."""
    asked = []
    monkeypatch.setattr(cluster_module, "with_sources", lambda program: asked.append(program) or program)
    with SimulatedCluster(1) as cluster:
        cluster.submit(counting(2)).wait()
    assert asked == []
