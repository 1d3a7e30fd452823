"""LocalLauncher: TaskManagers as processes of this machine, forked from one template process."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import cloudpickle

from ...actors.remedies import HOLD_LESS, NO_MORE_OF_EITHER, remedy_of_end
from ...messages import JobId, SubmitJob, TaskManagerExited
from ..output.pipes import LastLine, OutputPipes
from .memory_events import MemoryEvents
from .module_path import searched_folders
from .task_manager_process import NEVER_REACHED, TaskManagerLaunch
from .template import Exited, Fork, Forked, Kill, describe_exit_code, receive, send, send_streams
from .work_dir import see_work_dir

log = logging.getLogger(__name__)

_START = """
import gc, sys
gc.disable()
sys.path[:] = sys.argv[3:]
del sys.argv[3:]
from understudy.runtime.clusters.template import main
main()
"""
"""It looks for modules where this process does, and not in the working directory first, as `python -c` would. What is
imported stays: to look for garbage among it again and again takes a seventh of the start.
"""

GRACE_SECONDS = 3.0
"""How long released TaskManagers may take to end by themselves."""

CLOSE_GRACE_SECONDS = 1.0
"""The same when the cluster closes, after its jobs were cancelled."""

END_SECONDS = 30.0
"""How long a template may take to end, with all its children. One that was stopped (SIGSTOP) never does."""

LAST_LINE_SECONDS = 1.0
"""How long what a process wrote before its end may take to come to the user, before its end is reported without it."""

_PYTHON = "they run in the Python that sys.executable names: set it to one that has Understudy"
_KILLED = (-signal.SIGKILL, -signal.SIGTERM)
_SAYS_ALL = (0, *_KILLED)
_BY_OTHERS = (
    ", and not by Understudy: if nobody did it, memory ran out, and the kernel ended it (`dmesg`, or oom_kill in "
    f"memory.events of its container, says so); {HOLD_LESS}"
)
_NOT_FOR_MEMORY = (
    ", and neither by Understudy nor by the kernel for want of memory (oom_kill has not changed): somebody did it, "
    "or a service that watches memory (systemd-oomd, earlyoom)"
)
_BY_ITSELF = {-signal.SIGINT: NO_MORE_OF_EITHER}
"""OpenBLAS does so where it gets no thread; Ctrl-C does not reach a template."""


_connections: weakref.WeakSet[socket.socket] = weakref.WeakSet()
"""To the templates of this process, each of which ends when nobody holds its connection any more."""


def _let_go() -> None:
    """In a fork, which must not hold them: templates, and their TaskManagers, end with the process that has them."""
    for connection in list(_connections):
        connection.close()


os.register_at_fork(after_in_child=_let_go)


class RunningTemplate(Protocol):
    """The operating system's side of a template process."""

    def wait(self) -> int:
        """Its exit code; a negative one is a signal's number."""
        ...

    def kill(self) -> None:
        """By SIGKILL; its children end with it."""


def start_template(control: socket.socket, work_dir: str, stdout: int, stderr: int) -> RunningTemplate:
    """A template process that serves `control`, its end of a pair, and writes to these descriptors. Raises OSError."""
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _START, str(control.fileno()), work_dir, *searched_folders()],
            pass_fds=[control.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            process_group=0,  # Ctrl-C is the driver's affair: it closes the socket, and the template ends the rest
        )
    except OSError as error:
        raise OSError(
            error.errno, f"no TaskManager can be started: {error.strerror}; {_PYTHON}", sys.executable
        ) from error


