"""The jobs that the cluster tests run, what they must put out to the last record, and a witness of their events.

`counting` is the main one: record i of `count` belongs to key i % KEYS, and the keyed operator numbers each key's
records. A lost, doubled or reordered record, or state that does not fit the sources' offsets, shows in its output.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pyarrow.parquet as pq

from understudy import END, JobHandle, KeyedOperator, Operator, StreamEnvironment, ValueState, fixed_delay
from understudy.actors.operators.collector import Collector
from understudy.messages import CheckpointCompleted, JobStatus, JobStatusChanged, TaskManagerChanged
from understudy.runtime.api.stream import DataStream
from understudy.runtime.connectors import GeneratorSource
from understudy.runtime.connectors.files.folder_owner import FOLDER as OWNER
from understudy.state.root_mark import MARK

KEYS = 24
"""A multiple of every parallelism used here: each key comes from one source subtask, in order."""

WAIT_S = 120
"""How long a test waits for what must come; nothing here asserts that something is fast."""

E = TypeVar("E")
Counts = Counter[tuple[int, int, int]]


def environment(**settings: Any) -> StreamEnvironment:
    """Checkpoints every 50 ms, and many immediate restarts."""
    chosen = {"checkpoint_interval_ms": 50, "restart_strategy": fixed_delay(attempts=50, delay_ms=0)} | settings
    return StreamEnvironment(**chosen)


class Counting(KeyedOperator):
    """Numbers the records of each key, from 1."""

    seen = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        number = self.seen.value() + 1
        self.seen.update(number)
        out.collect({"key": self.key, "number": number, "index": record})

    def on_receive(self, message: Any) -> Any:
        match message:
            case "seen":
                return self.seen.value()
            case "change":
                self.seen.update(0)
            case ["raise", text]:
                raise ValueError(text)
        return None


class Heavy(Counting):
    """With keyed state too large to travel in a message, so that it lies in files of its own."""

    ballast = ValueState(bytes)

    def process(self, record: int, out: Collector) -> None:
        if self.ballast.value() is None:
            self.ballast.update(os.urandom(4096))
        super().process(record, out)


class Gate:
    """Keeps a job from its end until the test opens it, so that what the test does to the job meets it at work,
    however late the test comes.
    """

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "gate")

    def open(self) -> None:
        """In the test."""
        Path(self._path).touch()

    @property
    def is_open(self) -> bool:
        return os.path.exists(self._path)


class Gated:
    """Mixin of a PacedSource: it gives all its records, and ends when the gate is open."""

    gate: Gate
    waits = False

    def poll(self) -> Any:
        batch = super().poll()  # type: ignore[misc]
        self.waits = batch is END and not self.gate.is_open
        return None if self.waits else batch

    def poll_delay_ms(self) -> float | None:
        return 10.0 if self.waits else super().poll_delay_ms()  # type: ignore[misc, no-any-return]


class GatedGenerator(Gated, GeneratorSource):
    def __init__(self, gate: Gate, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.gate = gate


def hold(env: StreamEnvironment, gate: Gate) -> None:
    """The job does not end before the gate is open: beside all else it has a source without records."""
    env.from_source(GatedGenerator(gate, int, 0, None), name="gate", parallelism=1).collect(name="held")


def counting(
    env: StreamEnvironment,
    count: int | None,
    rate: float | None,
    operator: KeyedOperator | type[KeyedOperator] = Counting,
    *,
    gate: Gate | None = None,
    **options: Any,
) -> DataStream:
    """`count` indexes at `rate` per second, numbered within their keys by an operator called "count"."""
    return (
        generated(env, count, rate, gate, "numbers")
        .key_by(lambda index: index % KEYS)
        .process(operator, name="count", **options)
    )


def generated(
    env: StreamEnvironment,
    count: int | None,
    rate: float | None,
    gate: Gate | None,
    name: str,
    *,
    function: Callable[..., Any] = lambda index: index,
    **options: Any,
) -> DataStream:
    """0, 1, 2, ..., or what `function` makes of them; the end waits for the gate, if there is one."""
    if gate is None:
        return env.generate(function, count, records_per_second=rate, name=name, **options)
    settings = {} if env.batch_rows is None else {"batch_rows": env.batch_rows}
    return env.from_source(GatedGenerator(gate, function, count, rate, **settings), name=name, **options)


def counted(count: int) -> Counts:
    """What `counting` must put out."""
    return Counter((index % KEYS, index // KEYS + 1, index) for index in range(count))


def assert_no_gap(found: Counts) -> None:
    """That it is what `counting` puts out until it is stopped: of each key all numbers, up to some last one."""
    last = Counter(key for key, _, _ in found)
    assert len(last) == KEYS
    assert found == Counter((key, n + 1, n * KEYS + key) for key, numbers in last.items() for n in range(numbers))


def counts_of(records: list[dict[str, Any]]) -> Counts:
    return Counter((int(each["key"]), int(each["number"]), int(each["index"])) for each in records)


def read_records(path: Path, format: str) -> list[dict[str, Any]]:
    """Every record of one committed file; raises if the file is not whole."""
    if format == "parquet":
        return pq.read_table(path).to_pylist()
    text = path.read_text()
    assert text.endswith("\n"), f"{path} is cut off"
    if format == "jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(text.splitlines()))


def visible_files(folder: Path) -> list[Path]:
    """What a reader such as Spark sees: neither hidden files nor folders."""
    if not folder.exists():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))


def read_output(folder: Path, format: str) -> Counts:
    return counts_of([record for path in visible_files(folder) for record in read_records(path, format)])


def all_names(folder: Path) -> set[str]:
    """Everything in the folder at any depth, hidden or not, but for its committed files, and whose folder it is."""
    known = {path.name for path in visible_files(folder) if path.is_file()}
    known |= {OWNER, *(path.name for path in (folder / OWNER).glob("*"))}
    return {name for _, folders, files in os.walk(folder) for name in (*folders, *files)} - known


class Reader(threading.Thread):
    """Reads the output folder over and over while the job runs, as any other program might."""

    def __init__(self, folder: Path, format: str, wanted: Counts) -> None:
        super().__init__(name="reader", daemon=True)
        self.problems: list[str] = []
        self.reads = 0
        self._folder, self._format, self._wanted = folder, format, wanted
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.02):
            try:
                unwanted = read_output(self._folder, self._format) - self._wanted
            except Exception as error:  # noqa: BLE001  (whatever a reader meets is what this is about)
                self.problems.append(repr(error))
            else:
                self.problems += [f"read what was never to be: {unwanted}"] if unwanted else []
            self.reads += 1

    def __enter__(self) -> Reader:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


class Witness:
    """Keeps a job's events, and waits for them."""

    def __init__(self, job: JobHandle) -> None:
        self.events: list[Any] = []
        self._killed: set[int] = set()
        self._changed = threading.Condition()
        job.on_event(self._on_event)

    def _on_event(self, event: Any) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in list(self.events) if isinstance(event, kind)]

    def wait(self, until: Callable[[], Any], what: str = "an event") -> Any:
        """Wait until `until()`, looked at after each event, is true; returns its value."""
        with self._changed:
            assert self._changed.wait_for(until, WAIT_S), f"waited in vain for {what}; came: {self.events[-5:]}"
            return until()

    def checkpoints(self, at_least: int = 1) -> list[CheckpointCompleted]:
        """Wait for so many more completed checkpoints."""
        wanted = len(self.of(CheckpointCompleted)) + at_least
        self.wait(lambda: len(self.of(CheckpointCompleted)) >= wanted, f"{at_least} checkpoints")
        return self.of(CheckpointCompleted)

    def status(self, status: JobStatus, times: int = 1) -> None:
        """Wait until the job has come to `status` so many times."""
        self.wait(lambda: self.statuses().count(status) >= times, status.value)

    def statuses(self) -> list[JobStatus]:
        return [event.status for event in self.of(JobStatusChanged)]

    def kill(self, pid: int) -> None:
        """It is none of `pids` any more, whether its loss is known already or not."""
        self._killed.add(pid)
        kill(pid)

    def pids(self, at_least: int) -> dict[int, int]:
        """TaskManager index -> process id, of those that are registered and not killed here, once there are so many."""
        self.wait(lambda: len(self._pids()) >= at_least, f"{at_least} TaskManagers")
        return self._pids()

    def _pids(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for event in self.of(TaskManagerChanged):
            if event.registered:
                found[event.index] = event.pid
            elif found.get(event.index) == event.pid:
                del found[event.index]
        return {index: pid for index, pid in found.items() if pid not in self._killed}


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def template_of(task_manager_pid: int) -> psutil.Process:
    parent = psutil.Process(task_manager_pid).parent()
    assert parent is not None
    return parent


class Mark:
    """A file by which code in a TaskManager tells the test where it is, once in the job's life."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = str(folder / name)

    def take(self) -> bool:
        """In the TaskManager: True for the first who comes, in whichever process. The file says who that is."""
        try:
            handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        os.write(handle, str(os.getpid()).encode())
        os.close(handle)
        return True

    def wait(self) -> int:
        """In the test: wait for it; returns the process id."""
        eventually(lambda: os.path.exists(self.path) and os.path.getsize(self.path) > 0, self.path)
        return int(Path(self.path).read_text())


def eventually(condition: Callable[[], Any], what: str = "", within_s: float = WAIT_S) -> Any:
    """Wait for something outside of the runtime: a process's end, a file."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what or condition}"
        time.sleep(0.01)
    return found


class Passing(Operator):
    """Hands on what comes."""

    takes = "any"

    def process_batch(self, batch: Any, out: Collector) -> None:
        out.emit(batch)


def files_below(folder: Path) -> set[str]:
    """Files and folders, but for the mark of a checkpoint directory; `os.walk` does not mind when they go meanwhile."""
    found = (os.path.join(root, name) for root, folders, files in os.walk(folder) for name in (*folders, *files))
    return {os.path.relpath(path, folder) for path in found} - {MARK}
