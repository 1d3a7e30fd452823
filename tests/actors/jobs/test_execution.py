"""One attempt: its transition table, and reports that come late, twice or out of order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.errors import IllegalTransition
from understudy.actors.job_graph import SubtaskKey
from understudy.actors.jobs.execution import TRANSITIONS, Execution, UpdateResult
from understudy.actors.jobs.slot_pool import SlotId
from understudy.messages import (
    ExecutionAttemptId,
    ExecutionState,
    FailureCause,
    SlotIndex,
    SubtaskIndex,
    TaskManagerId,
    VertexId,
)

S = ExecutionState
SLOT = SlotId(TaskManagerId("tm-1"), SlotIndex(0))
FAILURE = FailureCause("ValueError", "bad record")


def created() -> Execution:
    return Execution(SubtaskKey(VertexId("map"), SubtaskIndex(2)), 1, ExecutionAttemptId("attempt-7"))


def deployed(*reports: ExecutionState) -> Execution:
    execution = created()
    execution.schedule()
    execution.deploy(SLOT)
    for report in reports:
        execution.update(report)
    return execution


def canceling() -> Execution:
    execution = deployed(S.RUNNING)
    assert execution.cancel()
    return execution


def test_the_table_names_every_state_and_leaves_no_terminal_one() -> None:
    assert set(TRANSITIONS) == set(ExecutionState)
    for state, targets in TRANSITIONS.items():
        assert state.is_terminal == (not targets)


def test_an_attempt_goes_from_created_to_finished() -> None:
    execution = created()
    assert (execution.state, execution.task_manager_id) == (S.CREATED, None)
    execution.schedule()
    execution.deploy(SLOT)
    assert (execution.state, execution.task_manager_id) == (S.DEPLOYING, "tm-1")
    for state in (S.INITIALIZING, S.RUNNING, S.FINISHED):
        assert execution.update(state) is UpdateResult.APPLIED
        assert execution.state is state


def test_a_command_out_of_turn_is_illegal_and_says_whose() -> None:
    with pytest.raises(
        IllegalTransition, match=r"attempt 1 of map\[2\] \(attempt-7\): created> cannot become deploying"
    ):
        created().deploy(SLOT)
    with pytest.raises(IllegalTransition, match="cannot become scheduled"):
        deployed().schedule()


@pytest.mark.parametrize(
    ("execution", "report", "result", "state"),
    [
        (deployed(), S.RUNNING, UpdateResult.APPLIED, S.RUNNING),
        (deployed(), S.FINISHED, UpdateResult.APPLIED, S.FINISHED),
        (deployed(S.RUNNING), S.RUNNING, UpdateResult.DUPLICATE, S.RUNNING),
        (deployed(S.RUNNING), S.INITIALIZING, UpdateResult.LATE, S.RUNNING),
        (deployed(S.FINISHED), S.FINISHED, UpdateResult.DUPLICATE, S.FINISHED),
        (deployed(S.FINISHED), S.RUNNING, UpdateResult.LATE, S.FINISHED),
        (deployed(S.FINISHED), S.FAILED, UpdateResult.LATE, S.FINISHED),
        (deployed(S.FAILED), S.CANCELED, UpdateResult.LATE, S.FAILED),
        (deployed(S.RUNNING), S.CREATED, UpdateResult.LATE, S.RUNNING),
        (canceling(), S.RUNNING, UpdateResult.LATE, S.CANCELING),
        (canceling(), S.CANCELED, UpdateResult.APPLIED, S.CANCELED),
        (canceling(), S.FINISHED, UpdateResult.APPLIED, S.CANCELED),
        (canceling(), S.FAILED, UpdateResult.APPLIED, S.CANCELED),
    ],
)
def test_a_report_has_a_named_result(
    execution: Execution, report: ExecutionState, result: UpdateResult, state: ExecutionState
) -> None:
    assert execution.update(report) is result
    assert execution.state is state


def test_cancelled_without_being_asked_is_a_failure() -> None:
    """Flink: Execution.completeCancelling fails an attempt that was not being cancelled."""
    execution = deployed(S.RUNNING)
    assert execution.update(S.CANCELED) is UpdateResult.APPLIED
    assert execution.state is S.FAILED


def test_a_failure_is_kept_with_the_first_end_only() -> None:
    execution = deployed(S.RUNNING)
    assert execution.fail(FAILURE) is UpdateResult.APPLIED
    assert execution.fail(FailureCause("TaskManagerLost", "later")) is UpdateResult.DUPLICATE
    assert execution.failure == FAILURE


def test_cancelling_tells_the_task_manager_once_and_only_if_there_is_one() -> None:
    waiting, running = created(), deployed(S.INITIALIZING)
    assert [waiting.cancel(), running.cancel(), running.cancel(), deployed(S.FINISHED).cancel()] == [
        *(False, True, False, False)
    ]
    assert (waiting.state, running.state) == (S.CANCELED, S.CANCELING)


@given(st.lists(st.sampled_from([*ExecutionState, "cancel"])))
def test_whatever_is_reported_states_follow_the_table(reports: list[ExecutionState | str]) -> None:
    execution = deployed()
    for report in reports:
        before = execution.state
        if isinstance(report, ExecutionState):
            applied = execution.update(report) is UpdateResult.APPLIED
            assert applied == (execution.state is not before)
        else:
            execution.cancel()
        assert execution.state is before or execution.state in TRANSITIONS[before]
