"""The template process: forks TaskManagers that have everything imported already.

A LocalCluster starts one template, a process that has imported the runtime and then only waits, in one thread. Asked
for a TaskManager it forks, which takes milliseconds where a new interpreter takes most of a second; and it tells how
each child ended. When the cluster's end of the socket closes, for whatever reason, it kills its children and ends.

Messages on the socket are pickled, from a parent to the child that it has spawned and back; it is not reachable from
outside.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import io
import mmap
import os
import pickle
import select
import shutil
import signal
import socket
import struct
import sys
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from .as_task_manager import preparing_task_managers

_FLAGS, _PF_EXITING = 5, 0x4
"""The place of `flags` in /proc/<pid>/stat, counted behind the state (proc(5)), and one of them (linux/sched.h)."""
_LENGTH = struct.Struct("!I")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_NEVER_REACHED = 1
_LINE_BUFFERED = 1
"""C's _IOLBF."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Cluster -> template: fork a process that calls `run_task_manager(launch)`.

    A byte follows that carries two descriptors: its standard output and standard error.
    """

    token: int
    launch: bytes
    warm_up: tuple[str, ...] = ()
    """Functions, as "module:name", to be called before, each once in the template's life."""


@dataclass(frozen=True, slots=True)
class Forked:
    """Template -> cluster: this is its process id."""

    token: int
    pid: int


@dataclass(frozen=True, slots=True)
class Kill:
    """Cluster -> template: SIGKILL that child, if it still runs."""

    token: int


@dataclass(frozen=True, slots=True)
class Exited:
    """Template -> cluster: that child is gone."""

    token: int
    reason: str
    was_ordered: bool = False
    """It still ran when its cluster had it killed."""
    code: int | None = None
    """Its exit code, that of a signal negative; None: it could not be forked."""
    never_reached: bool = False
    """See `task_manager_process.Ending`."""


def send(peer: socket.socket, message: object) -> None:
    """Write one length-prefixed message; blocks until it is written."""
    data = pickle.dumps(message)
    peer.sendall(_LENGTH.pack(len(data)) + data)


def receive(peer: socket.socket) -> Any | None:
    """Read one message; None when the other side has closed."""
    header = _read_exactly(peer, _LENGTH.size)
    if header is None:
        return None
    data = _read_exactly(peer, _LENGTH.unpack(header)[0])
    return None if data is None else pickle.loads(data)


def _read_exactly(peer: socket.socket, size: int) -> bytes | None:
    chunks = bytearray()
    while len(chunks) < size:
        try:
            chunk = peer.recv(min(size - len(chunks), 1 << 20))
        except ConnectionError:
            return None
        if not chunk:
            return None
        chunks += chunk
    return bytes(chunks)


def send_streams(peer: socket.socket, stdout: int, stderr: int) -> None:
    """Lend the other process these descriptors."""
    socket.send_fds(peer, [b"\0"], [stdout, stderr])


def receive_streams(peer: socket.socket) -> tuple[int, int] | None:
    """The other process's descriptors, as this one's own; None when the other side has closed. Raises OSError where
    this process may have no more of them.
    """
    data, fds, _, _ = socket.recv_fds(peer, 1, 2)
    if data and len(fds) < 2:
        for fd in fds:
            os.close(fd)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return (fds[0], fds[1]) if data else None


def forked() -> int:
    """As `os.fork`, of a process without threads of its own. Libraries may have some, as NumPy's BLAS and Arrow's
    allocator do, which are prepared for forks: Python's warning of them, from 3.12 on, is not shown.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        return os.fork()


def describe_exit_code(code: int) -> str:
    """How a process ended, as people say it; a negative code is a signal's."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal, which has no name
        return f"killed by signal {-code}"


