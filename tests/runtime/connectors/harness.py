"""Runs one operator without a task: context, real operator state, a clock set by hand. Flink: OperatorTestHarness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.operator_context import OperatorContext
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, OperatorId, OperatorListHandle, SubtaskIndex
from understudy.state.backends.binding import bind_states
from understudy.state.backends.operator_state import OperatorStateBackend
from understudy.state.checkpoints.assignment import redistribute_lists

Snapshot = tuple[OperatorListHandle, ...]
O = TypeVar("O", bound=Operator)  # noqa: E741


class ManualClock:
    def __init__(self) -> None:
        self.ms = 0.0

    def now_ms(self) -> float:
        return self.ms

    def wall_ms(self) -> int:
        return int(self.ms)


def make_context(
    subtask: int = 0,
    parallelism: int = 1,
    attempt: int = 0,
    job: str = "job-a",
    clock: ManualClock | None = None,
    resources: dict[str, Any] | None = None,
    restored: bool = False,
    is_failover: bool = False,
) -> OperatorContext:
    return OperatorContext(
        job_id=JobId(job),
        operator_id=OperatorId("operator"),
        name="operator",
        vertex_name="vertex",
        subtask_index=SubtaskIndex(subtask),
        parallelism=parallelism,
        max_parallelism=128,
        attempt_id=ExecutionAttemptId(f"{job}-{subtask}-{attempt}"),
        attempt_number=attempt,
        restored=restored,
        clock=clock or ManualClock(),
        wake=lambda: None,
        resources=resources or {},
        is_failover=is_failover,
    )


class Running(Generic[O]):
    """One attempt of one operator subtask, opened."""

    def __init__(self, operator: O, restore_from: Snapshot | None = None, **where: Any) -> None:
        self.operator = operator
        operator.context = make_context(restored=restore_from is not None, **where)
        self._state = OperatorStateBackend()
        self._state.restore(restore_from or (), lambda handle: handle.data or b"")
        bind_states(operator, None, self._state)
        operator.open()
        operator._opened()

    def take(self, *records: Any) -> None:
        self.operator.process_batch(list(records), Collector())

    def checkpoint(self, checkpoint_id: int) -> Snapshot:
        self.operator.on_checkpoint(CheckpointId(checkpoint_id))
        return self._state.snapshot()

    def complete(self, checkpoint_id: int) -> None:
        self.operator.on_checkpoint_complete(CheckpointId(checkpoint_id))


def rescaled(snapshots: Sequence[Snapshot], parallelism: int) -> list[Snapshot]:
    """What each of `parallelism` new subtasks restores, as the real assignment deals it out."""
    return [tuple(share) for share in redistribute_lists(list(snapshots), parallelism)]
