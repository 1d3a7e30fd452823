"""What user code prints and logs in TaskManagers: all of it, in the user's process, by the end of the job."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import io
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from understudy import JobFailed, LocalCluster, Operator, StreamEnvironment, no_restart
from understudy.actors.operators.collector import Collector

from .jobs import WAIT_S, Mark, environment

LINES = 100_000

SCRIPT = """
import logging
import sys
from understudy import LocalCluster, Operator, StreamEnvironment

class Talking(Operator):
    def open(self):
        print("opened")

    def process_batch(self, batch, out):
        for record in batch:
            print("seen", record)
            print("oh", record, file=sys.stderr)
            logging.getLogger("myapp").info("at %d", record)
            logging.getLogger("other").info("never")
        out.emit(batch)

    def close(self):
        print("closed, and no end", end="")

if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s|%(name)s|%(message)s|%(operator)s")
    logging.getLogger("myapp").setLevel(logging.INFO)
    env = StreamEnvironment(parallelism=1)
    env.from_collection(range(3)).process(Talking, name="talk").print("it is ")
    with LocalCluster() as cluster:
        cluster.submit(env).wait()
        print("waited")
"""


def test_a_script_has_it_on_its_own_standard_output_and_in_its_own_format(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    rest = done.stdout.replace("closed, and no end", "")  # which comes when its process ends, and so does not wait
    assert len(rest) < len(done.stdout)
    *lines, waited = [line for line in rest.splitlines() if line]
    assert sorted(lines) == sorted(["opened", *(f"seen {n}" for n in range(3)), *(f"it is {n}" for n in range(3))])
    assert waited == "waited"
    assert [line for line in lines if line.startswith("seen")] == ["seen 0", "seen 1", "seen 2"]
    assert sorted(done.stderr.splitlines()) == sorted(
        [*(f"oh {n}" for n in range(3)), *(f"INFO|myapp|at {n}|talk" for n in range(3))]
    )


class Printing(Operator):
    """Prints its records, and what a test wants to happen after the fifth."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.then = then

    def process_batch(self, batch: Any, out: Collector) -> None:
        for record in batch:
            print("seen", record)
            if record == 4:
                self.then()


def printing(
    cluster: LocalCluster, count: int, then: Callable[[], None] = lambda: None, **settings: Any
) -> tuple[Any, list[str]]:
    env = environment(checkpoint_interval_ms=None, parallelism=1, **settings)
    env.generate(lambda index: index, count, name="numbers").sink_to(Printing(then), name="printing")
    return cluster.submit(env), [f"seen {index}" for index in range(count)]


