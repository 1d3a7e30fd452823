"""The CheckpointCoordinator's shell in miniature, for tests.

It keeps the timers on a virtual clock and, unless told otherwise, stores metadata at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from understudy.actors.checkpoints.checkpoint_coordinator import CheckpointCoordinator
from understudy.actors.checkpoints.checkpoint_effects import (
    AckIgnored,
    CancelTimer,
    CheckpointEffect,
    Discard,
    Publish,
    Schedule,
    Send,
    StoreMetadata,
)
from understudy.actors.checkpoints.checkpoint_events import (
    AttemptChanged,
    CheckpointEvent,
    MetadataFailed,
    MetadataStored,
    TimerEvent,
)
from understudy.actors.checkpoints.checkpoint_plan import CheckpointPlan, VertexShape
from understudy.actors.checkpoints.pending_checkpoint import AckResult
from understudy.actors.job_graph import SubtaskKey
from understudy.messages import (
    AbortReason,
    AcknowledgeCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointConfig,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionAttemptId,
    JobId,
    OperatorId,
    OperatorSubtaskState,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state.checkpoints.checkpoint_ids import StandaloneCheckpointIdCounter
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, StandaloneCompletedCheckpointStore

T = TypeVar("T")
JOB = JobId("job")


def subtask(task: str) -> SubtaskKey:
    return SubtaskKey(VertexId(task), SubtaskIndex(0))


def make_plan(
    trigger: list[str], acknowledge: list[str], notify: list[str], expect: tuple[str, ...] = ()
) -> CheckpointPlan:
    vertices = {VertexId(task): VertexShape(1, 128) for task in (*trigger, *acknowledge, *notify)}
    triggered, awaited, notified = (tuple(map(subtask, tasks)) for tasks in (trigger, acknowledge, notify))
    return CheckpointPlan(triggered, awaited, notified, vertices, tuple(map(subtask, expect)))


def state_named(name: str | None) -> SubtaskState | None:
    return SubtaskState({OperatorId(name): OperatorSubtaskState()}) if name else None


def ack(task: str, checkpoint: int, state: str | None = None, job: JobId = JOB) -> AcknowledgeCheckpoint:
    return AcknowledgeCheckpoint(job, ExecutionAttemptId(task), CheckpointId(checkpoint), state_named(state), 1)


def decline(
    task: str, checkpoint: int, detail: str = "broken", reason: AbortReason = AbortReason.SNAPSHOT_FAILED
) -> DeclineCheckpoint:
    return DeclineCheckpoint(JOB, ExecutionAttemptId(task), CheckpointId(checkpoint), reason, detail)


def changed(task: str, attempt: str | None = None, *, running: bool = True) -> AttemptChanged:
    return AttemptChanged(subtask(task), ExecutionAttemptId(attempt or task), running)


@dataclass
class Driver:
    """Attempts are named like their tasks."""

    config: CheckpointConfig
    plan: CheckpointPlan = field(default_factory=lambda: make_plan(["a"], ["a", "b"], ["a", "b"]))
    first_id: int = 1
    stores_at_once: bool = True
    store_failure: Callable[[CompletedCheckpoint], str] = lambda _: ""
    """Why a draft cannot be stored; empty when it can."""
    now_ms: float = 0
    timers: dict[TimerEvent, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = StandaloneCheckpointIdCounter(CheckpointId(self.first_id))
        store = StandaloneCompletedCheckpointStore(self.config.retained)
        self.coordinator = CheckpointCoordinator(JOB, self.config, self.plan, ids, store)

    def run_all(self) -> Driver:
        for key in dict.fromkeys((*self.plan.trigger, *self.plan.acknowledge, *self.plan.notify)):
            self.tell(changed(key.vertex_id))
        return self

    def tell(self, *events: CheckpointEvent, wall_ms: int | None = None) -> list[CheckpointEffect]:
        """All effects of these events, and of what is due at once because of them."""
        effects: list[CheckpointEffect] = []
        for event in events:
            for effect in self.coordinator.on(event, self.now_ms, round(self.now_ms) if wall_ms is None else wall_ms):
                effects.append(effect)
                effects += self._carry_out(effect)
        return effects

    def _carry_out(self, effect: CheckpointEffect) -> list[CheckpointEffect]:
        match effect:
            case Schedule(delay_ms, event):
                self.timers[event] = self.now_ms + delay_ms
            case CancelTimer(event):
                self.timers.pop(event, None)
            case StoreMetadata(draft) if self.stores_at_once:
                failure = self.store_failure(draft)
                answer = MetadataFailed(draft.checkpoint_id, failure) if failure else stored(draft.checkpoint_id)
                return self.tell(answer)
        return []

    def advance(self, ms: float) -> list[CheckpointEffect]:
        effects, until = list[CheckpointEffect](), self.now_ms + ms
        while self.timers and (due := min(self.timers.values())) <= until:
            event = next(event for event, at in self.timers.items() if at == due)
            del self.timers[event]
            self.now_ms = due
            effects += self.tell(event)
        self.now_ms = until
        return effects

    def pending_ids(self) -> list[int]:
        return [pending.checkpoint_id for pending in self.coordinator.pending]

    def retained_ids(self) -> list[int]:
        return [completed.checkpoint_id for completed in self.coordinator.store.retained()]


def make_driver(stores_at_once: bool = True, **settings: Any) -> Driver:
    config = CheckpointConfig("file:///tmp", **{"timeout_ms": 10_000, "max_concurrent": 10, **settings})
    return Driver(config, stores_at_once=stores_at_once).run_all()


def stored(checkpoint: int) -> MetadataStored:
    return MetadataStored(CheckpointId(checkpoint), f"chk-{checkpoint}")


def of_type(kind: type[T], effects: list[CheckpointEffect]) -> list[T]:
    return [effect for effect in effects if isinstance(effect, kind)]


def sent(kind: type[T], effects: list[CheckpointEffect]) -> list[T]:
    return [effect.message for effect in of_type(Send, effects) if isinstance(effect.message, kind)]


def published(effects: list[CheckpointEffect]) -> list[CheckpointCompleted | CheckpointAborted]:
    return [effect.message for effect in of_type(Publish, effects)]


def discarded(effects: list[CheckpointEffect]) -> list[str]:
    """Names of discarded states, and paths of discarded metadata files."""
    names: list[str] = []
    for effect in of_type(Discard, effects):
        names += [effect.metadata_path] if effect.metadata_path else []
        names += [name for state in effect.states for name in state.operators]
    return sorted(names)


def ignored(effects: list[CheckpointEffect]) -> list[AckResult]:
    return [effect.result for effect in of_type(AckIgnored, effects)]
