"""Orders of a checkpoint to one TaskManager go together, and nothing overtakes anything on its way there."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.jobs.job_effects import StartTaskManager, Tell
from understudy.actors.jobs.orders_together import together
from understudy.messages import (
    CancelTask,
    CheckpointId,
    ExecutionAttemptId,
    ExpectBarrier,
    JobId,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    OrderTogether,
    SwitchToUnaligned,
    TaskManagerId,
    TriggerCheckpoint,
)

JOB, ONE, TWO = JobId("job-1"), TaskManagerId("tm-1"), TaskManagerId("tm-2")
CHECKPOINT = CheckpointId(3)


def attempt(number: int) -> ExecutionAttemptId:
    return ExecutionAttemptId(f"attempt-{number}")


ORDERS = [
    lambda number: TriggerCheckpoint(JOB, attempt(number), CHECKPOINT, 5),
    lambda number: ExpectBarrier(JOB, attempt(number), CHECKPOINT),
    lambda number: SwitchToUnaligned(JOB, attempt(number), CHECKPOINT, 5),
    lambda number: NotifyCheckpointComplete(JOB, attempt(number), CHECKPOINT, 5),
    lambda number: NotifyCheckpointAborted(JOB, attempt(number), CHECKPOINT, "late"),
]
effects = st.lists(
    st.one_of(
        st.builds(
            lambda to, make, number: Tell(to, make(number)),
            st.sampled_from([ONE, TWO]),
            st.sampled_from(ORDERS),
            st.integers(0, 3),
        ),
        st.builds(lambda number: Tell(ONE, CancelTask(JOB, attempt(number))), st.integers(0, 3)),
        st.just(StartTaskManager(1)),
    )
)


def test_one_message_per_task_manager() -> None:
    triggers = [Tell(to, ORDERS[0](number)) for number, to in enumerate([ONE, TWO, ONE])]
    alone = Tell(TWO, ORDERS[1](7))
    assert list(together([*triggers, StartTaskManager(1), alone])) == [
        Tell(ONE, OrderTogether((ORDERS[0](0), ORDERS[0](2)))),
        triggers[1],
        StartTaskManager(1),
        alone,
    ]


@given(given=effects)
def test_nothing_is_lost_or_overtakes(given: list[Any]) -> None:
    """Whatever stands between two effects that are no orders stays there, and each TaskManager hears it in order."""
    put = list(together(given))
    assert _heard(put) == _heard(given)
    runs = [type(each.message) for each in put if isinstance(each, Tell)]
    assert len(put) <= len(given)
    assert OrderTogether in runs or len(put) == len(given)


def _heard(effects: list[Any]) -> list[list[Any]]:
    """By TaskManager: its messages, and each effect that is no order."""
    heard: list[list[Any]] = []
    for to in (ONE, TWO):
        said: list[Any] = []
        for effect in effects:
            match effect:
                case Tell(task_manager_id, OrderTogether(orders)):
                    said += orders if task_manager_id == to else ()
                case Tell(task_manager_id, message) if not isinstance(message, CancelTask):
                    said += [message] if task_manager_id == to else []
                case _:
                    said.append(effect)
        heard.append(said)
    return heard
