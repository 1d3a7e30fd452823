"""StandingProcess: what the JobManager's and a TaskManager's process have in common when they stand alone: a pid file,
the name of a log file (log_files), and an end by SIGTERM or SIGINT.

The pid file is locked from before it has its name until its process ends in whatever way, so a file without a lock is
one that a killed process has left: a process id alone may be somebody else's by now.

    <run.dir>/jobmanager.json       pid, address, log file
    <run.dir>/taskmanager-1.json    of several on one host: -2, -3, ...
    <log.dir>/jobmanager.log, .log.1, ...
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Literal

from ...state.full_disk import folder_named
from .errors import InvalidSettings, ProcessFailed
from .folders import made_folder, usable
from .settings import HostSettings

log = logging.getLogger(__name__)

Role = Literal["jobmanager", "taskmanager"]
_MOST_OF_A_ROLE = 1_000


@dataclass(frozen=True, slots=True)
class ProcessState:
    """What a pid file says."""

    role: str
    name: str
    """`jobmanager`, or `taskmanager-1` and so on."""
    pid: int
    address: str
    """Of its actor system, once that listens; empty before."""
    log_file: str
    is_ready: bool = False
    """A JobManager listens, or waits to lead; a TaskManager is registered, for the first time."""
    storage: str = ""
    """The storage.dir of its cluster; empty: of an earlier release, which did not say it."""

    def __str__(self) -> str:
        if self.role == "jobmanager" and self.is_ready and not self.address:
            return f"{self.name}, process {self.pid}, waits to lead; its log is {self.log_file}"
        at = f" at {self.address}" if self.address else ""
        what = "registered" if self.role == "taskmanager" else "listening"
        not_yet = "" if self.is_ready else f", not yet {what}"
        return f"{self.name}, process {self.pid}{at}{not_yet}; its log is {self.log_file}"


class PidFile:
    """Of this process, from its making until `close` or the process's end. Raises ProcessFailed when another one of the
    name runs.
    """

    def __init__(self, folder: str | Path, role: Role, log_dir: str, storage: str = "") -> None:
        self._folder = made_folder("run.dir", folder, 0o700)
        self._lock = threading.Lock()
        with usable("run.dir", self._folder), _alone_in(self._folder):
            self._file, name = self._take(role)
            log_file = str(Path(log_dir) / f"{name}.log")
            self.state = ProcessState(role, name, os.getpid(), "", log_file, storage=storage)
            self._write()

    def update(self, *, address: str | None = None, is_ready: bool = False) -> None:
        """What is new. Any thread may call it."""
        with self._lock:
            if self._file.closed:
                return
            was = self.state
            self.state = ProcessState(
                was.role,
                was.name,
                was.pid,
                was.address if address is None else address,
                was.log_file,
                is_ready or was.is_ready,
                was.storage,
            )
            self._write()

    def close(self) -> None:
        with self._lock, _alone_in(self._folder):
            if not self._file.closed:
                _path(self._folder, self.state.name).unlink(missing_ok=True)
                self._file.close()

    def _take(self, role: Role) -> tuple[IO[str], str]:
        names = [role] if role == "jobmanager" else [f"{role}-{number}" for number in range(1, _MOST_OF_A_ROLE)]
        for name in names:
            file = _locked(_path(self._folder, name))
            if file is not None:
                return file, name
        running = _read(_path(self._folder, names[0]))
        pid = f"process {running.pid}" if running else "another process"
        raise ProcessFailed(f"{names[0]} runs here already ({pid}, {self._folder}): stop it first, with --stop")

    def _write(self) -> None:
        """In place: the lock is the file's, not the name's. A reader that comes in between reads again. It is cut off
        last, so that a disk which is full by now has room for it still.
        """
        with folder_named(f"{self._folder}/", is_local=True):
            self._file.seek(0)
            json.dump(asdict(self.state), self._file)
            self._file.flush()
            self._file.truncate()


def running_processes(folder: str | Path, role: Role | None = None) -> list[ProcessState]:
    """The processes of this host that have pid files here and run. Files of those that are gone are removed. Raises
    InvalidSettings where a file lies in the folder's place, or this user may not use it.
    """
    found: list[ProcessState] = []
    with usable("run.dir", folder):
        if not Path(folder).is_dir():
            if Path(folder).exists():
                raise InvalidSettings(f"run.dir: {folder} is no folder: name one, or remove what lies there")
            return []
        with _alone_in(Path(folder)):
            for path in sorted(Path(folder).glob(f"{role or ''}*.json")):
                free = _locked(path)
                if free is not None:
                    path.unlink(missing_ok=True)
                    free.close()
                elif (state := _read(path)) is not None:
                    found.append(state)
    return found


def other_cluster(state: ProcessState, settings: HostSettings) -> str:
    """What is wrong, and what to do, if this process is one of another cluster; else nothing."""
    if state.storage in ("", settings.storage_dir):
        return ""
    return (
        f"{state.name}, process {state.pid}, belongs to another cluster, which has the same run.dir "
        f"({settings.run_dir}): its storage.dir is {state.storage}, and this one's is {settings.storage_dir}. Nothing "
        "was done to it. If nobody needs that one, end it: `understudy cluster stop` with its settings, in the folder "
        "where it was started. Else give this cluster a run.dir and a log.dir of its own"
    )


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Nobody else takes or tries locks in this folder as long as the context lasts."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _locked(path: Path) -> IO[str] | None:
    """The file, locked; None if somebody else has the lock."""
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _read(path: Path) -> ProcessState | None:
    """None of a file that is being written just now, or is no such file."""
    try:
        said = json.loads(path.read_text())
        state = ProcessState(**said)
    except (OSError, ValueError, TypeError):
        return None
    return state if isinstance(state.pid, int) else None


# -- the end


def has_terminal() -> bool:
    """Whether this process is one of a terminal, as where somebody has typed its command."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


