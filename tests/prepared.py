"""A process that has imported the library, and forks others from itself: commands, scripts, and the template processes
of clusters, each with the arguments, environment, folder and streams that a new interpreter would have. To start Python
and import everything takes most of a second of the processor; a fork takes some milliseconds.

Run as a script it is that process; imported it is the tests' side of it. Whoever wants a process connects to its socket
(so do commands, for the templates of their clusters) and sends one request; the process id comes back at once, and the
exit code when the process has ended. What such a process has in /proc is this one's environment: it is known by its
folder, or by its process group.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

_LENGTH = struct.Struct("!I")
_PR_SET_CHILD_SUBREAPER = 36
_WHERE, _DUMPED_SECONDS = signal.SIGUSR1, 5.0
"""To a process that does not end: it says on standard error where its threads are, in this time."""
_SOCKET = "UNDERSTUDY_TEST_PREPARED"
"""Environment variable: where the process listens."""
IMPORTED = (
    "cli.cluster",
    "cli.info",
    "cli.jobs",
    "cli.run",
    "cli.savepoint",
    "cli.standing",
    "cli.submit",
    "clusters.local_cluster",
    "clusters.task_manager_process",
    "clusters.template",
)
"""Modules of `runtime`, imported beforehand."""


PATIENCE_SECONDS = 900
"""How long a program has, less than the test that runs it (`timeout` in setup.cfg). On a quiet machine the longest,
with Spark, takes 60; no test depends on the machine's pace."""


class Started:
    """A process that was forked, to whoever has asked for it: `wait` is that of `subprocess.Popen`."""

    def __init__(self, connection: socket.socket) -> None:
        self.returncode: int | None = None
        self._connection = connection
        self.pid = _LENGTH.unpack(_exactly(connection, _LENGTH.size))[0]

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            with self._connection:
                self.returncode = int(_exactly(self._connection, 4))
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class StillRuns(subprocess.TimeoutExpired):
    """With what it had said, and where its threads were."""

    def __init__(self, pid: int, timeout: float, said: str) -> None:
        super().__init__(f"process {pid}", timeout)
        self.said = said

    def __str__(self) -> str:
        return f"{super().__str__()}. It had said:\n{self.said}"


