"""PendingCheckpoint. Cites `pending_checkpoint_facts` of checkpoint_coordinator.json."""

from __future__ import annotations

import pytest

from understudy.actors.checkpoints.checkpoint_plan import CheckpointPlan, VertexShape
from understudy.actors.checkpoints.pending_checkpoint import AckResult, CheckpointKind, PendingCheckpoint
from understudy.actors.errors import IllegalTransition
from understudy.actors.job_graph import SubtaskKey
from understudy.messages import (
    AcknowledgeCheckpoint,
    CheckpointConfig,
    CheckpointId,
    ExecutionAttemptId,
    JobEdge,
    JobGraph,
    JobId,
    JobVertex,
    OperatorId,
    OperatorSubtaskState,
    Partitioning,
    RestartStrategyConfig,
    RestartStrategyKind,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)

JOB = JobId("job")
MAP = VertexId("map")
SINK = VertexId("sink")
SHAPES = {MAP: VertexShape(2, 128), SINK: VertexShape(1, 64)}
ATTEMPTS = {
    ExecutionAttemptId("map-0"): SubtaskKey(MAP, SubtaskIndex(0)),
    ExecutionAttemptId("map-1"): SubtaskKey(MAP, SubtaskIndex(1)),
    ExecutionAttemptId("sink-0"): SubtaskKey(SINK, SubtaskIndex(0)),
}
STATE = SubtaskState({OperatorId("op"): OperatorSubtaskState()})
EMPTY = SubtaskState({})


def make_pending(kind: CheckpointKind = CheckpointKind.CHECKPOINT) -> PendingCheckpoint:
    return PendingCheckpoint(JOB, CheckpointId(7), kind, ATTEMPTS, timestamp_ms=100, started_ms=5.0)


def acknowledge(to: PendingCheckpoint, attempt: str, state: SubtaskState | None = None, size: int = 0) -> AckResult:
    ack = AcknowledgeCheckpoint(JOB, ExecutionAttemptId(attempt), to.checkpoint_id, state, size)
    return to.acknowledge(ack)


def test_collects_one_acknowledgement_per_attempt() -> None:
    pending = make_pending()
    assert acknowledge(pending, "map-1", STATE) is AckResult.SUCCESS
    assert acknowledge(pending, "map-1", STATE) is AckResult.DUPLICATE
    assert acknowledge(pending, "zombie", STATE) is AckResult.UNKNOWN_TASK
    assert pending.states() == (STATE,)
    assert not pending.is_waiting_for(ExecutionAttemptId("map-1"))
    assert not pending.is_waiting_for(ExecutionAttemptId("zombie"))
    assert pending.is_waiting_for(ExecutionAttemptId("map-0"))


def test_finalize_with_acks_missing_is_illegal_and_changes_nothing() -> None:
    """completion_future"""
    pending = make_pending()
    acknowledge(pending, "map-0", STATE)
    with pytest.raises(IllegalTransition, match="1 of 3"):
        pending.finalize(SHAPES, 120)
    assert not pending.is_storing
    assert acknowledge(pending, "map-1") is AckResult.SUCCESS


def test_finalize_happens_once() -> None:
    pending = make_pending()
    for attempt in ATTEMPTS:
        acknowledge(pending, attempt)
    pending.finalize(SHAPES, 120)
    with pytest.raises(IllegalTransition):
        pending.finalize(SHAPES, 121)


def test_a_stateless_subtask_has_no_entry_and_one_with_empty_state_has() -> None:
    """null_state_means_stateless"""
    pending = make_pending()
    acknowledge(pending, "sink-0")
    acknowledge(pending, "map-1", EMPTY, 3)
    acknowledge(pending, "map-0", STATE, 4)
    draft = pending.finalize(SHAPES, 120)
    assert draft.vertices[MAP].subtasks == {0: STATE, 1: EMPTY}
    assert draft.vertices[SINK].subtasks == {}
    assert (draft.vertices[SINK].parallelism, draft.vertices[SINK].max_parallelism) == (1, 64)
    assert (draft.timestamp_ms, draft.completed_ms, draft.state_size_bytes) == (100, 120, 7)
    assert draft.metadata_path == ""


@pytest.mark.parametrize(
    ("kind", "is_forced", "can_be_subsumed"),
    [
        (CheckpointKind.CHECKPOINT, False, True),
        (CheckpointKind.SAVEPOINT, True, False),
        (CheckpointKind.FINAL, True, True),
    ],
)
def test_only_a_savepoint_cannot_be_subsumed(kind: CheckpointKind, is_forced: bool, can_be_subsumed: bool) -> None:
    """can_be_subsumed"""
    assert (kind.is_forced, kind.can_be_subsumed) == (is_forced, can_be_subsumed)


def test_the_plan_of_a_graph_starts_at_its_sources_and_waits_for_everyone() -> None:
    graph = JobGraph(
        JOB,
        "job",
        (JobVertex(MAP, "map", 2, 128, ()), JobVertex(SINK, "sink", 1, 64, ())),
        (JobEdge(MAP, SINK, Partitioning.HASH),),
        CheckpointConfig("file:///tmp"),
        RestartStrategyConfig(RestartStrategyKind.NONE),
    )
    plan = CheckpointPlan.of(graph)
    assert plan.trigger == (SubtaskKey(MAP, SubtaskIndex(0)), SubtaskKey(MAP, SubtaskIndex(1)))
    assert plan.acknowledge == plan.notify == (*plan.trigger, SubtaskKey(SINK, SubtaskIndex(0)))
    assert plan.vertices == {MAP: SHAPES[MAP], SINK: VertexShape(1, 64, inputs={0: graph.edges[0]})}
