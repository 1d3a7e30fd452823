"""A TaskManager whose leader is gone: it ends, or it runs on for a while and turns to the next one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.actor import Terminated
from understudy.actors.stacks import NO_STACKS
from understudy.actors.tasks.leader_link import AloneTooLong, BeatDue, RegisterDue, TaskManagerSpec
from understudy.actors.tasks.task_manager import TaskManager, _Hosted
from understudy.messages import (
    AcknowledgeRegistration,
    CancelTask,
    ExecutionAttemptId,
    ExecutionState,
    FollowLeader,
    Heartbeat,
    JobId,
    LeaderIs,
    LeaderSessionId,
    LeaderSessionMessage,
    RefuseRegistration,
    RegisterTaskManager,
    ReleaseTaskManager,
    TaskManagerFailing,
    TaskManagerId,
    UpdateTaskExecutionState,
)

from .task_stage import FIGURES

ME, JOB = TaskManagerId("tm-0"), JobId("job-1")
ONE, TWO = LeaderSessionId("session-1"), LeaderSessionId("session-2")
FIRST, SECOND = "tcp://one:1/job-manager", "tcp://two:1/job-manager"
HOST = "tcp://here:3/host"


class Context:
    """Remembers what the actor wants, and to whom it says what."""

    def __init__(self) -> None:
        self.now = 0.0
        self.said: list[tuple[str, Any]] = []
        self.scheduled: list[tuple[float, Any]] = []
        self.watched: list[str] = []
        self.self_ref = SimpleNamespace(address="tcp://here:1/task-manager", tell=lambda _: None)
        self.clock = SimpleNamespace(now_ms=lambda: self.now, wall_ms=lambda: int(self.now))

    def actor_of(self, address: str) -> Any:
        return SimpleNamespace(address=address, tell=lambda message: self.said.append((address, message)))

    def watch(self, ref: Any) -> None:
        self.watched.append(ref.address)

    def schedule(self, delay_ms: float, message: Any) -> None:
        self.scheduled.append((delay_ms, message))


class Stage:
    def __init__(self, alone_ms: int = 30_000) -> None:
        self.context, self.ended = Context(), list[str]()
        spec = TaskManagerSpec(ME, JOB, 0, 1, FIRST, "here", 7, HOST if alone_ms else "", alone_ms)
        services: Any = SimpleNamespace(
            data_plane=SimpleNamespace(endpoint="tcp://here:2"),
            stacks=NO_STACKS,
            process_figures=dict,
            collect_garbage=list,
        )
        self.actor = TaskManager(spec, services, self.ended.append)
        self.actor.context = self.context  # type: ignore[assignment]
        self.actor.on_start()

    def tell(self, message: Any) -> list[tuple[str, Any]]:
        """What it says then."""
        self.context.said.clear()
        self.actor.on_receive(message)
        return list(self.context.said)

    def acknowledge(self, session: LeaderSessionId) -> list[tuple[str, Any]]:
        """The answer of that leader to what was asked last."""
        return self.tell(AcknowledgeRegistration(session, ME, 1_000, 10_000, self.newest(RegisterDue).search))

    def newest(self, kind: type) -> Any:
        return [event for _, event in self.context.scheduled if isinstance(event, kind)][-1]

    def registers_at(self, said: list[tuple[str, Any]]) -> list[str]:
        return [address for address, message in said if isinstance(message, RegisterTaskManager)]


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.acknowledge(ONE)
    return made


def test_it_asks_its_host_who_leads_and_registers_where_it_was_started_for() -> None:
    stage = Stage()
    assert [(HOST, FollowLeader("tcp://here:1/task-manager"))] == [
        each for each in stage.context.said if each[0] == HOST
    ]
    assert stage.registers_at(stage.context.said) == [FIRST]
    assert stage.registers_at(stage.tell(stage.newest(RegisterDue))) == [FIRST], "again, until it is answered"
    stage.acknowledge(ONE)
    assert stage.registers_at(stage.tell(stage.newest(RegisterDue))) == []


def test_where_no_leader_follows_it_ends_with_its_own() -> None:
    stage = Stage(alone_ms=0)
    assert not any(isinstance(message, FollowLeader) for _, message in stage.context.said)
    stage.acknowledge(ONE)
    stage.tell(Terminated(FIRST, "killed by SIGKILL"))
    assert stage.ended == ["the JobManager is gone: killed by SIGKILL"]


def test_one_that_is_alone_looks_for_a_leader_where_the_last_one_was_and_where_its_host_says(stage: Stage) -> None:
    assert stage.registers_at(stage.tell(Terminated(FIRST, "killed"))) == [FIRST], "it may be started again there"
    assert stage.registers_at(stage.tell(LeaderIs(SECOND, TWO))) == [SECOND]
    stage.acknowledge(TWO)
    assert stage.context.watched[-1] == SECOND
    assert stage.ended == []
    stage.tell(AloneTooLong(1))
    assert stage.ended == [], "it is not alone any more"


def test_it_runs_on_alone_for_its_time_and_then_ends(stage: Stage) -> None:
    stage.tell(Terminated(FIRST, "killed"))
    (alone,) = [(delay, event) for delay, event in stage.context.scheduled if isinstance(event, AloneTooLong)]
    assert alone[0] == 30_000
    stage.tell(Terminated(FIRST, "still not there"))
    assert len([event for _, event in stage.context.scheduled if isinstance(event, AloneTooLong)]) == 1
    stage.tell(alone[1])
    assert stage.ended == ["no JobManager has led for too long"]


def test_so_does_one_whose_leader_was_never_there() -> None:
    stage = Stage()
    stage.tell(Terminated(FIRST, "refused"))
    stage.tell(stage.newest(AloneTooLong))
    assert stage.ended == ["no JobManager has led for too long"]


def test_a_time_alone_that_is_over_does_not_count_for_the_next_one(stage: Stage) -> None:
    stage.tell(Terminated(FIRST, "killed"))
    first = stage.newest(AloneTooLong)
    stage.tell(LeaderIs(SECOND, TWO))
    stage.acknowledge(TWO)
    stage.tell(Terminated(SECOND, "killed"))
    stage.tell(first)
    assert stage.ended == []
    stage.tell(stage.newest(AloneTooLong))
    assert len(stage.ended) == 1


def test_silence_is_a_loss(stage: Stage) -> None:
    beat = stage.newest(BeatDue)
    stage.context.now = 10_001
    assert stage.registers_at(stage.tell(beat)) == [FIRST]
    assert stage.tell(beat) == [], "a beat of that registration is not due any more"
    stage.acknowledge(ONE)
    said = stage.tell(stage.newest(BeatDue))
    assert [type(message.message) for _, message in said if isinstance(message, LeaderSessionMessage)] == [Heartbeat]


def test_one_that_ends_of_silence_says_so_to_a_leader_that_may_only_be_slow() -> None:
    """Else it receives reports of canceled tasks without a reason. It is said before the tasks end."""
    stage = Stage(alone_ms=0)
    stage.acknowledge(ONE)
    deployed = SimpleNamespace(job_id=JOB, attempt_id="a")
    task: Any = SimpleNamespace(state=ExecutionState.RUNNING, deployment=deployed, metrics=lambda: FIGURES)
    canceled: list[Any] = []

    def cancel(order: Any) -> None:
        canceled.append(order)
        stage.actor.on_receive(UpdateTaskExecutionState(JOB, order.attempt_id, ExecutionState.CANCELED))

    stage.actor._tasks[ExecutionAttemptId("a")] = _Hosted(task, SimpleNamespace(address="a", tell=cancel))
    stage.context.now = 10_001
    said = [message.message for _, message in stage.tell(stage.newest(BeatDue))]
    assert [type(order) for order in canceled] == [CancelTask]
    reason = "nothing heard from the JobManager for 10001 ms"
    assert said[0] == TaskManagerFailing(ME, reason)
    assert [type(message) for message in said[1:]] == [UpdateTaskExecutionState]
    task.state = ExecutionState.CANCELED
    stage.tell(Terminated("a", "stopped"))
    assert stage.ended == [reason]


def test_the_leader_it_has_is_not_left_for_itself(stage: Stage) -> None:
    assert stage.tell(LeaderIs(FIRST, ONE)) == []
    assert stage.registers_at(stage.tell(LeaderIs(FIRST, TWO))) == [FIRST], "the same place, and another term"


def test_a_leader_that_wakes_late_orders_nothing(stage: Stage) -> None:
    stage.tell(LeaderIs(SECOND, TWO))
    stage.tell(LeaderSessionMessage(ONE, ReleaseTaskManager(ME, "the job is over")))
    stage.tell(RefuseRegistration(ME, "unknown job", ONE))
    stage.acknowledge(ONE)
    stage.acknowledge(TWO)
    stage.tell(LeaderSessionMessage(ONE, ReleaseTaskManager(ME, "the job is over")))
    assert stage.ended == []
    assert stage.actor.stale_messages == 2
    stage.tell(LeaderSessionMessage(TWO, ReleaseTaskManager(ME, "the job is over")))
    assert stage.ended == ["the job is over"]


def test_the_next_leader_may_answer_where_the_last_one_was_before_the_host_says_so(stage: Stage) -> None:
    stage.tell(LeaderIs(FIRST, ONE))
    stage.tell(Terminated(FIRST, "it leads no more"))
    stage.acknowledge(TWO)
    stage.tell(LeaderSessionMessage(TWO, ReleaseTaskManager(ME, "the job is over")))
    assert stage.ended == ["the job is over"], "its orders count from its answer on"


def test_one_that_asks_the_leader_already_goes_on_asking_when_its_host_names_it() -> None:
    stage = Stage()
    asked = stage.newest(RegisterDue).search
    assert stage.tell(LeaderIs(FIRST, ONE)) == []
    stage.tell(AcknowledgeRegistration(ONE, ME, 1_000, 10_000, asked))
    stage.tell(LeaderSessionMessage(ONE, ReleaseTaskManager(ME, "the job is over")))
    assert stage.ended == ["the job is over"], "the answer was on its way, and with it the leader's orders"


def test_an_answer_to_an_earlier_search_comes_too_late(stage: Stage) -> None:
    earlier = stage.newest(RegisterDue).search
    stage.tell(Terminated(FIRST, "the connection broke"))
    stage.tell(AcknowledgeRegistration(ONE, ME, 1_000, 10_000, earlier))
    assert stage.registers_at(stage.tell(stage.newest(RegisterDue))) == [FIRST]
    stage.acknowledge(ONE)
    assert stage.registers_at(stage.tell(stage.newest(RegisterDue))) == []


def test_one_that_the_next_leader_does_not_want_ends(stage: Stage) -> None:
    stage.tell(LeaderIs(SECOND, TWO))
    stage.tell(RefuseRegistration(ME, "its job starts again", TWO))
    assert stage.ended == ["registration refused: its job starts again"]


def test_an_end_that_has_begun_is_not_undone(stage: Stage) -> None:
    stage.tell(LeaderSessionMessage(ONE, ReleaseTaskManager(ME, "the job is over")))
    assert stage.tell(LeaderIs(SECOND, TWO)) == stage.tell(Terminated(FIRST, "killed")) == []
    assert stage.ended == ["the job is over"]