class Command(Started):
    """One with streams that are read here; what `subprocess.Popen` has under the same names."""

    def __init__(self, connection: socket.socket, stdout: int, stderr: int) -> None:
        super().__init__(connection)
        self.stdout, self.stderr = open(stdout), open(stderr)  # noqa: SIM115 - closed when read to the end

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What it has still to say. Raises StillRuns."""
        deadline, said = time.monotonic() + timeout, (list[str](), list[str]())
        readers = [
            threading.Thread(target=_read, args=(stream, lines), daemon=True)
            for stream, lines in zip((self.stdout, self.stderr), said, strict=True)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
        if any(reader.is_alive() for reader in readers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, _WHERE)
            readers[1].join(_DUMPED_SECONDS)
            raise StillRuns(self.pid, timeout, "".join([*said[0], *said[1]]))
        self.wait(max(0.0, deadline - time.monotonic()))
        return "".join(said[0]), "".join(said[1])


def _read(stream: IO[str], lines: list[str]) -> None:
    if not stream.closed:
        with stream:
            lines.extend(iter(stream.readline, ""))


class Prepared:
    """The tests' side. `folder`: for the socket."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "prepared")
        self._alive, theirs = socket.socketpair()
        with socket.socket(socket.AF_UNIX) as listener, theirs:
            listener.bind(self._path)
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno()), str(theirs.fileno())],
                env=os.environ | {_SOCKET: self._path},
                pass_fds=[listener.fileno(), theirs.fileno()],
            )

    def start(self, arguments: tuple[str, ...], folder: Path, env: dict[str, str], what: str = "command") -> Command:
        """`understudy ARGUMENTS`, or with `what="script"` `python ARGUMENTS`, in a session of its own."""
        with contextlib.ExitStack() as theirs:
            ours, lent = [], []
            for _ in range(2):  # standard output, standard error
                read, write = os.pipe()
                theirs.callback(os.close, write)
                ours.append(read)
                lent.append(write)
            return Command(_ask(self._path, what, arguments, str(folder), env, lent), *ours)

    def run(self, *arguments: str, folder: Path, timeout: float = PATIENCE_SECONDS) -> subprocess.CompletedProcess[str]:
        """`python ARGUMENTS`, to its end."""
        script = self.start(arguments, folder, dict(os.environ), "script")
        try:
            out, err = script.communicate(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(script.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(arguments, script.wait(), out, err)

    def start_template(self, control: socket.socket, work_dir: str, stdout: int, stderr: int) -> Started:
        """In place of `understudy.runtime.clusters.local_launcher.start_template`."""
        return _start_template(self._path, control, work_dir, stdout, stderr)

    def close(self) -> None:
        self._alive.close()
        self._process.wait()


def _start_template(path: str, control: socket.socket, work_dir: str, stdout: int, stderr: int) -> Started:
    lent = [stdout, stderr, control.fileno()]
    return Started(_ask(path, "template", (work_dir,), os.getcwd(), dict(os.environ), lent))


def _ask(
    path: str, what: str, arguments: tuple[str, ...], folder: str, env: dict[str, str], fds: list[int]
) -> socket.socket:
    wanted = json.dumps({"what": what, "arguments": arguments, "folder": folder, "env": env}).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    socket.send_fds(connection, [_LENGTH.pack(len(wanted))], fds)
    connection.sendall(wanted)
    return connection


def _exactly(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = peer.recv(size - len(data))
        if not part:
            raise ConnectionError("the process that forks others is gone")
        data += part
    return data


# ---------------------------------------------------------------------------- in the process that forks

Wanted = dict[str, Any]
_waiting: dict[int, socket.socket] = {}
"""Who waits for the exit code of a process, by its id."""


def _wanted(listener: socket.socket, alive: socket.socket) -> Iterator[tuple[Wanted, list[int], socket.socket]]:
    """Requests, until the tests' side closes; meanwhile exit codes are passed on."""
    child_ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready = select.select([listener, alive, child_ended], [], [])[0]
        if child_ended in ready:
            os.read(child_ended, 4096)
            _pass_on_exit_codes()
        if alive in ready:
            return
        if listener in ready:
            connection = listener.accept()[0]
            header, fds, _, _ = socket.recv_fds(connection, _LENGTH.size, 3)
            yield json.loads(_exactly(connection, _LENGTH.unpack(header)[0])), fds, connection


def _pass_on_exit_codes() -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            waiting = _waiting.pop(ended[0], None)  # nobody, for a process that has lost its parent
            if waiting is not None:
                with waiting, contextlib.suppress(OSError):
                    waiting.sendall(b"%4d" % os.waitstatus_to_exitcode(ended[1]))


def _become(wanted: Wanted, streams: list[int]) -> None:
    """This process is the one wanted from now on."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for waiting in _waiting.values():
        waiting.close()
    for fd, stream in enumerate([os.open(os.devnull, os.O_RDONLY), *streams]):
        os.dup2(stream, fd)
        os.close(stream)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115 - for as long as the process lives
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    faulthandler.register(_WHERE)
    path = os.environ[_SOCKET]
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["folder"])
    tempfile.tempdir = None
    if wanted["what"] == "template":
        os.setpgid(0, 0)
    else:
        os.setsid()
        launcher = import_module("understudy.runtime.clusters.local_launcher")
        launcher.start_template = lambda *args: _start_template(path, *args)  # type: ignore[attr-defined]


def _command(wanted: Wanted) -> None:
    sys.path[0], sys.argv = wanted["folder"], ["understudy", *wanted["arguments"]]
    import_module("understudy.runtime.cli").main()


def _script(wanted: Wanted) -> None:
    sys.path[0], sys.argv = wanted["folder"], list(wanted["arguments"])
    runpy.run_path(os.path.abspath(sys.argv[0]), run_name="__main__")


def _template(wanted: Wanted) -> None:
    sys.path[0], sys.argv = "", ["-c", str(wanted["control"]), *wanted["arguments"]]
    import_module("understudy.runtime.clusters.template").main()


_WHAT: dict[str, Callable[[Wanted], None]] = {"command": _command, "script": _script, "template": _template}


def _prepare() -> None:
    """What a new interpreter would import; and processes that lose their parent are this one's children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    gc.disable()
    for name in IMPORTED:
        import_module(f"understudy.runtime.{name}")
    import_module("pyarrow").array([0])  # imports pandas
    gc.enable()
    gc.freeze()


def _leave_whole() -> None:
    """At the end of each process: Python does not take apart the modules that were there before it was forked. That
    would touch every page of memory, and each is copied first. Whatever is its own goes as it does everywhere.
    """
    for name in _BEFORE:
        module = sys.modules.pop(name, None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))


_BEFORE: list[str] = []


def main() -> None:
    atexit.register(_leave_whole)  # before all others, to be called after them
    _prepare()
    _BEFORE.extend(set(sys.modules) - {"__main__", "builtins", "sys"})
    with socket.socket(fileno=int(sys.argv[1])) as listener, socket.socket(fileno=int(sys.argv[2])) as alive:
        wanted = _serve(listener, alive)
    if wanted is not None:
        _WHAT[wanted["what"]](wanted)


def _serve(listener: socket.socket, alive: socket.socket) -> Wanted | None:
    """Fork what is wanted. Returns in each forked process what it is, and None in the end."""
    for wanted, fds, connection in _wanted(listener, alive):
        pid = os.fork()
        if pid == 0:
            connection.close()
            if wanted["what"] == "template":
                wanted["control"] = fds.pop()
            _become(wanted, fds)
            return wanted
        for fd in fds:
            os.close(fd)
        _waiting[pid] = connection
        with contextlib.suppress(OSError):  # who has asked is gone
            connection.sendall(_LENGTH.pack(pid))
    return None


if __name__ == "__main__":
    main()
