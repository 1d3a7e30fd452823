"""LocalCluster(debug=True): the whole job in the caller's thread, where debuggers and profilers look, on real files."""

from __future__ import annotations

import asyncio
import cProfile
import io
import logging
import pstats
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    FileSink,
    InvalidSetting,
    JobFailed,
    JobStatus,
    KeyedOperator,
    LocalCluster,
    Source,
    StreamEnvironment,
    ValueState,
    fixed_delay,
)
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.source import END
from understudy.messages import CheckpointCompleted
from understudy.runtime.clusters.cluster import Cluster

ROOT = Path(__file__).resolve().parents[4]
README = (ROOT / "README.md").read_text()

SEEN: list[Any] = []
"""What operators put here is here: they run in this process."""


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    SEEN.clear()
    yield
    SEEN.clear()


def note(value: Any) -> None:
    import sys

    sys.modules[__name__].SEEN.append(value)


class Numbering(KeyedOperator):
    seen = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        number = self.seen.value() + 1
        self.seen.update(number)
        out.collect((self.key, number))

    def on_receive(self, message: Any) -> Any:
        return self.seen.value()


def numbered(env: StreamEnvironment, count: int = 300, **options: Any) -> Any:
    return env.from_collection(range(count), **options).key_by(lambda n: n % 3).process(Numbering, name="numbering")


ALL = sorted((key, number) for key in range(3) for number in range(1, 101))


def test_everything_runs_on_the_callers_thread_and_nothing_is_left(tmp_path: Path) -> None:
    class Noting(Operator):
        def open(self) -> None:
            note(threading.get_ident())

        process_batch = on_end = close = lambda self, *_: note(threading.get_ident())

    env, threads = StreamEnvironment(parallelism=2), threading.active_count()
    env.from_collection(range(10)).map(lambda n: note(threading.get_ident()) or n).rebalance().sink_to(Noting)
    with LocalCluster(debug=True, slots_per_task_manager=2, unix_sockets=False) as cluster:
        assert isinstance(cluster, Cluster)
        work_dir = Path(cluster._work_dir)
        cluster.submit(env).wait()
        assert threading.active_count() == threads
    assert set(SEEN) == {threading.get_ident()}
    assert not work_dir.exists()


@pytest.mark.parametrize("backend", ["memory", "filesystem"])
def test_results_are_those_of_any_cluster(backend: str) -> None:
    env = StreamEnvironment(parallelism=2, state_backend=backend, checkpoint_interval_ms=5)
    numbered(env).collect(name="out")
    with LocalCluster(task_managers=2, debug=True) as cluster:
        job = cluster.submit(env, name="numbers")
        assert job.wait().status is JobStatus.FINISHED
    assert sorted(job.results("out")) == ALL


def test_files_are_as_a_cluster_of_processes_writes_them(tmp_path: Path) -> None:
    for name, debug in (("debug", True), ("processes", False)):
        env = StreamEnvironment(parallelism=2, checkpoint_dir=str(tmp_path / "checkpoints"))
        numbered(env).sink_to(FileSink(str(tmp_path / name), "jsonl"))
        with LocalCluster(2, debug=debug) as cluster:
            cluster.submit(env).wait(timeout=60)
    assert _lines(tmp_path / "debug") == _lines(tmp_path / "processes")
    names = {path.name for path in (tmp_path / "debug").iterdir()}
    assert {name[:5] if name.startswith("part-") else name for name in names} == {"part-", ".understudy-owner"}


def _lines(folder: Path) -> list[str]:
    return sorted(line for path in folder.glob("part-*") for line in path.read_text().splitlines())


def test_two_runs_write_to_one_folder_and_keep_apart(tmp_path: Path) -> None:
    for _ in range(2):
        env = StreamEnvironment(checkpoint_dir=str(tmp_path / "checkpoints"))
        numbered(env).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
        with LocalCluster(debug=True) as cluster:
            cluster.submit(env).wait()
    assert len(_lines(tmp_path / "out")) == 600


def test_savepoints_questions_and_a_start_from_a_savepoint(tmp_path: Path) -> None:
    env = StreamEnvironment(checkpoint_dir=str(tmp_path / "checkpoints"))
    numbered(env, records_per_second=200).collect(name="out")  # a busy machine needs time for the question
    with LocalCluster(debug=True, heartbeat_interval_ms=5) as cluster:
        job = cluster.submit(env)
        _until(lambda: sum(task.records_out for task in job.details().tasks) > 50)
        assert job.ask("numbering", message="seen", key=1).result(timeout=5) > 0
        savepoint = job.stop_with_savepoint().result(timeout=30)
        job.wait()
        first = job.results("out")
        assert 0 < len(first) < 300
        again = cluster.submit(env, from_savepoint=savepoint)
        again.wait()
    assert sorted(first + again.results("out")) == ALL


