"""Waiting for long operations, with their progress on standard error, until Ctrl-C."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self, TypeVar

import click
from rich.console import Console
from rich.status import Status
from rich.text import Text

from ...actors.checkpoints.awaited_subtasks import awaited_in_words
from ...messages import CheckpointStatistics, JobDetails, JobId
from ...messages.failures import tell_line
from ...state.checkpoints.savepoint_store import HEAP_PATHS
from ..clusters.job_future import JobFuture
from ..clusters.remote_cluster import RemoteCluster
from ..clusters.remote_errors import NoJobManager, RemoteError
from .interrupts import HeldInterrupt
from .output import note

T = TypeVar("T")
LOOK_SECONDS = 0.5
LINE_SECONDS = 10.0
"""How often a line reports progress where no terminal shows it."""
END_SECONDS = 60.0
"""How long a job may take to end; after it we say so and go."""


class Progress:
    """One line on standard error that changes, on a terminal; elsewhere a line every ten seconds."""

    def __init__(self, what: str) -> None:
        console = Console(stderr=True)
        self._what = what
        self._started = self._told = time.monotonic()
        self._status = Status(Text(what), console=console) if console.is_terminal else None
        self._interrupt = HeldInterrupt()

    def __enter__(self) -> Self:
        self._interrupt.hold()
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._interrupt.release()
        if self._status is not None:
            self._status.stop()
        if kind is None:
            self._interrupt.check()

    def say(self, how_far: str) -> None:
        """How far it is. Raises KeyboardInterrupt if there was one since."""
        self._interrupt.check()
        now = time.monotonic()
        line = f"{self._what} ({now - self._started:.0f} s{f': {how_far}' if how_far else ''})"
        if self._status is not None:
            self._status.update(Text(line))
        elif now - self._told >= LINE_SECONDS:
            self._told = now
            note(line)


def await_savepoint(cluster: RemoteCluster, job_id: JobId, reply: JobFuture[str]) -> str:
    """The savepoint's path. Raises SavepointFailed and RemoteErrors."""
    path = ""
    with Progress(f"savepoint of {job_id}") as progress:
        while not path:
            try:
                path = reply.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                progress.say(_how_far(cluster, job_id))
    if path.startswith(HEAP_PATHS):
        note(
            "this savepoint is in the JobManager's memory, and lost when its process ends: set checkpoint_dir "
            "(and savepoints.state.backend, if it is set, to filesystem)"
        )
    return path


def await_reply(what: str, reply: JobFuture[T]) -> T:
    """The answer, with nothing known of how far it is."""
    with Progress(what) as progress:
        while True:
            try:
                return reply.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                progress.say("")


def await_end(cluster: RemoteCluster, job_id: JobId, known: JobDetails | None, *, otherwise: str) -> tuple[str, str]:
    """The status in which the job has ended, and its last failure in a line, if it had one; `otherwise` and nothing
    when its JobManager ends with it, before it can be asked. `known`: what was heard last. A job that takes too long to
    end has the status it has then.
    """
    deadline = time.monotonic() + END_SECONDS
    with Progress(f"the end of {job_id}") as progress:
        while known is None or not (known.status.is_terminal or time.monotonic() > deadline):
            try:
                known = cluster.details(job_id)
            except NoJobManager:
                return otherwise, ""
            progress.say(known.status.value)
            if not known.status.is_terminal:
                time.sleep(LOOK_SECONDS / 5)
    return known.status.value, tell_line(known.failures[-1]) if known.failures else ""


def conclude(name: str, job_id: JobId, status: str, wanted: str, last_failure: str = "") -> None:
    """Tell how a job has ended, and exit by it: 1 for another status than the wanted one."""
    if status != wanted:
        why = f"; last failure: {last_failure}" if last_failure else ""
        raise click.ClickException(f"job {name} ({job_id}) is {status}; wanted {wanted}{why}")
    note(f"job {name} ({job_id}) is {status}")


def _how_far(cluster: RemoteCluster, job_id: JobId) -> str:
    """The statistics of the savepoint in progress; nothing when they cannot be read now."""
    try:
        history = cluster.checkpoints(job_id)
    except RemoteError:
        return ""
    for each in history.checkpoints:
        if each.kind == "savepoint" and each.status == "in_progress":
            size = sum(subtask.state_size_bytes for subtask in each.subtasks)
            waits = f"; {awaits}" if (awaits := waits_for(each)) else ""
            return f"{len(each.subtasks)} of {each.subtasks_total} subtasks, {size:,} bytes{waits}"
    return "waiting for its turn"


def waits_for(each: CheckpointStatistics) -> str:
    """Which subtasks it waits for, in words; empty: none."""
    if not each.awaited:
        return ""
    return f"waits for {awaited_in_words(each.awaited, each.subtasks_total - len(each.subtasks))}"
