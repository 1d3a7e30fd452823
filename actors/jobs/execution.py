"""Execution: one attempt of one subtask, from CREATED to FINISHED, CANCELED or FAILED.

The ExecutionGraph owns it. Commands (`schedule`, `deploy`) come from our own code and raise IllegalTransition when they
make no sense; reports (`update`) come over the network, late, twice or out of order, and have named results.
Flink: Execution, ExecutionState.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType

from ...messages import ExecutionAttemptId, ExecutionState, FailureCause, SubtaskIndex, TaskManagerId, VertexId
from ..errors import IllegalTransition
from ..job_graph import SubtaskKey
from .slot_pool import SlotId

_S = ExecutionState

TRANSITIONS: Mapping[ExecutionState, frozenset[ExecutionState]] = MappingProxyType(
    {
        _S.CREATED: frozenset({_S.SCHEDULED, _S.CANCELED, _S.FAILED}),
        _S.SCHEDULED: frozenset({_S.DEPLOYING, _S.CANCELED, _S.FAILED}),
        _S.DEPLOYING: frozenset({_S.INITIALIZING, _S.RUNNING, _S.FINISHED, _S.CANCELING, _S.FAILED}),
        _S.INITIALIZING: frozenset({_S.RUNNING, _S.FINISHED, _S.CANCELING, _S.FAILED}),
        _S.RUNNING: frozenset({_S.FINISHED, _S.CANCELING, _S.FAILED}),
        _S.CANCELING: frozenset({_S.CANCELED}),
        _S.FINISHED: frozenset(),
        _S.CANCELED: frozenset(),
        _S.FAILED: frozenset(),
    }
)
"""Where an attempt may go. A deployed one may skip states, because its reports may be lost or overtake each other."""


class UpdateResult(Enum):
    """What became of a TaskManager's report."""

    APPLIED = auto()
    DUPLICATE = auto()
    """The attempt is in this state already."""
    LATE = auto()
    """The attempt is further on, or over."""
    UNKNOWN = auto()
    """No current attempt has this id."""


class Execution:
    """One attempt; `number` counts the subtask's attempts from 0."""

    def __init__(
        self,
        subtask: SubtaskKey,
        number: int,
        attempt_id: ExecutionAttemptId,
        wall_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self.subtask = subtask
        self.number = number
        self.attempt_id = attempt_id
        self.slot: SlotId | None = None
        self.failure: FailureCause | None = None
        self._state = ExecutionState.CREATED
        self._wall_ms = wall_ms
        self.times: dict[ExecutionState, int] = {}
        """When it came into each state, by the wall clock."""

    def __repr__(self) -> str:
        vertex_id, index = self.subtask
        return f"<attempt {self.number} of {vertex_id}[{index}] ({self.attempt_id}): {self._state.value}>"

    @property
    def state(self) -> ExecutionState:
        return self._state

    @property
    def has_run(self) -> bool:
        """Whether it was reported as running: its state is restored then."""
        return ExecutionState.RUNNING in self.times

    @property
    def vertex_id(self) -> VertexId:
        return self.subtask.vertex_id

    @property
    def subtask_index(self) -> SubtaskIndex:
        return self.subtask.subtask_index

    @property
    def task_manager_id(self) -> TaskManagerId | None:
        """Where it was deployed; None before."""
        return None if self.slot is None else self.slot.task_manager_id

    def schedule(self) -> None:
        """It waits for a slot."""
        self._go(ExecutionState.SCHEDULED)

    def deploy(self, slot: SlotId) -> None:
        """Its deployment is on the way to this slot."""
        self._go(ExecutionState.DEPLOYING)
        self.slot = slot

    def cancel(self) -> bool:
        """End it; returns whether its TaskManager must be notified. One that was never deployed is CANCELED at once."""
        if self._state.is_terminal or self._state is ExecutionState.CANCELING:
            return False
        if self.slot is None:
            self._go(ExecutionState.CANCELED)
            return False
        self._go(ExecutionState.CANCELING)
        return True

    def fail(self, failure: FailureCause | None) -> UpdateResult:
        """It failed, or its TaskManager was lost. What was being cancelled anyway counts as CANCELED."""
        return self.update(ExecutionState.FAILED, failure)

    def update(self, reported: ExecutionState, failure: FailureCause | None = None) -> UpdateResult:
        """Take a report. An attempt that ended as CANCELED though nobody asked has FAILED."""
        if reported is self._state:
            return UpdateResult.DUPLICATE
        target = self._meaning_of(reported)
        if target not in TRANSITIONS[self._state]:
            return UpdateResult.LATE
        self._go(target)
        self.failure = failure
        return UpdateResult.APPLIED

    def _meaning_of(self, reported: ExecutionState) -> ExecutionState:
        if not reported.is_terminal:
            return reported
        if self._state is ExecutionState.CANCELING:
            return ExecutionState.CANCELED
        return ExecutionState.FAILED if reported is ExecutionState.CANCELED else reported

    def _go(self, target: ExecutionState) -> None:
        if target not in TRANSITIONS[self._state]:
            raise IllegalTransition(f"{self!r} cannot become {target.value}")
        self._state = target
        self.times[target] = self._wall_ms()
