"""JobWorkers: the TaskManagers of one job, as its JobManager reaches them: who is there, and when each was heard.

A part of the ManagedJob, on the JobManager's dispatcher. A TaskManager is there from its registration until it is lost
or released, and is not taken again after that. It sends what it is given, in the leader's session. Which slots a job
has, and what follows a loss, is decided in the JobMaster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...messages import (
    Heartbeat,
    LeaderSessionId,
    LeaderSessionMessage,
    RegisterTaskManager,
    ReleaseTaskManager,
    TaskManagerId,
)
from ..context import Clock, Ref


@dataclass(slots=True)
class Worker:
    """A TaskManager of the job."""

    ref: Ref
    registration: RegisterTaskManager
    heard_ms: float
    registered_ms: int
    """By the wall clock."""


class JobWorkers:
    """One job's."""

    def __init__(self, session: LeaderSessionId, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._there: dict[TaskManagerId, Worker] = {}
        self._gone: set[TaskManagerId] = set()

    @property
    def there(self) -> Mapping[TaskManagerId, Worker]:
        """Those that there are now, also after later changes."""
        return self._there

    def may_register(self, task_manager_id: TaskManagerId, *, has_tasks: bool) -> bool:
        """Whether this one may be added. One that was taken for lost may not, nor one with tasks of an earlier leader,
        as the job was started again.
        """
        return task_manager_id in self._there or (task_manager_id not in self._gone and not has_tasks)

    def add(self, registration: RegisterTaskManager, ref: Ref) -> bool:
        """Whether it is new here."""
        if registration.task_manager_id in self._there:
            return False
        now_ms, wall_ms = self._clock.now_ms(), self._clock.wall_ms()
        self._there[registration.task_manager_id] = Worker(ref, registration, now_ms, wall_ms)
        return True

    def heard(self, task_manager_id: TaskManagerId) -> None:
        """A heartbeat of this one has come."""
        self._there[task_manager_id].heard_ms = self._clock.now_ms()

    def lose(self, task_manager_id: TaskManagerId) -> None:
        del self._there[task_manager_id]
        self._gone.add(task_manager_id)

    def release(self, why: str) -> tuple[TaskManagerId, ...]:
        """Let all of them go; returns who they were."""
        for task_manager_id in self._there:
            self.tell(task_manager_id, ReleaseTaskManager(task_manager_id, why))
        released = tuple(self._there)
        self._gone.update(released)
        self._there.clear()
        return released

    def at(self, *, index: int | None = None, address: str | None = None) -> list[TaskManagerId]:
        """Those with this index, or at this address."""
        return [
            task_manager_id
            for task_manager_id, worker in self._there.items()
            if worker.registration.index == index or worker.ref.address == address
        ]

    def tell(self, task_manager_id: TaskManagerId, message: Any) -> None:
        """Nothing, if it is not there any more."""
        if (worker := self._there.get(task_manager_id)) is not None:
            worker.ref.tell(LeaderSessionMessage(self._session, message))

    def beat(self, beat: Heartbeat, timeout_ms: float) -> list[tuple[TaskManagerId, float]]:
        """Beat to all that have been heard within this time; returns the others, and how long they are silent."""
        now_ms = self._clock.now_ms()
        silent = []
        for task_manager_id, worker in self._there.items():
            silent_ms = now_ms - worker.heard_ms
            if silent_ms > timeout_ms:
                silent.append((task_manager_id, silent_ms))
            else:
                worker.ref.tell(beat)
        return silent
