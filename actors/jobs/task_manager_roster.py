"""TaskManagerRoster: which of a job's TaskManagers are here, and when one that ended may be started again.

A value machine of the JobMaster. TaskManager `index` may live many times; each life registers under a new id. One
that ends before it has registered is started again more and more slowly, so that a process that cannot even start
does not keep the machine busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...messages import (
    ExecutionAttemptId,
    ExecutionState,
    FailureCause,
    Heartbeat,
    RegisterTaskManager,
    TaskManagerChanged,
    TaskManagerId,
    TaskMetrics,
    UpdateTaskExecutionState,
)
from ..checkpoints.checkpoint_effects import Publish, Schedule
from .execution import Execution
from .job_effects import JobNews, KillTaskManager, ProcessEnded, StartDue, StartTaskManager, TaskManagerLost

_REPORTED = (ExecutionState.RUNNING, ExecutionState.FINISHED, ExecutionState.CANCELED)

START_DELAY_MS, MAX_START_DELAY_MS = 100, 5000

MAX_FAILED_STARTS = 6
"""How often each of a new job's TaskManagers may end before it registers. With the delays between them that takes six
seconds and more, so a machine that is full for a moment does not end a job.
"""


@dataclass(slots=True)
class _Life:
    registration: RegisterTaskManager
    metrics: dict[ExecutionAttemptId, TaskMetrics] = field(default_factory=dict)
    heard: set[ExecutionAttemptId] = field(default_factory=set)
    """In this round of heartbeats, which each have a part of the tasks."""

    def hear(self, beat: Heartbeat) -> list[TaskMetrics]:
        """Those whose status is another one than before, or that are new."""
        known = self.metrics
        news = [
            each for each in beat.metrics if (was := known.get(each.attempt_id)) is None or was.status != each.status
        ]
        now = {each.attempt_id: each for each in beat.metrics}
        known |= now
        self.heard |= now.keys()
        if beat.is_last_part:
            self.metrics = {attempt_id: each for attempt_id, each in known.items() if attempt_id in self.heard}
            self.heard = set()
        return news


class TaskManagerRoster:
    """One job's TaskManagers, by id and by index."""

    def __init__(self, count: int) -> None:
        self._lives: dict[TaskManagerId, _Life] = {}
        self._failed_starts = dict.fromkeys(range(count), 0)
        """Those that were started and have not registered yet: how often they ended before they did."""
        self._lost: dict[int, TaskManagerId] = {}
        """By index, the last life, if it was lost while its process may have been there."""
        self._awaited: dict[int, str] = {}
        """Those that wait for slots, and why, the latest last."""
        self._troubles: dict[int, str] = {}
        """By index, why the last one ended before it registered, until one registers or waits for slots."""
        self._count = count
        self._had_any = False
        """Whether one has ever registered."""

    def __contains__(self, task_manager_id: TaskManagerId) -> bool:
        return task_manager_id in self._lives

    @property
    def awaits(self) -> int:
        """How many cannot be started now."""
        return len(self._awaited)

    @property
    def why_missing(self) -> str:
        """Why one ended before it registered, or waits for slots, for the error that names too few; empty: unknown."""
        waits = [f"TaskManager {index} waits: {why}" for index, why in reversed(self._awaited.items())][:1]
        return "; ".join([self.trouble, *waits] if self.trouble else waits)

    @property
    def trouble(self) -> str:
        """Why one cannot be started; empty: none is known to be so."""
        return next(reversed(self._troubles.values()), "")

    def start_all(self) -> list[StartTaskManager]:
        return [StartTaskManager(index) for index in self._failed_starts]

    def register(self, message: RegisterTaskManager) -> RegisterTaskManager | None:
        """Take one in; returns the earlier life of its index that is still listed, which is over now."""
        earlier = [life.registration for life in self._lives.values() if life.registration.index == message.index]
        self._lives[message.task_manager_id] = _Life(message)
        self._had_any = True
        self._failed_starts.pop(message.index, None)
        self._awaited.pop(message.index, None)
        self._troubles.pop(message.index, None)
        return earlier[0] if earlier else None

    def register_again(self, message: RegisterTaskManager) -> bool:
        """Whether this one, which is listed, has been without a leader since, so that orders and reports are lost."""
        life = self._lives[message.task_manager_id]
        was_alone, life.registration = life.registration.search != message.search, message
        return was_alone

    def lose(self, event: TaskManagerLost, wall_ms: int) -> Iterator[Publish[JobNews] | KillTaskManager]:
        """This life, which is listed, is over: listeners are notified, and its process is ended if it may be there."""
        registration = self._lives.pop(event.task_manager_id).registration
        yield Publish(changed(registration, False, event.reason, wall_ms))
        if not event.process_ended:
            self._lost[registration.index] = event.task_manager_id
            yield KillTaskManager(registration.index)

    def kill_those_that_do_not_cancel(self, executions: Iterable[Execution]) -> Iterator[KillTaskManager]:
        """Tasks have had their time to be cancelled."""
        for execution in executions:
            host = execution.task_manager_id
            if execution.state is ExecutionState.CANCELING and host in self._lives:
                yield KillTaskManager(self._lives[host].registration.index)

    def lost_life(self, index: int) -> TaskManagerId | None:
        """The life that was lost before its process, which has ended now; None if that was known when it was lost."""
        return self._lost.pop(index, None)

    def awaits_end_of(self, task_manager_id: str) -> bool:
        """Whether it was lost, and how its process ended is not known yet."""
        return task_manager_id in self._lost.values()

    def ended(self, index: int, reason: str) -> list[StartTaskManager | ProcessEnded | Schedule[StartDue]]:
        """Its process has ended: start it again, at once if it had registered."""
        self._awaited.pop(index, None)
        if index not in self._failed_starts:
            self._failed_starts[index] = 0
            return [StartTaskManager(index)]
        self._failed_starts[index] += 1
        self._troubles.pop(index, None)
        self._troubles[index] = f"TaskManager {index} ended before it registered: {reason}"
        delay_ms = min(START_DELAY_MS << self._failed_starts[index], MAX_START_DELAY_MS)
        return [ProcessEnded(index, reason, delay_ms), Schedule(delay_ms, StartDue(index))]

    def cannot_start(self) -> FailureCause | None:
        """What a job fails with whose TaskManagers have all ended again and again, before one has registered."""
        if self._had_any or self._awaited or min(self._failed_starts.values(), default=0) < MAX_FAILED_STARTS:
            return None
        who = f"each of the {self._count}" if self._count > 1 else "it"
        return FailureCause(
            "NoResourceAvailable",
            f"no TaskManager can start: {who} ended before it registered, {MAX_FAILED_STARTS} times and more; the "
            f"last: {self.trouble}; the log has what they wrote before: mend that, and submit the job again",
        )

    def awaited(self, index: int, why: str) -> None:
        """It cannot be started now. Of one that has registered meanwhile this is old news."""
        if index in self._failed_starts:
            self._awaited.pop(index, None)
            self._awaited[index] = why
            self._troubles.pop(index, None)

    def heard(self, message: Heartbeat) -> list[UpdateTaskExecutionState]:
        """Keep its figures; returns what its attempts do, where a report that was lost has to be made good. Nothing for
        an unknown sender.
        """
        life = self._lives.get(TaskManagerId(message.sender))
        if life is None:
            return []
        job_id = life.registration.job_id
        states = [(metrics.attempt_id, ExecutionState(metrics.status)) for metrics in life.hear(message)]
        return [
            UpdateTaskExecutionState(job_id, attempt_id, state) for attempt_id, state in states if state in _REPORTED
        ]

    def data_endpoints(self) -> dict[TaskManagerId, str]:
        return {task_manager_id: life.registration.data_endpoint for task_manager_id, life in self._lives.items()}

    def place_of(self, task_manager_id: TaskManagerId | None) -> str:
        """A TaskManager and its host, in words; empty for one that is not here."""
        if task_manager_id is None or task_manager_id not in self._lives:
            return ""
        registration = self._lives[task_manager_id].registration
        return f"TaskManager {registration.index}{f' on {registration.host}' if registration.host else ''}"

    def registrations(self) -> Iterator[RegisterTaskManager]:
        return (life.registration for life in self._lives.values())

    def metrics(self) -> Iterator[TaskMetrics]:
        for life in self._lives.values():
            yield from life.metrics.values()


def none_can_start(reason: str) -> FailureCause:
    """What a job fails with whose launcher can start no process any more."""
    return FailureCause("NoResourceAvailable", f"no TaskManager can start any more: {reason}")


def changed(worker: RegisterTaskManager, registered: bool, reason: str, wall_ms: int) -> TaskManagerChanged:
    """For the job's listeners: it has registered, or was lost."""
    return TaskManagerChanged(
        worker.job_id, worker.task_manager_id, worker.index, worker.pid, registered, reason, wall_ms
    )
