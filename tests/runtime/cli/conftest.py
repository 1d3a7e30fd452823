"""The command line as a person uses it: processes of their own, in a folder and a temporary folder of their own.

They, and the template processes of their clusters, are forked from one that has everything imported
(tests/prepared.py); test_demo and test_docs start commands and clusters as users do.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest

from understudy import CurveKeys, RemoteCluster
from understudy.messages import JobId

from ...prepared import Command, Prepared
from ..clusters import jobs

PROGRAM = """
import logging
import os
import sys
import time

import pyarrow as pa
from understudy import KeyedOperator, StreamEnvironment, ValueState, fixed_delay, no_restart


class Counting(KeyedOperator):
    seen = ValueState(int, default=0)

    def process(self, record, out):
        self.seen.update(self.seen.value() + 1)
        out.collect((self.key, self.seen.value(), record))


def build(count="", rate="500", retain="on_failure"):
    env = StreamEnvironment(
        checkpoint_interval_ms=200,
        checkpoint_dir="checkpoints",
        restart_strategy=no_restart(),
        retain_checkpoints=retain,
    )
    numbers = env.generate(
        lambda index: index, int(count) if count else None, records_per_second=float(rate), name="numbers"
    )
    numbers.key_by(lambda index: index % 4).process(Counting, name="counting").collect(name="counted")
    return env


class Sluggish(Counting):
    def on_checkpoint(self, checkpoint_id):
        while os.path.exists("wait"):
            time.sleep(0.01)


def sluggish():
    env = StreamEnvironment(checkpoint_dir="checkpoints")
    numbers = env.generate(lambda index: index, records_per_second=100.0, name="numbers")
    numbers.key_by(lambda index: index % 4).process(Sluggish, name="counting").collect(name="counted")
    return env


def failing():
    def explode(index):
        raise ZeroDivisionError(f"no luck with {index}")

    env = StreamEnvironment()
    env.generate(explode, 10, name="numbers").print()
    return env