class Stop:
    """Requested by SIGTERM, SIGINT or a terminal's SIGHUP, or by `request`; `wait` returns then, with why. On the main
    thread.

    A queue carries that, whose `put` may come in the middle of its `get`, as in a signal's handler.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.reason = ""

    def request(self, reason: str) -> None:
        """Any thread may call it; the first reason counts."""
        self.reason = self.reason or reason
        self._queue.put(None)

    def nudge(self) -> None:
        """Let `wait` look again; any thread may call it."""
        self._queue.put(None)

    def wait(self, is_over: Callable[[], bool] = lambda: False) -> str:
        """Until it is requested, or something else is over, which is looked at after each nudge; the reason, empty if
        it was not requested.
        """
        while not self.reason and not is_over():
            self._queue.get()
        return self.reason

    def pause(self, seconds: float) -> None:
        """For so long, or until it is requested."""
        until = time.monotonic() + seconds
        while not self.reason and (left := until - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                self._queue.get(timeout=left)

    def unless(self, work: Callable[[], object], withdraw: Callable[[], None]) -> bool:
        """Do blocking work on a thread of its own; whether it was done. If this is requested before, `withdraw` has to
        end the work. Raises what the work raises.
        """
        errors: list[BaseException] = []
        done = threading.Event()

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - it is raised again, on the main thread
                errors.append(error)
            finally:
                done.set()
                self.nudge()

        thread = threading.Thread(target=run, name="understudy-waiting", daemon=True)
        thread.start()
        if self.wait(done.is_set) and not done.is_set():
            withdraw()
        thread.join()
        if errors and not self.reason:
            raise errors[0]
        return not errors

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """As long as the context lasts. SIGHUP stays ignored where it is, as `nohup` wants it; and it is ignored where
        no terminal can hang up: to daemons it is sent to have log files opened again.
        """

        def came(number: int, _frame: FrameType | None) -> None:
            self.request(signal.Signals(number).name)

        before = {number: signal.signal(number, came) for number in (signal.SIGTERM, signal.SIGINT)}
        if not has_terminal():
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, came)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