def test_a_flood_of_lines_is_there_to_the_last_one_when_the_job_has_ended(
    shared_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    job, lines = printing(shared_cluster, LINES)
    job.wait(timeout=WAIT_S)
    assert capsys.readouterr().out.splitlines() == lines


def fail() -> None:
    raise ValueError("on purpose")


CELL: ContextVar[str] = ContextVar("cell", default="the one that runs")
"""Notebooks know by such a variable whose a line is."""


def test_lines_about_a_job_are_not_those_of_the_cell_that_started_the_cluster(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = {}

    class Cells(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen[record.getMessage().partition("(")[0]] = CELL.get()

    logger, handler = logging.getLogger("understudy.job"), Cells()
    logger.addHandler(handler)
    try:
        CELL.set("the first")
        with LocalCluster() as cluster:
            CELL.set("the second")
            job, lines = printing(cluster, 5, fail, restart_strategy=no_restart())
            with pytest.raises(JobFailed):
                job.wait(timeout=WAIT_S)
    finally:
        logger.removeHandler(handler)
    assert set(seen.values()) == {"the one that runs"}, seen
    assert "job 'job' failed: ValueError: on purpose " in seen
    assert capsys.readouterr().out.splitlines() == lines


def test_two_processes_do_not_cut_each_others_lines(
    shared_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where a line is longer than what a pipe takes at once."""

    class Long(Operator):
        def process_batch(self, batch: Any, out: Collector) -> None:
            for _ in batch:
                print(str(self.context.subtask_index) * 30_000)

    env = environment(checkpoint_interval_ms=None, parallelism=2)
    env.generate(lambda index: index, 400).rebalance().sink_to(Long, name="long")
    shared_cluster.submit(env).wait(timeout=WAIT_S)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 400
    assert set(lines) == {"0" * 30_000, "1" * 30_000}


def end_by_signal() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end_by_exit() -> None:
    os._exit(7)


def end_by_fault() -> None:
    ctypes.string_at(0)


@pytest.mark.chaos
@pytest.mark.parametrize("end", [end_by_signal, end_by_exit, end_by_fault])
def test_what_was_printed_before_a_process_died_is_there(
    shared_cluster: LocalCluster, capsys: pytest.CaptureFixture[str], end: Callable[[], None]
) -> None:
    job, lines = printing(shared_cluster, 10, end, restart_strategy=no_restart())
    with pytest.raises(JobFailed):
        job.wait(timeout=WAIT_S)
    assert capsys.readouterr().out.splitlines() == lines[:5]


class Slow(io.StringIO):
    """Somebody who reads a line now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Event()

    def write(self, text: str) -> int:
        self.reads.wait(WAIT_S)
        return super().write(text)


def test_a_slow_reader_holds_the_job_up_and_misses_nothing(shared_cluster: LocalCluster) -> None:
    slow = Slow()
    with contextlib.redirect_stdout(slow):
        job, lines = printing(shared_cluster, LINES)
        with pytest.raises(TimeoutError):
            job.wait(timeout=1)
        slow.reads.set()
        job.wait(timeout=WAIT_S)
    assert slow.getvalue().splitlines() == lines


def test_it_is_there_when_a_job_is_awaited(start_cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    async def play(cluster: LocalCluster) -> list[str]:
        job, lines = await asyncio.to_thread(printing, cluster, 1000)
        await job
        return lines

    lines = asyncio.run(play(start_cluster(1)))
    assert capsys.readouterr().out.splitlines() == lines


def test_what_is_printed_without_python_is_there_too(
    shared_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def shout() -> None:
        ctypes.CDLL(None).puts(b"from C")
        os.write(1, b"bytes \xff\n")
        subprocess.run(["echo", "from a child"], check=True)

    job, _ = printing(shared_cluster, 5, shout)
    job.wait(timeout=WAIT_S)
    assert {"from C", "bytes \\xff", "from a child"} <= set(capsys.readouterr().out.splitlines())


def test_a_line_without_an_end_is_shown_before_it_has_one(
    shared_cluster: LocalCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As a progress bar's."""
    goes_on = tmp_path / "goes on"

    def progress() -> None:
        print("\r10 %", end="", file=sys.stderr, flush=True)
        while not goes_on.exists():
            time.sleep(0.01)

    job, _ = printing(shared_cluster, 5, progress)
    said = ""
    deadline = time.monotonic() + WAIT_S
    while "\r10 %" not in said and time.monotonic() < deadline:
        said += capsys.readouterr().err
        time.sleep(0.02)
    goes_on.touch()
    job.wait(timeout=WAIT_S)
    assert "\r10 %" in said


def test_job_after_job_leaves_no_file_open(shared_cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    def open_files() -> int:
        return len(os.listdir("/dev/fd"))

    before = None
    for _ in range(4):
        job, lines = printing(shared_cluster, 10)
        job.wait(timeout=WAIT_S)
        assert capsys.readouterr().out.splitlines() == lines
        deadline = time.monotonic() + WAIT_S
        while before is not None and open_files() > before and time.monotonic() < deadline:
            time.sleep(0.02)  # the processes end a moment later than their job
        assert before is None or open_files() <= before
        before = before or open_files()


# -- logs


class Logging(Operator):
    """Logs each record at a level, and says what it need not make."""

    def __init__(self, name: str, level: int) -> None:
        self.name, self.level = name, level

    def process_batch(self, batch: Any, out: Collector) -> None:
        logger = logging.getLogger(self.name)
        for record in batch:
            logger.log(self.level, "at %d", record, extra={"request": f"r{record}"})
        out.emit([logger.isEnabledFor(self.level)])


@pytest.fixture
def levels() -> Iterator[Callable[[str, int], None]]:
    """Set a logger's level until the test has ended."""
    before: list[tuple[str, int]] = []

    def set_level(name: str, level: int) -> None:
        logger = logging.getLogger(name)
        before.append((name, logger.level))
        logger.setLevel(level)

    yield set_level
    for name, level in reversed(before):
        logging.getLogger(name).setLevel(level)


def logged(cluster: LocalCluster, name: str, level: int, count: int = 3, **settings: Any) -> list[bool]:
    env = StreamEnvironment(parallelism=1, **settings)
    env.generate(lambda index: index, count).process(Logging(name, level), name="logging").collect(name="enabled")
    job = cluster.submit(env, name="talkative")
    job.wait(timeout=WAIT_S)
    return job.results("enabled")


def test_records_are_handled_by_the_users_loggers_and_say_where_they_come_from(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture, levels: Callable[[str, int], None]
) -> None:
    levels("myapp", logging.INFO)
    assert set(logged(shared_cluster, "myapp.trips", logging.INFO)) == {True}
    mine: list[Any] = [record for record in caplog.records if record.name == "myapp.trips"]
    assert [record.getMessage() for record in mine] == ["at 0", "at 1", "at 2"]
    for record in mine:
        assert (record.levelname, record.funcName, record.pathname) == ("INFO", "process_batch", __file__)
        assert (record.job_name, record.operator, record.subtask, record.attempt) == ("talkative", "logging", 0, 0)
        assert record.task_manager.startswith("tm-")
        assert record.request == f"r{record.getMessage()[3:]}"
        assert record.process != os.getpid()


def test_what_is_off_is_not_even_made(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture, levels: Callable[[str, int], None]
) -> None:
    levels("myapp", logging.WARNING)
    assert set(logged(shared_cluster, "myapp.trips", logging.INFO)) == {False}
    levels("myapp", logging.DEBUG)
    logging.disable(logging.INFO)
    try:
        assert set(logged(shared_cluster, "myapp.trips", logging.INFO)) == {False}
        assert set(logged(shared_cluster, "myapp.trips", logging.WARNING)) == {True}
    finally:
        logging.disable(logging.NOTSET)
    assert [record.levelname for record in caplog.records if record.name.startswith("myapp")] == ["WARNING"] * 3


def test_a_flood_of_records_is_cut_and_counted_and_the_job_is_done(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture, levels: Callable[[str, int], None]
) -> None:
    levels("myapp", logging.INFO)
    logged(shared_cluster, "myapp", logging.INFO, count=20_000)
    deadline = time.monotonic() + WAIT_S
    mine = told = 0
    while mine + told < 20_000 and time.monotonic() < deadline:  # what is left may come after the job's end
        time.sleep(0.02)
        records: list[Any] = list(caplog.records)
        mine = sum(record.name == "myapp" for record in records)
        told = sum(record.args[0] for record in records if "log records of tm-" in record.getMessage())
    assert 1000 <= mine < 20_000
    assert mine + told == 20_000


@pytest.mark.chaos
def test_a_killed_process_loses_at_most_the_records_of_a_moment(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture, levels: Callable[[str, int], None], tmp_path: Path
) -> None:
    levels("myapp", logging.INFO)
    mark = Mark(tmp_path, "killed")

    class Dying(Operator):
        def process_batch(self, batch: Any, out: Collector) -> None:
            if mark.take():
                logging.getLogger("myapp").info("last words")
                time.sleep(1)
                os.kill(os.getpid(), signal.SIGKILL)

    env = environment(parallelism=1)
    env.generate(lambda index: index, 10).sink_to(Dying, name="dying")
    shared_cluster.submit(env).wait(timeout=WAIT_S)
    assert "last words" in [record.getMessage() for record in caplog.records]