class _TemplateProcess:
    """One template process, and two threads: one reads from it, and one writes, as it may be busy for seconds with
    imports, or stand still. Requests come under the launcher's lock only, and nobody waits for them.
    """

    def __init__(
        self,
        work_dir: str,
        output: OutputPipes,
        hear: Callable[[object], None],
        gone: Callable[[_TemplateProcess, int], None],
    ) -> None:
        self._control, theirs = socket.socketpair()
        with theirs, output.for_process() as (stdout, stderr):
            try:
                self._process = start_template(theirs, work_dir, stdout, stderr)
            except OSError:
                self._control.close()
                raise
        _connections.add(self._control)
        self.is_gone = False
        self.has_forked = False
        self._output = output
        self._hear = hear
        self._gone = gone
        self._requests: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="understudy-launcher-requests", daemon=True)
        self._reader = threading.Thread(target=self._read, name="understudy-launcher", daemon=True)
        try:
            self._writer.start()
            self._reader.start()
        except BaseException:  # no thread is left for it; or Ctrl-C, which lets one that has been started run
            self._requests.put(None)
            self._control.shutdown(socket.SHUT_RDWR)  # the process ends of it
            if self._reader.ident is None:
                self._control.close()
                self._process.wait()
            raise

    def send(self, message: object) -> None:
        self._requests.put(partial(send, self._control, message))

    def fork(self, wanted: Fork, last: LastLine) -> None:
        """The new process writes to two pipes of its own. Raises OSError where there are none."""
        with ExitStack() as until_sent:
            streams = until_sent.enter_context(self._output.for_process(last))
            self._requests.put(partial(self._send_fork, wanted, streams, until_sent.pop_all()))

    def _send_fork(self, wanted: Fork, streams: tuple[int, int], until_sent: ExitStack) -> None:
        with until_sent:
            send(self._control, wanted)
            send_streams(self._control, *streams)

    def end(self) -> None:
        """End it, and with it all its children."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._reader.join(END_SECONDS)
        if self._reader.is_alive():
            log.warning("the process that starts TaskManagers has not ended after %g s: killing it", END_SECONDS)
            self._process.kill()
            self._reader.join()

    def close(self) -> None:
        """It is gone, and nothing can be sent to it any more."""
        self.is_gone = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._requests.put(None)
        self._writer.join()  # else it might write to what the system opens next under this number
        self._control.close()

    def _write(self) -> None:
        while (request := self._requests.get()) is not None:
            with contextlib.suppress(OSError):  # it is gone: its children are too, and the reader tells so
                request()

    def _read(self) -> None:
        while (message := receive(self._control)) is not None:
            self.has_forked = True
            self._hear(message)
        self._gone(self, self._process.wait())


@dataclass(slots=True)
class _Child:
    job_id: JobId
    index: int
    template: _TemplateProcess
    last_line: LastLine = field(default_factory=LastLine)

    def kill(self, token: int) -> None:
        self.template.send(Kill(token))


class LocalLauncher:
    """Drives the template process, and starts another one when it is lost. `tell` is how it reaches the JobManager; it
    is called from a thread of its own.
    """

    def __init__(self, tell: Callable[[TaskManagerExited], None], work_dir: str) -> None:
        self._tell = tell
        self._work_dir = work_dir
        self._launches: dict[JobId, TaskManagerLaunch] = {}
        self._children: dict[int, _Child] = {}
        self._grace_timers: dict[JobId, threading.Timer] = {}
        self._next_token = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_closed = False
        self._memory = MemoryEvents()
        self.output = OutputPipes()
        """What the processes print."""
        try:
            self._template = self._new_template()
        except BaseException:
            self.output.close()
            raise

    def prepare(self, launch: TaskManagerLaunch) -> None:
        """Keep the start parameters of this job's TaskManagers; before the job is submitted."""
        self._launches[launch.job_id] = launch

    def expect(self, wanted: SubmitJob) -> None:
        """All is prepared."""

    def start(self, job_id: JobId, index: int) -> None:
        launch = replace(self._launches[job_id], index=index)
        with self._lock:
            if self._is_closed:
                return
            token, self._next_token = self._next_token, self._next_token + 1
            try:
                see_work_dir(self._work_dir)
                if self._template.is_gone:
                    self._template = self._new_template()
                child = self._children[token] = _Child(job_id, index, self._template)
                self._template.fork(Fork(token, cloudpickle.dumps(launch), launch.warm_up), child.last_line)
                return
            except (OSError, RuntimeError) as error:  # no more files, processes or threads: the others go on
                self._children.pop(token, None)
                said = f"could not be started: {error}"
        self._tell(TaskManagerExited(job_id, index, f"{said}{remedy_of_end(said)}"))

    def kill(self, job_id: JobId, index: int) -> None:
        with self._lock:
            for token, child in self._children.items():
                if (child.job_id, child.index) == (job_id, index):
                    child.kill(token)

    def abandon(self, job_id: JobId) -> None:
        """Nothing outlives the process of this launcher."""

    def forget(self, job_id: JobId) -> None:
        self._launches.pop(job_id, None)
        with self._lock:
            if self._is_closed or not self._has_children(job_id):
                return
            timer = self._grace_timers[job_id] = threading.Timer(GRACE_SECONDS, self._kill_job, [job_id])
            timer.daemon = True
            timer.start()

    def close(self) -> None:
        """Wait for released TaskManagers, then end the template, which takes everything else with it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._children, timeout=CLOSE_GRACE_SECONDS)
            self._is_closed = True
            timers = list(self._grace_timers.values())
        for timer in timers:
            timer.cancel()
        self._template.end()
        for timer in timers:
            timer.join()
        self.output.close()

    def _new_template(self) -> _TemplateProcess:
        return _TemplateProcess(self._work_dir, self.output, self._hear, self._template_gone)

    def _has_children(self, job_id: JobId) -> bool:
        return any(child.job_id == job_id for child in self._children.values())

    def _kill_job(self, job_id: JobId) -> None:
        with self._lock:
            for token, child in self._children.items():
                if child.job_id == job_id:
                    log.warning("TaskManager %d of %s did not end when released: killing it", child.index, job_id)
                    child.kill(token)

    # -- on the template's reader thread

    def _hear(self, message: object) -> None:
        match message:
            case Forked(token, pid):
                log.info("TaskManager process %d is process %d", token, pid)
            case Exited():
                self._child_exited(message)

    def _template_gone(self, template: _TemplateProcess, code: int) -> None:
        """It takes its children with it, so they are gone too by now; `start` makes the next one."""
        how = describe_exit_code(code)
        if not template.has_forked:
            advice = "" if code in _KILLED else f"; {_BY_ITSELF.get(code, _PYTHON)}"
            how += f", before it had started anything ({sys.executable}){advice}"
        if code == -signal.SIGKILL and not self._is_closed:
            how += self._who_killed()
        with self._lock:
            template.close()
            orphans = [token for token, child in self._children.items() if child.template is template]
            if not self._is_closed:
                log.warning(
                    "the process that starts TaskManagers ended (%s), and %d of them with it: others take their place",
                    *(how, len(orphans)),
                )
        for token in orphans:
            self._child_exited(Exited(token, f"its template process ended: {how}", was_ordered=True, code=code))

    def _child_exited(self, exited: Exited) -> None:
        with self._changed:
            child = self._children.pop(exited.token)
            timer = None if self._has_children(child.job_id) else self._grace_timers.pop(child.job_id, None)
            self._changed.notify_all()
        if timer is not None:
            timer.cancel()
        launch, reason = self._launches.get(child.job_id), exited.reason
        if exited.never_reached and launch is not None:
            reason = NEVER_REACHED.format(launch.job_manager_address)
        elif exited.code == -signal.SIGKILL and not exited.was_ordered and not self._is_closed:
            reason += self._who_killed()
        elif exited.code not in _SAYS_ALL and self.output.drain(LAST_LINE_SECONDS) and child.last_line.text:
            reason = f"{reason}; {_with_remedy(child.last_line.text)}"
        self._tell(TaskManagerExited(child.job_id, child.index, reason))

    def _who_killed(self) -> str:
        """What to say behind "killed by SIGKILL" of a process that nobody here has had killed."""
        kills = self._memory.kills()
        if kills is None:
            return _BY_OTHERS
        return (
            f": probably memory ran out, and the kernel ended it ({kills}); {HOLD_LESS}" if kills else _NOT_FOR_MEMORY
        )


def _with_remedy(line: str) -> str:
    return f"it wrote last: {line!r:.300}{remedy_of_end(line)}"
