"""A process that has imported the command line, and forks each command from itself, as a cluster's template forks its
TaskManagers: to start Python and import everything takes most of a second, a fork takes some milliseconds.

Run as a script it is that process; imported it is the tests' side of it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

_LENGTH = struct.Struct("!I")
COMMANDS = ("info", "jobs", "run", "savepoint")
"""Their modules are imported beforehand."""


class Command:
    """One that runs; what `subprocess.Popen` has under the same names."""

    def __init__(self, pid: int, stdout: int, stderr: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout, self.stderr = open(stdout), open(stderr)  # noqa: SIM115 - closed when read to the end
        self._status = status

    def poll(self) -> int | None:
        return self.wait(0)

    def wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int(os.read(self._status, 16))
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What it has still to say. Raises subprocess.TimeoutExpired."""
        deadline, said = time.monotonic() + timeout, ["", ""]
        readers = [
            threading.Thread(target=_read, args=(stream, said, place), daemon=True)
            for place, stream in enumerate((self.stdout, self.stderr))
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
        ended = self.wait(max(0.0, deadline - time.monotonic()))
        if ended is None or any(reader.is_alive() for reader in readers):
            raise subprocess.TimeoutExpired(str(self.pid), timeout, *said)
        return said[0], said[1]


def _read(stream: IO[str], said: list[str], place: int) -> None:
    if not stream.closed:
        with stream:
            said[place] = stream.read()


class Prepared:
    """The tests' side."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )

    def start(self, arguments: tuple[str, ...], folder: Path, env: dict[str, str]) -> Command:
        """`understudy ARGUMENTS` in a session of its own."""
        with contextlib.ExitStack() as theirs:
            ours, lent = [], []
            for _ in range(3):  # standard output, standard error, the exit code
                read, write = os.pipe()
                theirs.callback(os.close, write)
                ours.append(read)
                lent.append(write)
            wanted = json.dumps({"arguments": arguments, "folder": str(folder), "env": env}).encode()
            socket.send_fds(self._control, [_LENGTH.pack(len(wanted))], lent)
            self._control.sendall(wanted)
        return Command(_LENGTH.unpack(_exactly(self._control, _LENGTH.size))[0], *ours)

    def close(self) -> None:
        self._control.close()
        self._process.wait()


def _exactly(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = peer.recv(size - len(data))
        if not part:
            raise ConnectionError("the process that forks commands is gone")
        data += part
    return data


# ---------------------------------------------------------------------------- in the process that forks


def _wanted(control: socket.socket) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """Requests, until the tests' side closes; meanwhile exit codes are passed on."""
    child_ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready = select.select([control, child_ended], [], [])[0]
        if child_ended in ready:
            os.read(child_ended, 4096)
            _pass_on_exit_codes()
        if control in ready:
            header, fds, _, _ = socket.recv_fds(control, _LENGTH.size, 3)
            if not header:
                return
            yield json.loads(_exactly(control, _LENGTH.unpack(header)[0])), fds


_statuses: dict[int, int] = {}
"""Where to write the exit code of a command, by its process id."""


def _pass_on_exit_codes() -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = _statuses.pop(ended[0])
            with contextlib.suppress(BrokenPipeError):
                os.write(status, str(os.waitstatus_to_exitcode(ended[1])).encode())
            os.close(status)


def _become(wanted: dict[str, Any], streams: list[int]) -> None:
    """This process is that command from now on."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    for status in _statuses.values():
        os.close(status)
    for fd, stream in enumerate([os.open(os.devnull, os.O_RDONLY), *streams]):
        os.dup2(stream, fd)
        os.close(stream)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115 - for as long as the process lives
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["folder"])
    tempfile.tempdir = None
    sys.path[0] = wanted["folder"]
    sys.argv = ["understudy", *wanted["arguments"]]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    for name in COMMANDS:
        import_module(f"understudy.runtime.cli.{name}")
    gc.enable()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        for wanted, (stdout, stderr, status) in _wanted(control):
            pid = os.fork()
            if pid == 0:
                os.close(status)
                control.close()
                _become(wanted, [stdout, stderr])
                break
            os.close(stdout)
            os.close(stderr)
            _statuses[pid] = status
            control.sendall(_LENGTH.pack(pid))
        else:
            return
    import_module("understudy.runtime.cli").main()


if __name__ == "__main__":
    main()
