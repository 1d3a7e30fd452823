"""LocalLauncher: TaskManagers as processes of this machine, forked from one template process."""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import cloudpickle

from ...messages import JobId, TaskManagerExited
from .task_manager_process import TaskManagerLaunch
from .template import Exited, Fork, Forked, Kill, receive, send

log = logging.getLogger(__name__)

_START = "from understudy.runtime.clusters.template import main; main()"

GRACE_SECONDS = 3.0
"""How long released TaskManagers may take to end by themselves."""


@dataclass(slots=True)
class _Child:
    job_id: JobId
    index: int
    pid: int | None = None


class LocalLauncher:
    """Drives the template process. `tell` is how it reaches the JobManager; it is called from a thread of its own."""

    def __init__(self, tell: Callable[[TaskManagerExited], None]) -> None:
        self._tell = tell
        self._launches: dict[JobId, TaskManagerLaunch] = {}
        self._children: dict[int, _Child] = {}
        self._next_token = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C is the driver's affair: it closes the socket, and the template ends the rest
            )
        self._reader = threading.Thread(target=self._read, name="understudy-launcher", daemon=True)
        self._reader.start()

    def prepare(self, launch: TaskManagerLaunch) -> None:
        """Keep what TaskManagers of this job are born with; before the job is submitted."""
        self._launches[launch.job_id] = launch

    def start(self, job_id: JobId, index: int) -> None:
        launch = cloudpickle.dumps(replace(self._launches[job_id], index=index))
        with self._lock:
            token, self._next_token = self._next_token, self._next_token + 1
            self._children[token] = _Child(job_id, index)
            self._send(Fork(token, launch))

    def kill(self, job_id: JobId, index: int) -> None:
        with self._lock:
            for token, child in self._children.items():
                if (child.job_id, child.index) == (job_id, index):
                    self._send(Kill(token))

    def forget(self, job_id: JobId) -> None:
        self._launches.pop(job_id, None)
        timer = threading.Timer(GRACE_SECONDS, self._kill_job, [job_id])
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """Wait for released TaskManagers, then end the template, which takes everything else with it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._children, timeout=GRACE_SECONDS)
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._process.wait()
        self._reader.join()
        self._control.close()

    def _kill_job(self, job_id: JobId) -> None:
        with self._lock:
            for token, child in self._children.items():
                if child.job_id == job_id:
                    log.warning("TaskManager %d of %s did not end when released: killing it", child.index, job_id)
                    self._send(Kill(token))

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # the template is gone: its children are too, and the reader tells so
            send(self._control, message)

    def _read(self) -> None:
        while (message := receive(self._control)) is not None:
            match message:
                case Forked(token, pid):
                    with self._lock:
                        self._children[token].pid = pid
                case Exited(token, reason):
                    self._child_exited(token, reason)
        for token in list(self._children):
            self._child_exited(token, "its template process is gone")

    def _child_exited(self, token: int, reason: str) -> None:
        with self._changed:
            child = self._children.pop(token)
            self._changed.notify_all()
        self._tell(TaskManagerExited(child.job_id, child.index, reason))