def _until(condition: Callable[[], bool]) -> None:
    """Ask again and again, as in a job of processes."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came true"


class Boom(Exception):
    pass


def fail_at_seven(n: int) -> int:
    if n == 7:
        note(n)
        raise Boom("seven")  # the user's own line
    return n


def test_the_first_failure_is_final_and_keeps_its_traceback() -> None:
    env = StreamEnvironment(checkpoint_interval_ms=10)
    env.from_collection(range(10)).map(fail_at_seven).collect(name="out")
    with LocalCluster(debug=True) as cluster, pytest.raises(JobFailed, match="failed after 0 restarts") as caught:
        cluster.submit(env).wait()
    cause = caught.value.__cause__
    assert type(cause).__name__ == "Boom"
    frames = []
    step = cause.__traceback__ if cause is not None else None
    while step is not None:
        frames.append(step.tb_frame)
        step = step.tb_next
    assert frames[-1].f_code.co_name == "fail_at_seven"
    assert frames[-1].f_locals["n"] == 7
    assert SEEN == [7]


def test_a_restart_strategy_that_is_named_counts() -> None:
    env = StreamEnvironment(restart_strategy=fixed_delay(attempts=2, delay_ms=1))
    env.from_collection(range(10)).map(fail_at_seven).collect(name="out")
    with LocalCluster(debug=True) as cluster, pytest.raises(JobFailed, match="failed after 2 restarts") as caught:
        cluster.submit(env).wait()
    assert type(caught.value.__cause__).__name__ == "Boom"
    assert SEEN == [7, 7, 7]


@pytest.mark.parametrize("how", ["raise KeyboardInterrupt", "a signal", "q in pdb"])
def test_an_interruption_comes_out_of_wait_and_the_job_is_closed(how: str, tmp_path: Path) -> None:
    class Interrupting(Operator):
        def process_batch(self, batch: Any, out: Collector) -> None:
            if how == "a signal":
                signal.raise_signal(signal.SIGINT)
            elif how == "q in pdb":
                from bdb import BdbQuit

                raise BdbQuit
            raise KeyboardInterrupt

        def close(self) -> None:
            note("closed")

    env = StreamEnvironment(restart_strategy=fixed_delay(attempts=5, delay_ms=1))
    env.generate(lambda n: n).sink_to(Interrupting)
    with LocalCluster(debug=True) as cluster:
        work_dir = Path(cluster._work_dir)
        job = cluster.submit(env)
        with pytest.raises(KeyboardInterrupt):
            job.wait()
    assert SEEN == ["closed"]
    assert job.status is JobStatus.CANCELED
    assert not work_dir.exists()


@pytest.mark.filterwarnings("ignore:map")
def test_a_job_without_end_is_waited_for_as_long_as_one_says() -> None:
    env = StreamEnvironment()
    env.generate(lambda n: n, records_per_second=1000).map(note).print()
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        before_ms = cluster.world.now_ms  # type: ignore[attr-defined]
        with pytest.raises(TimeoutError, match=r"is running after 0\.25 seconds"):
            job.wait(timeout=0.25)
        assert cluster.world.now_ms - before_ms >= 250  # type: ignore[attr-defined]
        assert len(SEEN) > 100
        job.cancel().result()


def test_time_stands_still_in_user_code_so_no_heartbeat_is_missed() -> None:
    def slow(n: int) -> int:
        time.sleep(0.3)
        return n

    env = StreamEnvironment()
    env.from_collection([1, 2]).map(slow).collect(name="out")
    with LocalCluster(debug=True, heartbeat_interval_ms=10, heartbeat_timeout_ms=50) as cluster:
        job = cluster.submit(env)
        assert job.wait(timeout=0.2).restarts == 0
    assert job.results("out") == [1, 2]


def test_a_source_with_a_thread_of_its_own_wakes_its_task() -> None:
    class Threaded(Source):
        def __init__(self) -> None:
            self.taken = 0

        def open(self) -> None:
            self.ready: list[int] = []
            threading.Thread(target=self._produce).start()

        def _produce(self) -> None:
            for number in range(3):
                time.sleep(0.02)
                self.ready.append(number)
                self.context.wake()

        def poll(self) -> Any:
            if self.taken == 3:
                return END
            if not self.ready:
                return None
            self.taken += 1
            return [self.ready.pop(0)]

        def offset(self) -> Any:
            return self.taken

        def seek(self, offset: Any) -> None:
            self.taken = offset

    env = StreamEnvironment()
    env.from_source(Threaded).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=30)
    assert job.results("out") == [0, 1, 2]


def test_on_an_event_loop_and_with_asyncio_run_in_an_operator() -> None:
    async def fetch(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    env = StreamEnvironment()
    env.from_collection([1, 2]).map(lambda n: asyncio.run(fetch(n))).collect(name="out")

    async def main() -> list[Any]:
        async with LocalCluster(debug=True) as cluster:
            job = await cluster.submit_async(env)
            assert (await job).status is JobStatus.FINISHED
            assert await asyncio.wait_for(asyncio.sleep(0, "still running"), 1) == "still running"
        return job.results("out")

    assert asyncio.run(main()) == [2, 3]


def test_whoever_waits_on_another_thread_is_told(tmp_path: Path) -> None:
    env = StreamEnvironment()
    env.from_collection([1]).print()
    errors: list[BaseException] = []

    def wait(job: Any) -> None:
        try:
            job.wait()
        except RuntimeError as error:
            errors.append(error)

    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        thread = threading.Thread(target=wait, args=[job])
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="cannot be reached from other processes"):
            cluster.announce()
    assert "runs on the thread that made it" in str(errors[0])


def test_events_metrics_and_logs_are_here(caplog: pytest.LogCaptureFixture) -> None:
    env, events = StreamEnvironment(checkpoint_interval_ms=20), list[Any]()
    numbered(env, records_per_second=3000).map(lambda n: logging.getLogger("user").warning("%s", n)).print()
    with LocalCluster(debug=True, heartbeat_interval_ms=5) as cluster:
        job = cluster.submit(env)
        job.on_event(events.append)
        _until(lambda: sum(task.records_in for task in job.details().tasks) > 50)
        assert job.wait().failures == ()
        history = job.checkpoint_history()
    assert "(2, 100)" in caplog.text
    completed = [event for event in events if isinstance(event, CheckpointCompleted)]
    assert completed
    assert history.checkpoints[0].checkpoint_id == completed[-1].checkpoint_id


def test_a_profiler_sees_user_code(tmp_path: Path) -> None:
    env = StreamEnvironment()
    numbered(env).collect(name="out")
    profiler, text = cProfile.Profile(), io.StringIO()
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        profiler.runcall(job.wait)
    pstats.Stats(profiler, stream=text).print_stats("process")
    assert re.search(r"^ +300 .*test_debug_cluster.py:\d+\(process\)$", text.getvalue(), re.MULTILINE)


SCRIPT = """
from understudy import *

