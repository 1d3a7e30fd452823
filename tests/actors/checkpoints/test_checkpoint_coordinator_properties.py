"""CheckpointCoordinator under every interleaving that Hypothesis can think of.

The machine plays tasks that answer late, twice or never, slow and failing storage, tasks that fail and restart, and
savepoints and final checkpoints in between. After each step it holds that

- a checkpoint completes only with an acknowledgement of every attempt that was asked, and only when it is stored;
- checkpoints complete in the order of their ids, and no id is used twice;
- every state that was ever acknowledged has one owner: a pending or retained checkpoint, a savepoint, a write that is
  under way, or the one Discard that named it;
- only the oldest checkpoint that is not complete is switched to unaligned, and each attempt is told once;
- a savepoint, and a checkpoint that a client asks for, is answered once, and every pending checkpoint has a timer;
- ids grow, no more checkpoints are pending than may be, and one starts only when the tasks it starts at run and all
  others are deployed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from understudy.actors.checkpoints.checkpoint_effects import (
    AnswerCheckpoint,
    AnswerSavepoint,
    CheckpointEffect,
    Publish,
    Send,
    StoreMetadata,
)
from understudy.actors.checkpoints.checkpoint_events import (
    AlignmentOverdue,
    AllDataEnded,
    AttemptChanged,
    AttemptFailed,
    CheckpointEvent,
    CheckpointExpired,
    CheckpointRequested,
    MetadataFailed,
    RegionRestarting,
    RegionRunsOn,
    Shutdown,
    StartScheduler,
    StopScheduler,
    TriggerCheckpointNow,
)
from understudy.actors.checkpoints.pending_checkpoint import CheckpointKind
from understudy.actors.checkpoints.savepoint_request import CheckpointRequest
from understudy.messages import (
    AbortReason,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointConfig,
    CheckpointId,
    CheckpointTaken,
    ExecutionAttemptId,
    JobStatus,
    NotifyCheckpointComplete,
    SubtaskState,
    SwitchToUnaligned,
    TriggerCheckpoint,
)
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint

from ...examples import examples
from ..savepoint_requests import drain, savepoint_now
from .checkpoint_driver import Driver, ack, changed, decline, discarded, make_plan, sent, stored, subtask

TASKS = ["a", "b", "c"]


def names_in(states: tuple[SubtaskState, ...]) -> list[str]:
    return [name for state in states for name in state.operators]


class Coordination(RuleBasedStateMachine):
    """Attempts are named `task#n`; the state of an attempt for a checkpoint is named after both."""

    @initialize(
        max_concurrent=st.integers(1, 3),
        retained=st.integers(1, 3),
        tolerable=st.integers(0, 2),
        min_pause_ms=st.sampled_from([0, 15]),
        alignment_timeout_ms=st.sampled_from([None, 0, 12]),
    )
    def start(
        self,
        max_concurrent: int,
        retained: int,
        tolerable: int,
        min_pause_ms: int,
        alignment_timeout_ms: int | None,
    ) -> None:
        config = CheckpointConfig(
            "file:///tmp",
            interval_ms=10,
            timeout_ms=35,
            min_pause_ms=min_pause_ms,
            max_concurrent=max_concurrent,
            retained=retained,
            tolerable_failures=tolerable,
            alignment_timeout_ms=alignment_timeout_ms,
        )
        self.switched: set[tuple[str, int]] = set()
        self.collected: set[int] = set()  # checkpoints that wait for no acknowledgement any more
        self.driver = Driver(config, make_plan(["a"], TASKS, TASKS), stores_at_once=False)
        self.max_concurrent = max_concurrent
        self.attempts = {task: f"{task}#0" for task in TASKS}
        self.started = dict.fromkeys(TASKS, 0)
        self.starts_at_running = True
        self.asked: dict[int, set[str]] = {}
        self.acked: dict[int, set[str]] = {}
        self.given: set[str] = set()
        self.strangers: set[str] = set()  # from attempts that were not asked: a repeat may be discarded again
        self.discards: Counter[str] = Counter()
        self.writes: dict[int, CompletedCheckpoint] = {}
        self.written: set[int] = set()
        self.completed: list[int] = []
        self.savepoints: dict[int, CompletedCheckpoint] = {}
        self.promises: dict[str, int] = {}
        self.wanted_final: set[str] = set()  # promises that may wait for the final checkpoint
        self.requests: dict[str, int] = {}  # token -> the newest checkpoint when one was asked for
        self.answers: Counter[str] = Counter()
        self.is_shut_down = False
        for task, attempt in self.attempts.items():
            self.tell(changed(task, attempt))
        self.tell(StartScheduler())

    # ----------------------------------------------------------------------------------------- what happens

    @rule(ms=st.integers(1, 40))
    def time_passes(self, ms: int) -> None:
        self.observe(self.driver.advance(ms))

    @rule()
    def somebody_triggers_a_checkpoint(self) -> None:
        self.tell(TriggerCheckpointNow())

    @rule(is_full=st.booleans())
    def a_client_asks_for_a_checkpoint(self, is_full: bool) -> None:
        token = f"cp{len(self.requests)}"
        self.requests[token] = max(self.asked, default=0)
        self.tell(CheckpointRequested(CheckpointRequest(token, is_full)))

    @rule(stop=st.booleans())
    def somebody_triggers_a_savepoint(self, stop: bool) -> None:
        token = f"sp{len(self.promises)}"
        self.promises[token] = 0
        if stop:
            self.wanted_final.add(token)
        self.tell(savepoint_now(token, stop=stop))

    @rule()
    def somebody_wants_the_final_checkpoint_as_a_savepoint(self) -> None:
        token = f"sp{len(self.promises)}"
        self.promises[token] = 0
        self.wanted_final.add(token)
        self.tell(drain(token))

    @precondition(lambda self: self.completed)
    @rule()
    def a_region_runs_on(self) -> None:
        self.tell(RegionRunsOn())

    @rule()
    def all_data_ends(self) -> None:
        self.tell(AllDataEnded())

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def an_attempt_acknowledges(self, data: st.DataObject) -> None:
        """Any checkpoint ever triggered, any attempt that ever was; so it may be late, repeated or a zombie's."""
        self.acknowledge(*data.draw(self.attempt_and_checkpoint()))

    @precondition(lambda self: self.driver.coordinator.pending)
    @rule(data=st.data())
    def all_acknowledge(self, data: st.DataObject) -> None:
        checkpoint = data.draw(st.sampled_from(self.driver.pending_ids()))
        for attempt in sorted(self.asked[checkpoint]):
            self.acknowledge(attempt, checkpoint)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), reason=st.sampled_from(AbortReason))
    def an_attempt_declines(self, data: st.DataObject, reason: AbortReason) -> None:
        attempt, checkpoint = data.draw(self.attempt_and_checkpoint())
        self.tell(decline(attempt, checkpoint, reason=reason))

    @precondition(lambda self: self.writes)
    @rule(data=st.data(), succeeds=st.booleans())
    def storage_answers(self, data: st.DataObject, succeeds: bool) -> None:
        checkpoint = data.draw(st.sampled_from(sorted(self.writes)))
        draft = self.writes.pop(checkpoint)
        if succeeds:
            self.written.add(checkpoint)
            self.tell(stored(checkpoint))
        else:
            self.tell(MetadataFailed(CheckpointId(checkpoint), "disk full"))
        if draft.is_savepoint and checkpoint in self.completed:
            self.savepoints[checkpoint] = draft

    @rule(task=st.sampled_from(TASKS), restarts=st.booleans())
    def an_attempt_fails(self, task: str, restarts: bool) -> None:
        if task in self.attempts:
            self.tell(AttemptFailed(ExecutionAttemptId(self.attempts[task])))
        if restarts:
            self.tell(RegionRestarting())
        self.deploy(task, is_running=True)

    @rule(task=st.sampled_from(TASKS))
    def an_attempt_is_deployed_and_does_not_run_yet(self, task: str) -> None:
        self.deploy(task, is_running=False)

    @rule(task=st.sampled_from(TASKS))
    def a_task_is_without_an_attempt(self, task: str) -> None:
        self.attempts.pop(task, None)
        self.starts_at_running = self.starts_at_running and task != "a"
        self.tell(AttemptChanged(subtask(task), None, is_running=False))

    def deploy(self, task: str, is_running: bool) -> None:
        self.started[task] += 1
        self.attempts[task] = f"{task}#{self.started[task]}"
        if task == "a":
            self.starts_at_running = is_running
        self.tell(changed(task, self.attempts[task], running=is_running))

    @rule(restarts=st.booleans())
    def the_scheduler_stops(self, restarts: bool) -> None:
        self.tell(StopScheduler())
        if restarts:
            self.tell(StartScheduler())

    @precondition(lambda self: len(self.completed) > 3)
    @rule()
    def the_job_ends(self) -> None:
        self.is_shut_down = True
        self.tell(Shutdown(JobStatus.FINISHED))

    # --------------------------------------------------------------------------------------- what must hold

    @invariant()
    def every_state_has_one_owner(self) -> None:
        owners = Counter(self.discards)
        for pending in self.driver.coordinator.pending:
            if not pending.is_storing:
                owners.update(names_in(pending.states()))
        for kept in (*self.driver.coordinator.store.retained(), *self.writes.values(), *self.savepoints.values()):
            owners.update(names_in(kept.states()))
        assert owners == Counter(self.given)

    @invariant()
    def checkpoints_complete_in_the_order_of_their_ids(self) -> None:
        in_order = [each for each in self.completed if each not in self.savepoints]
        assert in_order == sorted(set(in_order))

    @invariant()
    def every_pending_checkpoint_has_a_timer_and_no_other_has(self) -> None:
        timers = {event.checkpoint_id for event in self.driver.timers if isinstance(event, CheckpointExpired)}
        assert timers == set(self.driver.pending_ids())

    @invariant()
    def no_timer_of_an_alignment_is_left(self) -> None:
        timers = {event.checkpoint_id for event in self.driver.timers if isinstance(event, AlignmentOverdue)}
        assert timers <= set(self.driver.pending_ids())

    @invariant()
    def a_savepoint_is_answered_once_it_is_not_pending(self) -> None:
        pending = {each.savepoint.token for each in self.driver.coordinator.pending if each.savepoint}
        unanswered = {token for token, answers in self.promises.items() if answers == 0}
        assert pending <= unanswered <= pending | self.wanted_final
        assert max(self.promises.values(), default=0) <= 1
        assert not (self.is_shut_down and unanswered)

    @invariant()
    def a_request_for_a_checkpoint_is_answered_once_and_waits_only_for_room(self) -> None:
        pending = self.driver.coordinator.pending
        served = {request.token for each in pending for request in each.requests}
        unanswered = self.requests.keys() - self.answers.keys()
        assert served <= unanswered
        assert unanswered == served or len(pending) >= self.max_concurrent
        assert max(self.answers.values(), default=0) <= 1
        assert not (self.is_shut_down and unanswered)

    @invariant()
    def no_more_checkpoints_are_pending_than_may_be(self) -> None:
        kinds = [pending.kind for pending in self.driver.coordinator.pending]
        assert kinds.count(CheckpointKind.CHECKPOINT) <= self.max_concurrent
        assert kinds.count(CheckpointKind.FINAL) <= 1

    @invariant()
    def nothing_is_pending_after_the_end(self) -> None:
        if self.is_shut_down:
            assert not self.driver.coordinator.pending
            assert not self.driver.timers.keys() & self.driver.pending_ids()

    # ----------------------------------------------------------------------------------------------- plumbing

    def attempt_and_checkpoint(self) -> st.SearchStrategy[tuple[str, int]]:
        attempts = sorted({*self.attempts.values(), *(each for asked in self.asked.values() for each in asked)})
        recent = sorted(self.asked)[-12:]  # of those it remembers: of older ones a repeat may be discarded again
        return st.tuples(st.sampled_from(attempts), st.sampled_from(recent))

    def acknowledge(self, attempt: str, checkpoint: int) -> None:
        state = f"{attempt}@{checkpoint}"
        self.given.add(state)
        if attempt in self.asked[checkpoint]:
            self.acked[checkpoint].add(attempt)
        else:
            self.strangers.add(state)
        self.tell(ack(attempt, checkpoint, state))

    def tell(self, event: CheckpointEvent) -> None:
        self.observe(self.driver.tell(event))

    def observe(self, effects: list[CheckpointEffect]) -> None:
        has_ended = False
        for effect in effects:
            match effect:
                case Send(message=TriggerCheckpoint(checkpoint_id=checkpoint)):
                    assert checkpoint > max(self.asked, default=0), "ids grow"
                    assert self.starts_at_running
                    assert set(self.attempts) == set(TASKS)
                    self.asked[checkpoint] = set(self.attempts.values())
                    self.acked[checkpoint] = set()
                case Send(attempt, SwitchToUnaligned(checkpoint_id=checkpoint)):
                    assert (attempt, checkpoint) not in self.switched, "once"
                    assert attempt in self.asked[checkpoint] - self.acked[checkpoint]
                    assert checkpoint == min(self.asked.keys() - self.collected), "it would overtake an older one"
                    self.switched.add((attempt, checkpoint))
                case StoreMetadata(draft):
                    self.writes[draft.checkpoint_id] = draft
                    self.collected.add(draft.checkpoint_id)
                case Publish(CheckpointAborted(checkpoint_id=checkpoint)):
                    self.collected.add(checkpoint)
                case Publish(CheckpointCompleted(checkpoint_id=checkpoint, final=is_final)):
                    assert self.acked[checkpoint] == self.asked[checkpoint]
                    assert checkpoint in self.written
                    self.completed.append(checkpoint)
                    has_ended = has_ended or is_final
                case AnswerSavepoint(request):
                    self.promises[request.token] += 1
                case AnswerCheckpoint(wanted, answer):
                    self.answers[wanted.token] += 1
                    if isinstance(answer, CheckpointTaken):
                        assert answer.checkpoint_id in self.completed
                        assert answer.checkpoint_id > self.requests[wanted.token], "it began before it was asked for"
        if has_ended:
            assert all(self.promises[token] for token in self.wanted_final), "nothing comes that they could wait for"
        for name in discarded(effects):
            if "@" in name and not (name in self.strangers and self.discards[name]):
                self.discards[name] += 1
        for message in sent(NotifyCheckpointComplete, effects):
            assert message.checkpoint_id in self.completed


TestCoordination: Any = Coordination.TestCase
TestCoordination.settings = examples(100, stateful_step_count=40)