class Template:
    """The loop of the template process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, int] = {}
        self._last_words: dict[int, mmap.mmap] = {}
        """By token: a page that is shared with the child. Exit codes belong to user code, so the child's last word is
        left here.
        """
        self._ordered: set[int] = set()
        """Of them, those that were killed here."""
        self._warm: set[str] = set()
        self._child_ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wake)

    def run(self) -> None:
        """Serve until the cluster closes its end; then leave no child behind."""
        _inherit_orphans()
        waited_for: list[Any] = [self._control, self._child_ended]
        try:
            while True:
                ready = select.select(waited_for, [], [])[0]
                if self._child_ended in ready:
                    os.read(self._child_ended, 4096)
                    self._reap(os.WNOHANG)
                if self._control in ready:
                    message = receive(self._control)
                    if message is None:
                        return
                    self._on(message)
        finally:
            for pid in self._children:
                self._kill(pid)
            self._reap(0)
            self._end_orphans()

    def _on(self, message: object) -> None:
        match message:
            case Fork(token, launch, warm_up):
                try:
                    streams = receive_streams(self._control)
                except OSError as error:
                    self._tell(Exited(token, f"could not be forked: {error}"))
                    return
                if streams is None:
                    return
                self._warm_up(warm_up)
                try:
                    self._fork(token, launch, streams)
                finally:
                    for fd in streams:
                        os.close(fd)
            case Kill(token):
                for pid, known in self._children.items():
                    if known == token:
                        self._kill(pid)

    def _kill(self, pid: int) -> None:
        if not is_ending(pid):
            self._ordered.add(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _warm_up(self, functions: tuple[str, ...]) -> None:
        for name in functions:
            if name not in self._warm:
                self._warm.add(name)
                module, _, function = name.partition(":")
                with preparing_task_managers(), contextlib.suppress(Exception):  # who needs it will tell what is wrong
                    getattr(import_module(module), function)()

    def _fork(self, token: int, launch: bytes, streams: tuple[int, int]) -> None:
        template = os.getpid()
        _flush()
        try:
            last_word = mmap.mmap(-1, 1)
            pid = forked()
        except OSError as error:  # too many processes, or too little memory: the others go on
            self._tell(Exited(token, f"could not be forked: {error}"))
            return
        if pid == 0:
            self._become_task_manager(launch, template, streams, last_word)
        self._children[pid], self._last_words[token] = token, last_word
        self._tell(Forked(token, pid))

    def _reap(self, options: int) -> None:
        while self._children or options:  # orphans are reaped too, and not waited for
            try:
                pid, status = os.waitpid(-1, options)
            except ChildProcessError:
                return
            if pid == 0:
                return
            token = self._children.pop(pid, None)
            if token is not None:
                self._end_orphans()
                was_ordered = pid in self._ordered
                self._ordered.discard(pid)
                code = os.waitstatus_to_exitcode(status)
                with self._last_words.pop(token) as last_word:
                    never_reached = last_word[0] == _NEVER_REACHED
                self._tell(Exited(token, describe_exit_code(code), was_ordered, code, never_reached))

    def _end_orphans(self) -> None:
        """What user code has forked in a TaskManager ends with that: it holds copies of its files and pipes, and nobody
        else would end it. One that has made itself a session or group of its own is left.
        """
        for pid in _children_of_this_process():
            with contextlib.suppress(ProcessLookupError):
                if pid not in self._children and os.getpgid(pid) == os.getpgrp():
                    os.kill(pid, signal.SIGKILL)

    def _tell(self, message: object) -> None:
        with contextlib.suppress(OSError):  # the cluster is gone: what it wanted last is read first, and then its end
            send(self._control, message)

    def _become_task_manager(
        self, launch: bytes, template: int, streams: tuple[int, int], last_word: mmap.mmap
    ) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            _die_with_parent(template)
            for fd, stream in enumerate(streams, start=1):
                os.dup2(stream, fd)
                os.close(stream)
            from .task_manager_process import main_of_fork

            if main_of_fork(launch).never_reached:
                last_word[0] = _NEVER_REACHED
            code = 0
        except BaseException:  # noqa: BLE001 - the last frame of this process
            sys.excepthook(*sys.exc_info())
        finally:
            _flush()
            os._exit(code)


def _flush() -> None:
    with contextlib.suppress(Exception):  # nobody reads it any more
        sys.stdout.flush()
        sys.stderr.flush()


def _write_by_lines() -> None:
    """Standard output and standard error are pipes, and yet each line is to be seen at once, and UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    with contextlib.suppress(Exception):  # what C code prints, as Numba's; where the library has other names it waits
        library = ctypes.CDLL(None)
        its_stdout = ctypes.c_void_p.in_dll(library, "stdout" if sys.platform == "linux" else "__stdoutp")
        library.setvbuf(its_stdout, None, _LINE_BUFFERED, 0)


def _inherit_orphans() -> None:
    """On Linux: processes whose parent, a TaskManager, has ended become children of the template."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _children_of_this_process() -> list[int]:
    """Empty where the system does not say it. The template has one thread."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listed:
            return [int(pid) for pid in listed.read().split()]
    except OSError:
        return []


def is_ending(pid: int) -> bool:
    """Whether it has ended, or the kernel takes it down just now, which takes a second where it had much memory:
    its connections break first. False where the system does not say it.
    """
    try:
        with open(f"/proc/{pid}/stat") as told:
            state, *rest = told.read().rpartition(")")[2].split()
    except OSError:
        return False
    return state in ("Z", "X") or bool(int(rest[_FLAGS]) & _PF_EXITING)


def _die_with_parent(parent: int) -> None:
    """On Linux the kernel kills this process when the template dies, even by SIGKILL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we had asked for that
        os._exit(1)


def main() -> NoReturn:
    """Entry point: take over the socket whose descriptor is the first argument, import everything, serve. Does not
    return: Python would take all modules apart, object by object, which takes a tenth of a second of the processor.

    The second argument is the cluster's work folder. The cluster removes it when it closes; one that was killed cannot.
    """
    _write_by_lines()
    from .task_manager_process import prepare_forks

    with preparing_task_managers():
        prepare_forks()
    gc.enable()
    try:
        with socket.socket(fileno=int(sys.argv[1])) as control:
            Template(control).run()
    finally:
        shutil.rmtree(sys.argv[2], ignore_errors=True)
    _flush()
    os._exit(0)
