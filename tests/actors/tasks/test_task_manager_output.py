"""What a TaskManager's process logs and prints: sent together, to the leader only, and before a task's end is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.stacks import NO_STACKS
from understudy.actors.tasks.leader_link import TaskManagerSpec
from understudy.actors.tasks.task_manager import OUTPUT_DELAY_MS, TaskManager
from understudy.messages import (
    AcknowledgeRegistration,
    ExecutionAttemptId,
    ExecutionState,
    JobId,
    LeaderSessionId,
    LeaderSessionMessage,
    PrintedText,
    ReleaseTaskManager,
    TaskManagerId,
    UpdateTaskExecutionState,
)

ME, JOB, SESSION = TaskManagerId("tm-0"), JobId("job-1"), LeaderSessionId("session-1")
ATTEMPT = ExecutionAttemptId("attempt-1")


class Outbox:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.call: Any = None

    def when_filled(self, call: Any) -> None:
        self.call = call

    @property
    def is_empty(self) -> bool:
        return not self.texts

    def take(self, *, final: bool = False) -> list[PrintedText]:
        """One at a time, if it is not the last time."""
        taken, self.texts = (self.texts, []) if final else (self.texts[:1], self.texts[1:])
        return [PrintedText(ME, JOB, "stdout", text) for text in taken]


class Context:
    """Remembers what the actor wants."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.scheduled: list[tuple[float, Any]] = []
        self.to_self: list[Any] = []
        self.self_ref = SimpleNamespace(address="tcp://here:1/task-manager", tell=self.to_self.append)
        self.clock = SimpleNamespace(now_ms=lambda: 0.0, wall_ms=lambda: 0)

    def actor_of(self, address: str) -> Any:
        return SimpleNamespace(address=address, tell=self.sent.append)

    def watch(self, ref: Any) -> None: ...

    def schedule(self, delay_ms: float, message: Any) -> None:
        self.scheduled.append((delay_ms, message))


class Stage:
    def __init__(self) -> None:
        self.outbox, self.context, self.ended = Outbox(), Context(), []
        spec = TaskManagerSpec(ME, JOB, 0, 1, "tcp://there:1/job-manager", "here", 7)
        data_plane = SimpleNamespace(endpoint="tcp://here:2")
        services: Any = SimpleNamespace(
            data_plane=data_plane, stacks=NO_STACKS, process_figures=dict, collect_garbage=list
        )
        self.actor = TaskManager(spec, services, self.ended.append, self.outbox)
        self.actor.context = self.context  # type: ignore[assignment]
        self.actor.on_start()

    def register(self) -> None:
        self.actor.on_receive(AcknowledgeRegistration(SESSION, ME, 1000, 10_000))
        self.context.sent.clear()

    def fill(self, *texts: str) -> None:
        self.outbox.texts += texts
        self.outbox.call()

    def pass_on(self) -> None:
        """Hand the actor the messages of other threads."""
        for message in self.context.to_self:
            self.actor.on_receive(message)
        self.context.to_self.clear()

    def wait(self) -> None:
        """Let the time go by until what was filled in is due."""
        due = [message for delay_ms, message in self.context.scheduled if delay_ms == OUTPUT_DELAY_MS]
        self.context.scheduled = [each for each in self.context.scheduled if each[1] not in due]
        for message in due:
            self.actor.on_receive(message)

    def sent(self) -> list[Any]:
        """Text of what was printed, and other messages as they are."""
        assert all(isinstance(each, LeaderSessionMessage) for each in self.context.sent)
        inner = [each.message for each in self.context.sent]
        return [each.text if isinstance(each, PrintedText) else each for each in inner]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_output_is_sent_a_moment_later_until_nothing_is_left(stage: Stage) -> None:
    stage.register()
    stage.fill("one", "two")
    stage.pass_on()
    assert stage.sent() == []
    stage.wait()
    assert stage.sent() == ["one"]
    stage.wait()
    assert stage.sent() == ["one", "two"]
    assert not [each for each in stage.context.scheduled if each[0] == OUTPUT_DELAY_MS]


def test_output_waits_for_a_leader(stage: Stage) -> None:
    stage.fill("one")
    stage.pass_on()
    stage.wait()
    assert stage.outbox.texts == ["one"]
    stage.register()
    stage.wait()
    assert stage.sent() == ["one"]


def test_the_end_of_a_task_does_not_overtake_its_output(stage: Stage) -> None:
    stage.register()
    hosted: Any = SimpleNamespace(task=SimpleNamespace(state=ExecutionState.RUNNING), is_over=False)
    stage.actor._tasks[ATTEMPT] = hosted
    stage.fill("one", "two")
    report = UpdateTaskExecutionState(JOB, ATTEMPT, ExecutionState.FINISHED)
    stage.actor.on_receive(report)
    assert stage.sent() == ["one", "two", report]


def test_output_that_is_left_is_sent_when_the_task_manager_ends(stage: Stage) -> None:
    stage.register()
    stage.fill("one", "two")
    stage.actor.on_receive(LeaderSessionMessage(SESSION, ReleaseTaskManager(ME, "the job is over")))
    assert stage.sent() == ["one", "two"]
    assert stage.ended == ["the job is over"]