def down():
    env = StreamEnvironment(checkpoint_dir="checkpoints", restart_strategy=fixed_delay(1, 3_600_000))
    env.generate(lambda index: 1 // (index - 5), 10, name="numbers").print()
    return env


def printing():
    env = StreamEnvironment()
    env.from_collection(["first", "second"]).print()
    return env


def talking():
    def talk(record):
        print("seen", record)
        print("oh", record, file=sys.stderr)
        logging.getLogger("myapp").info("at %s", record)
        return record

    env = StreamEnvironment(parallelism=1)
    env.from_collection(["first"]).map(talk).collect(name="out")
    return env


def odd():
    env = StreamEnvironment()
    rows = pa.RecordBatch.from_pydict({"word": ["w"], "n": [2]})
    columns = env.generate(lambda start, count: rows, 1, schema=rows.schema, name="rows")
    env.from_collection(["ä", "\\udcff", {"a": 1}]).union(columns.map(lambda row: row)).collect(name="out")
    return env


def raising():
    print("built")
    raise LookupError("no such table")


def unreadable():
    env = StreamEnvironment()
    env.from_files("nosuch://x", "csv").print()
    return env


def handed(env: StreamEnvironment):
    env.generate(lambda index: index, 10, name="numbers").print()


def forgetful():
    StreamEnvironment()


def with_spark(spark):
    env = StreamEnvironment()
    env.from_dataframe(spark.range(100).toDF("n"), name="numbers").map(lambda row: row.n).collect(name="numbers-out")
    return env


def endless_on_spark(spark):
    return build()


ready = printing()
"""

WAIT_S = 400
"""How long a test waits for what must come; nothing here asserts that something is fast, and a JVM may be starved."""

E = Any


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        if not self.out:
            pytest.fail(f"exit code {self.code}, and nothing but: {self.err}")
        return json.loads(self.out)


class Shell:
    """Runs `understudy` in a folder that holds `job.py`."""

    def __init__(self, folder: Path, prepared: Prepared) -> None:
        self.folder = folder
        self._prepared = prepared
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("UNDERSTUDY_")}
        self.env["TMPDIR"] = str(self.temporary)
        self.started: list[subprocess.Popen[str] | Command] = []
        (folder / "job.py").write_text(PROGRAM)

    def __call__(self, *arguments: str, **env: str) -> Done:
        """Run a command to its end."""
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=WAIT_S)
        return Done(process.returncode, out, err)

    def start(self, *arguments: str, **env: str) -> Command:
        process = self._prepared.start(arguments, self.folder, self.env | env)
        self.started.append(process)
        return process

    def run(self, *arguments: str) -> Running:
        """Start `run`, and read the three lines with which it begins."""
        process = self.start("run", *arguments)
        said = dict(process.stdout.readline().rstrip("\n").partition(" ")[::2] for _ in range(3))
        if set(said) != {"job", "jobmanager", "key-file"}:
            pytest.fail(f"`run` began with {said}: {process.communicate(timeout=WAIT_S)}")
        return Running(process, said["job"], said["jobmanager"], said["key-file"])

    def left_behind(self) -> list[str]:
        """Processes and temporary files of whatever was started here."""
        mine = {process.pid for process in self.started}
        running = [
            str(process)
            for process in psutil.process_iter(["status", "environ", "cwd"])
            if process.pid not in mine
            and process.info["status"] != psutil.STATUS_ZOMBIE
            and (
                process.info["cwd"] == str(self.folder)
                or (process.info["environ"] or {}).get("TMPDIR") == str(self.temporary)
            )
        ]
        return running + [str(path) for path in self.temporary.iterdir()]

    def eventually_nothing_is_left(self) -> None:
        eventually(lambda: not self.left_behind(), lambda: f"left behind: {self.left_behind()}")

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=WAIT_S)


@dataclass(frozen=True)
class Running:
    """A `run` that has submitted its job."""

    process: Command
    job_id: str
    jobmanager: str
    key_file: str

    def until(self, condition: Callable[[RemoteCluster], E], what: str) -> E:
        """Wait for it in this process: a command for each look would start Python each time."""
        with RemoteCluster(self.jobmanager, CurveKeys.load(Path(self.key_file))) as client:
            return eventually(lambda: condition(client), what)

    def until_it_runs(self) -> None:
        """All its tasks."""
        self.until(lambda client: 0 < client.jobs()[0].tasks_running == client.jobs()[0].tasks_total, "running tasks")

    def until_checkpoints(self, at_least: int = 1) -> None:
        """So many of them have completed."""
        job_id = JobId(self.job_id)
        self.until(lambda client: client.checkpoints(job_id).completed >= at_least, "completed checkpoints")

    def end(self) -> Done:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=WAIT_S)
        return Done(self.process.returncode, out, err)

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> Done:
        os.killpg(self.process.pid, number)
        return self.end()


def eventually(condition: Callable[[], E], what: Callable[[], str] | str) -> E:
    """The condition's first true value."""
    deadline = time.monotonic() + WAIT_S
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(what if isinstance(what, str) else what())
        time.sleep(0.05)
    return value


@pytest.fixture
def shipped_by_value() -> Iterator[None]:
    """TaskManagers cannot import test modules."""
    cloudpickle.register_pickle_by_value(jobs)
    yield
    cloudpickle.unregister_pickle_by_value(jobs)


@pytest.fixture
def shell(tmp_path: Path, prepared: Prepared) -> Iterator[Shell]:
    with contextlib.closing(Shell(tmp_path, prepared)) as started:
        yield started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Shell]:
    """One shell for tests that do its job no harm."""
    with contextlib.closing(Shell(tmp_path_factory.mktemp("shared"), prepared)) as started:
        yield started


@pytest.fixture(scope="module")
def running(shared: Shell) -> Running:
    """Its job, which runs without end."""
    run = shared.run("job:build")
    run.until_it_runs()
    return run
