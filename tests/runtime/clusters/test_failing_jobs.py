"""A job that fails says so: on standard error with the user's line, and in whatever is asked of it; and it ends."""

from __future__ import annotations

import logging
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, JobFailed, JobStatus, LocalCluster, OperatorCheckFailed, fixed_delay, no_restart
from understudy.actors.ask_errors import NotRunning
from understudy.actors.operators.collector import Collector
from understudy.runtime.clusters.job_errors import SavepointFailed
from understudy.runtime.clusters.template import Exited, Fork, Template, receive, receive_streams, send_streams

from ...prepared import Prepared
from .jobs import WAIT_S, Counting, Gate, Witness, counted, counting, counts_of, environment, eventually

pytestmark = pytest.mark.every_run

QUICK_START = """
from understudy import FileSink, KeyedOperator, LocalCluster, StreamEnvironment, ValueState


class Worst(KeyedOperator):
    worst = ValueState(float, default=0.0)

    def process(self, flight, out):
        if flight["delya"] > self.worst.value():
            self.worst.update(flight["delay"])
            out.collect((self.key, flight["delay"]))


if __name__ == "__main__":
    flights = [{"origin": origin, "delay": float(delay)} for delay in range(100) for origin in ["JFK"]]
    env = StreamEnvironment(checkpoint_interval_ms=CHECKPOINT_INTERVAL)
    worst = env.from_collection(flights).key_by("origin").process(Worst, name="worst")
    worst.sink_to(FileSink("out", format="parquet"))
    with LocalCluster(task_managers=2) as cluster:
        cluster.submit(env, name="worst-delay").wait(timeout=120)
"""
USERS_LINE = 'if flight["delya"] > self.worst.value():'


def quick_start(prepared: Prepared, folder: Path, checkpoint_interval: int | None) -> str:
    """What its user reads on standard error, with no logging configured."""
    script = folder / "quick_start.py"
    script.write_text(QUICK_START.replace("CHECKPOINT_INTERVAL", repr(checkpoint_interval)))
    done = prepared.run(script.name, folder=folder, timeout=WAIT_S)
    assert done.returncode == 1
    return done.stderr


def test_a_typo_in_a_job_with_checkpoints_is_shown_and_ends_it(prepared: Prepared, tmp_path: Path) -> None:
    shown = quick_start(prepared, tmp_path, 500)
    assert "job 'worst-delay' failed: MissingColumn: no column 'delya'" in shown
    assert "(in operator 'worst', subtask" in shown
    assert "restarting in 0." in shown
    logged, _, raised = shown.partition("has ended after 4 restarts: ")
    assert logged.count(USERS_LINE) == 1, "repetitions are counted"
    assert "the same failure again, 4 of 5" in logged
    assert logged.count("no column 'delya'") == 2, "in the line and at the end of the traceback"
    assert raised.startswith("it failed 5 times at record ")
    assert ") failed 5 times at record " in raised, "by JobFailed"
    assert "of operator 'worst' (subtask" in raised
    assert "no checkpoint completed in between" in raised
    assert raised.count(USERS_LINE) == 1


def test_a_typo_in_a_job_without_checkpoints_is_shown_and_ends_it_at_once(prepared: Prepared, tmp_path: Path) -> None:
    shown = quick_start(prepared, tmp_path, None)
    logged, _, raised = shown.partition("has ended after 0 restarts: ")
    assert logged.count(USERS_LINE) == 1
    assert "; the job ends" in logged
    assert "failed after 0 restarts" in raised
    assert raised.count(USERS_LINE) == 1


class Stuck(Counting):
    """Cannot take one record, whatever is tried."""

    def process(self, record: int, out: Collector) -> None:
        if record == 300:
            raise ValueError("cannot stand 300")
        super().process(record, out)


def test_a_job_that_is_down_says_why_whatever_it_is_asked(shared_cluster: LocalCluster) -> None:
    env = environment(restart_strategy=fixed_delay(attempts=5, delay_ms=600_000), checkpoint_interval_ms=600_000)
    counting(env, None, 2000, Stuck).collect(name="all")
    job = shared_cluster.submit(env, name="down")
    eventually(lambda: job.status is JobStatus.RESTARTING, "a restart")
    eventually(
        lambda: "cannot stand 300" in str(job.details().failures), "the cause, which its neighbours may be ahead of"
    )
    why = r"ValueError: cannot stand 300 \(in operator 'count', subtask \d, attempt 0, record \d+\)"
    with pytest.raises(TimeoutError, match=rf"'down' is restarting after .*; 1 restart so far; last failure: {why}"):
        job.wait(timeout=0.05)
    with pytest.raises(NotRunning, match=rf"the job is restarting; last failure: {why}"):
        job.ask("count", key=1, message="seen").result(timeout=WAIT_S)
    with pytest.raises(SavepointFailed, match=rf"the job is restarting; last failure: {why}"):
        job.trigger_savepoint().result(timeout=WAIT_S)
    job.cancel().result(timeout=WAIT_S)