class Doubling(KeyedOperator):
    def process(self, record, out):
        if record == 3:
            breakpoint()
        out.collect(2 * record)

if __name__ == "__main__":
    env = StreamEnvironment()
    env.from_collection([1, 2, 3, 4]).key_by(lambda n: n).process(Doubling).collect(name="out")
    with LocalCluster(debug=True, heartbeat_interval_ms=10, heartbeat_timeout_ms=20) as cluster:
        job = cluster.submit(env)
        job.wait()
    print(sorted(job.results("out")))
"""


def test_a_breakpoint_in_an_operator_stops_there(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        input="p record, self.key\nw\nc\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "(Pdb) (3, 3)" in done.stdout, done.stderr
    assert "job.py(8)process()" in done.stdout
    assert done.stdout.rstrip().endswith("[2, 4, 6, 8]")
    assert done.returncode == 0


def test_the_first_job_of_the_readme(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    script, changed = re.subn(r"LocalCluster\(", "LocalCluster(debug=True, ", block)
    assert changed == 1
    (tmp_path / "first_job.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "first_job.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["EWR 11.0", "EWR 47.0", "JFK 4.0", "JFK 31.0"]


def test_a_standby_cannot_take_over_what_is_debugged(tmp_path: Path) -> None:
    config = {
        "recovery.mode": "storage",
        "high-availability.storageDir": str(tmp_path),
        "high-availability.key-file": str(tmp_path / "key"),
    }
    wanted = r"recovery.mode: found 'storage' with debug=True: .* leave out debug=True, or the recovery settings"
    with pytest.raises(InvalidSetting, match=wanted):
        LocalCluster(debug=True, config=config)


def test_what_serves_others_is_said_to_be_without_effect(caplog: pytest.LogCaptureFixture) -> None:
    with LocalCluster(debug=True, web_port=0, config={"metrics.reporter.prom.port": "0"}) as cluster:
        assert cluster.web_url is None
    assert "serves nobody: web_port, metrics.reporter.prom.port are without effect with debug=True" in caplog.text


def test_coroutines_run_here_and_their_threads_too() -> None:
    async def look_up(number: int) -> int:
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(lambda: number * threading.get_ident())

    env = StreamEnvironment()
    env.from_collection(range(3)).map(look_up).collect(name="all")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
    assert sorted(job.results("all")) == [number * threading.get_ident() for number in range(3)]


@pytest.mark.filterwarnings("ignore:map")
def test_a_client_that_connects_is_told_what_to_do() -> None:
    async def connect(number: int) -> None:
        await asyncio.open_connection("localhost", 80)

    env = StreamEnvironment()
    env.from_collection(range(3)).map(connect, name="connect").collect(name="all")
    with (
        LocalCluster(debug=True) as cluster,
        pytest.raises(JobFailed, match=r"NotOnSimulatedLoop.*a fake of its client"),
    ):
        cluster.submit(env).wait()