def test_the_same_record_ends_a_job_with_its_own_restart_strategy_too(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment(checkpoint_interval_ms=600_000, max_same_failures=3)
    counting(env, 1000, None, Stuck).collect(name="all")
    with pytest.raises(JobFailed, match=r"failed 3 times at record \d+ of operator 'count'") as caught:
        shared_cluster.submit(env, name="poisoned").wait(timeout=WAIT_S)
    assert caught.value.details.restarts == 2
    ours = [record for record in caplog.records if record.name == "understudy.job" and "'poisoned'" in record.message]
    assert [record.levelno for record in ours] == [logging.WARNING] * 3 + [logging.ERROR]


def run_to_failure(cluster: LocalCluster, env: Any) -> str:
    with pytest.raises(JobFailed) as caught:
        cluster.submit(env, name="doomed").wait(timeout=WAIT_S)
    return str(caught.value)


def test_a_sink_whose_folder_is_removed_ends_the_job_and_names_the_folder(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    env, out = environment(), tmp_path / "out"
    counting(env, None, 2000).sink_to(FileSink(str(out), "jsonl"), name="files")
    job = shared_cluster.submit(env, name="doomed")
    Witness(job).checkpoints(2)
    out.rename(tmp_path / "elsewhere")  # in one act: a commit between two removals would let the job go on
    with pytest.raises(JobFailed, match=r"failed 5 times in operator 'files'") as caught:
        job.wait(timeout=WAIT_S)
    text = str(caught.value)
    assert f"output folder {out} " in text
    assert "Somebody has moved or deleted them" in text
    assert "Put the files back" in text


def test_a_sink_whose_folder_cannot_be_made_is_refused_at_submit_and_says_what_is_in_the_way(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    env = environment(restart_strategy=None)
    counting(env, 1000, None).sink_to(FileSink(str(tmp_path / "file" / "out"), "jsonl"), name="files")
    with pytest.raises(OperatorCheckFailed, match=f"operator 'files'.*{tmp_path}/file is a file"):
        shared_cluster.submit(env)


class Aborts(Counting):
    """As a library does that gets no memory."""

    def process(self, record: Any, out: Collector) -> None:
        os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
        os.abort()


def test_what_a_process_wrote_before_it_died_is_said(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment(restart_strategy=no_restart())
    counting(env, None, 2000, Aborts).collect(name="all")
    job = shared_cluster.submit(env, name="short")
    with pytest.raises(JobFailed):
        job.wait(timeout=WAIT_S)
    said = "\n".join
    eventually(lambda: "SIGABRT" in said(caplog.messages), "the word of how it ended")
    line = next(each for each in caplog.messages if "SIGABRT" in each)
    assert "it wrote last: \"terminate called after throwing an instance of 'std::bad_alloc'\"" in line
    assert "ulimit -v" in line


def test_a_process_that_may_open_too_few_files_starts_no_cluster() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
    try:
        with pytest.raises(OSError, match=r"may open 40 files .* 2 TaskManagers needs 56.*ulimit -n"):
            LocalCluster(task_managers=2).start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_lost_task_manager_is_logged_with_how_it_ended(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment()
    counting(env, None, 2000).collect(name="all")
    job = shared_cluster.submit(env, name="bereft")
    witness = Witness(job)
    witness.checkpoints(1)
    witness.kill(witness.pids(2)[0])
    said = "\n".join
    eventually(lambda: "restarting in" in said(caplog.messages), "the word of the restart")
    eventually(lambda: "SIGKILL" in said(caplog.messages), "the word of how it ended")
    assert "job 'bereft': TaskManager 0 (process" in said(caplog.messages)
    job.cancel().result(timeout=WAIT_S)


@contextmanager
def no_more_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_template_that_may_open_no_more_files_says_so_and_does_not_take_its_line_for_closed() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        send_streams(ours, 1, 2)
        with no_more_files(), pytest.raises(OSError, match="Too many open files"):
            receive_streams(its)
        ours.close()
        assert receive_streams(its) is None


def test_a_template_that_gets_one_of_two_streams_closes_it() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        before = os.listdir("/dev/fd")
        socket.send_fds(ours, [b"\0"], [1])
        with pytest.raises(OSError, match="Too many open files"):
            receive_streams(its)
        assert os.listdir("/dev/fd") == before


def test_a_template_that_gets_no_streams_says_that_nothing_was_started_and_goes_on() -> None:
    ours, its = socket.socketpair()
    template = Template.__new__(Template)  # without its hold on the signals of this process
    template._control = its
    ours.settimeout(5)
    with ours, its:
        for token in (1, 2):
            send_streams(ours, 1, 2)
            with no_more_files():
                template._on(Fork(token, b"", ()))
            assert receive(ours) == Exited(token, "could not be forked: [Errno 24] Too many open files")


@pytest.mark.chaos
def test_a_task_manager_that_cannot_be_started_for_now_is_started_later(
    shared_cluster: LocalCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The process of the JobManager may open no more files: that is no end of its jobs."""
    gate = Gate(tmp_path)
    env = environment()
    counting(env, 200, None, gate=gate).collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    pids = witness.pids(2)
    witness.checkpoints(1)
    with no_more_files():
        witness.kill(pids[0])
        eventually(lambda: "could not be started: [Errno 24] Too many open files, so raise the number" in caplog.text)
    gate.open()
    job.wait(timeout=WAIT_S)
    assert counts_of(job.results("all")) == counted(200)


def exits(number: int) -> int:
    if number == 5:
        os._exit(3)
    return number


def test_the_error_says_how_the_process_ended_that_the_job_fails_of(shared_cluster: LocalCluster) -> None:
    """Whether its end is known first, or that its connection broke."""
    env = environment(restart_strategy=no_restart())
    env.from_collection([5]).map(exits).collect(name="out")
    with pytest.raises(JobFailed, match=r"TaskManagerLost.*exited with code 3"):
        shared_cluster.submit(env).wait(timeout=WAIT_S)
