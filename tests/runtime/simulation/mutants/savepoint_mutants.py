"""Mutants of savepoints: taking one, stopping with one, restoring from one in another parallelism, disposing of one."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from understudy.actors.checkpoints.checkpoint_effects import AnswerCheckpoint, AnswerSavepoint
from understudy.actors.checkpoints.checkpoint_events import CheckpointRequested, MetadataFailed, MetadataStored
from understudy.actors.checkpoints.checkpoint_files import CheckpointFiles
from understudy.actors.checkpoints.checkpoint_requests import CheckpointRequests
from understudy.actors.checkpoints.savepoint_request import Afterwards
from understudy.actors.job_manager.job_files import JobFiles
from understudy.actors.job_manager.managed_job import ManagedJob
from understudy.actors.job_manager.storage_answers import ForJob
from understudy.actors.operators.source import Source, continue_source
from understudy.actors.restore import restored_operators
from understudy.actors.restore.restore_points import RestorePoints
from understudy.actors.tasks import task_loop
from understudy.actors.tasks.task_loop import TaskLoop
from understudy.messages import CheckpointCompleted, CheckpointTaken, JobStatus, TriggerSavepointSuccess
from understudy.runtime.connectors.files.file_sink import FileSink
from understudy.runtime.simulation.histories.actions import (
    CancelWithSavepoint,
    ClientAction,
    DisposeSavepoint,
    RestartFromSavepoint,
    StopWithSavepoint,
    TakeCheckpoint,
    TakeSavepoint,
)
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.world.faults import Fault, KillAtOperation, KillProcess, SlowStorage
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.assignment import assign_operator
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, StandaloneCompletedCheckpointStore
from understudy.state.checkpoints.shared_state import SavepointAt, SharedStateRegistry

from .mutant import CUT, EARLY, KEPT, LEAKED, LIVENESS, LOST, OUTPUT, PROMISE, Patch, mutant, nothing

# ---- what happens in these histories


def acting(*topologies: str, records: int = 50, faults: Any = lambda chance, duration_ms: ()) -> Any:
    """Histories of these topologies in which the user does what the decorated function says; all else is drawn."""

    def decorate(plan: Any) -> Any:
        def scenario(seed: int) -> Scenario:
            chance = random.Random(f"{plan.__name__} {seed}")
            standard = Scenario.of(seed, chance.choice(topologies))
            interval_ms = chance.choice((1_000, 2_000))
            workload = replace(
                standard.workload, records=records, records_per_second=2.7, checkpoint_interval_ms=interval_ms
            )
            actions: tuple[ClientAction, ...] = tuple(plan(chance, workload.duration_ms))
            happening: tuple[Fault, ...] = tuple(faults(chance, workload.duration_ms))
            drawn = replace(standard, workload=workload, actions=actions, faults=happening, storage_ms=0.0)
            return replace(drawn, slots=-(-drawn.job_parallelism // drawn.task_managers))

        return scenario

    return decorate


def a_kill_soon_after_the_middle(chance: random.Random, duration_ms: float) -> list[Fault]:
    return [KillProcess(round((0.5 + chance.uniform(0.01, 0.1)) * duration_ms, 1), 0)]


def storage_that_takes_too_long(chance: random.Random, duration_ms: float) -> list[Fault]:
    """What is begun just then is not done when its checkpoint expires."""
    return [SlowStorage(round(0.2 * duration_ms + 10, 1), 1_000.0, 25_000.0)]


def deaths_in_the_middle_of_it(chance: random.Random, duration_ms: float) -> list[Fault]:
    at_ms = round(0.4 * duration_ms + chance.uniform(-50, 100), 1)
    return [KillAtOperation(at_ms, who, chance.randint(1, 20)) for who in range(3)]


@acting("keyed", "states", "two-inputs", "fan-in")
def savepoints_now_and_then(chance: random.Random, duration_ms: float) -> Iterable[ClientAction]:
    yield TakeSavepoint(0.3 * duration_ms)
    yield TakeSavepoint(0.5 * duration_ms)


@acting("keyed", "states", "two-inputs", "fan-in")
def savepoints_that_go_at_once(chance: random.Random, duration_ms: float) -> Iterable[ClientAction]:
    for share in (0.2, 0.4, 0.6, 0.8):
        yield TakeSavepoint(share * duration_ms)
        yield DisposeSavepoint(share * duration_ms + chance.uniform(50, 400))


@acting("spread", "columnar", "columnar-updates", "states")
def another_parallelism(chance: random.Random, duration_ms: float) -> Iterable[ClientAction]:
    yield StopWithSavepoint(0.3 * duration_ms)
    yield RestartFromSavepoint(0.3 * duration_ms, chance.choice((1, 3)))
    yield StopWithSavepoint(0.6 * duration_ms)
    yield RestartFromSavepoint(0.6 * duration_ms, 2)


@acting("keyed", "spread", "two-inputs", faults=a_kill_soon_after_the_middle)
def a_restart_and_then_a_kill(chance: random.Random, duration_ms: float) -> Iterable[ClientAction]:
    yield StopWithSavepoint(0.45 * duration_ms)
    yield RestartFromSavepoint(0.5 * duration_ms, chance.randint(1, 3))


@acting("keyed", "spread", "two-inputs", records=200, faults=storage_that_takes_too_long)
def a_stop_that_fails(chance: random.Random, duration_ms: float) -> Iterable[ClientAction]:
    yield StopWithSavepoint(0.2 * duration_ms)


@acting("keyed", "spread", "two-inputs")
def a_cancellation(chance: random.Random, duration_ms: float) -> Iterable[ClientAction]:
    yield CancelWithSavepoint(chance.uniform(0.3, 0.6) * duration_ms)
    yield RestartFromSavepoint(0.6 * duration_ms, chance.randint(1, 3))


@acting("keyed", "spread", "two-inputs", faults=deaths_in_the_middle_of_it)
def a_cancellation_among_deaths(chance: random.Random, duration_ms: float) -> Iterable[ClientAction]:
    yield CancelWithSavepoint(0.4 * duration_ms)
    yield RestartFromSavepoint(0.4 * duration_ms, chance.randint(1, 3))


# ---- keeping and disposing


@mutant(LOST, within=10, scenarios=savepoints_now_and_then)
def a_savepoint_goes_with_the_next_checkpoint(patch: Patch) -> None:
    """Nobody remembers that its user needs it."""
    completed = CheckpointFiles.completed
    patch.setattr(CheckpointFiles, "completed", lambda self, what, savepoints=(): completed(self, what))


@mutant(LOST, OUTPUT, within=20, scenarios=savepoints_that_go_at_once)
def a_disposal_takes_what_the_job_would_go_back_to(patch: Patch) -> None:
    let_go = SharedStateRegistry._let_go

    def regardless(self: SharedStateRegistry, file: Any, owner: Any) -> bool:
        return let_go(self, file, owner) or isinstance(owner, SavepointAt)

    patch.setattr(SharedStateRegistry, "_let_go", regardless)


@mutant(KEPT, LEAKED, within=10, scenarios=savepoints_that_go_at_once)
def the_state_of_a_disposed_savepoint_stays(patch: Patch) -> None:
    patch.setattr(JobFiles, "_delete", nothing)
    patch.setattr(CheckpointStorage, "delete_job", nothing)


@mutant(LOST, within=20, scenarios=a_cancellation)
def a_canceled_job_leaves_nothing_whatever_was_asked_for(patch: Patch) -> None:
    def shutdown(self: StandaloneCompletedCheckpointStore, status: JobStatus) -> list[CompletedCheckpoint]:
        dropped, self._retained, self._savepoint = self._retained, [], None
        return dropped

    patch.setattr(StandaloneCompletedCheckpointStore, "shutdown", shutdown)


@mutant(LEAKED, within=20, scenarios=a_cancellation)
def a_job_leaves_its_checkpoints_though_it_was_not_to(patch: Patch) -> None:
    patch.setattr(StandaloneCompletedCheckpointStore, "shutdown", lambda self, status: [])


@mutant(LOST, EARLY, within=20, scenarios=savepoints_now_and_then)
def a_savepoint_is_answered_for_before_its_metadata_is_durable(patch: Patch) -> None:
    store = JobFiles.store

    def hasty(self: JobFiles, job_id: Any, storage: CheckpointStorage, effect: Any, *more: Any) -> None:
        if not effect.savepoints:
            store(self, job_id, storage, effect, *more)
            return
        draft = effect.draft
        path = f"{job_id}/chk-{draft.checkpoint_id}/_metadata"

        def point() -> dict[str, str]:
            completed = replace(draft, metadata_path=path)
            return {each.token: self._savepoints.store(completed, storage, None) for each in effect.savepoints}

        self._context.pipe_to_self(
            self._context.run_blocking(point),
            lambda pointers: ForJob(job_id, MetadataStored(draft.checkpoint_id, path, pointers)),
            lambda error: ForJob(job_id, MetadataFailed(draft.checkpoint_id, str(error), path)),
        )
        self._context.run_blocking(storage.write_sealed, path, encode_metadata(draft))

    patch.setattr(JobFiles, "store", hasty)


# ---- promises


@mutant(PROMISE, LIVENESS, within=20, scenarios=a_stop_that_fails)
def a_promise_stays_open_when_its_savepoint_fails(patch: Patch) -> None:
    given_up = CheckpointRequests.given_up

    def silently(self: CheckpointRequests, *args: Any) -> list[Any]:
        return [each for each in given_up(self, *args) if not isinstance(each, AnswerSavepoint)]

    patch.setattr(CheckpointRequests, "given_up", silently)


@mutant(PROMISE, within=20, scenarios=a_stop_that_fails)
def a_savepoint_that_failed_is_said_to_be_there(patch: Patch) -> None:
    """Where its metadata would have been."""

    given_up = CheckpointRequests.given_up

    def boldly(self: CheckpointRequests, *args: Any) -> list[Any]:
        there = TriggerSavepointSuccess(self._job_id, "sim://savepoints/savepoint-that-failed")
        effects = given_up(self, *args)
        return [replace(each, answer=there) if isinstance(each, AnswerSavepoint) else each for each in effects]

    patch.setattr(CheckpointRequests, "given_up", boldly)


# ---- ending a job with a savepoint


@mutant(CUT, within=20, scenarios=another_parallelism)
def a_stopped_source_goes_on_behind_its_barrier(patch: Patch) -> None:
    patch.setattr(TaskLoop, "_hold", nothing)


@mutant(LIVENESS, within=20, scenarios=a_stop_that_fails)
def a_stop_that_failed_never_lets_its_sources_go_on(patch: Patch) -> None:
    hold = TaskLoop._hold
    patch.setattr(TaskLoop, "_hold", lambda self, checkpoint_id: hold(self, checkpoint_id or self._held_by))


@mutant(OUTPUT, within=20, scenarios=a_cancellation)
def a_job_is_cancelled_when_more_than_its_savepoint_is_committed(patch: Patch) -> None:
    """With the checkpoint that comes next."""
    answer, publish = ManagedJob._answer_savepoint, ManagedJob._publish
    waiting: set[ManagedJob] = set()

    def later(self: ManagedJob, settled: AnswerSavepoint) -> None:
        if settled.request.afterwards is Afterwards.CANCEL and isinstance(settled.answer, TriggerSavepointSuccess):
            settled = replace(settled, request=replace(settled.request, afterwards=Afterwards.RUN_ON))
            waiting.add(self)
        answer(self, settled)

    def published(self: ManagedJob, message: Any) -> None:
        publish(self, message)
        if isinstance(message, CheckpointCompleted) and self in waiting:
            waiting.discard(self)
            self._context.schedule(50, ForJob(self.job_id, None))

    on = ManagedJob.on
    patch.setattr(ManagedJob, "on", lambda self, event: self.cancel() if event is None else on(self, event))
    patch.setattr(ManagedJob, "_answer_savepoint", later)
    patch.setattr(ManagedJob, "_publish", published)


# ---- restoring from a savepoint


@mutant(OUTPUT, within=10, scenarios=another_parallelism)
def a_rescaled_source_begins_anew(patch: Patch) -> None:
    resume = continue_source

    def anew(source: Source, recorded: Any) -> None:
        if recorded and recorded[0].parallelism == source.context.parallelism:
            resume(source, recorded)

    patch.setattr(task_loop, "continue_source", anew)


@mutant(OUTPUT, within=10, scenarios=another_parallelism)
def a_rescaled_source_forgets_what_the_last_subtask_had_left(patch: Patch) -> None:
    resume = continue_source

    def forgetful(source: Source, recorded: Any) -> None:
        rescale = source.rescale
        source.rescale = lambda offsets: rescale([*offsets[:-1], offsets[0]])  # type: ignore[method-assign]
        resume(source, recorded)

    patch.setattr(task_loop, "continue_source", forgetful)


@mutant(OUTPUT, LIVENESS, within=10, scenarios=another_parallelism)
def key_groups_stay_with_the_subtasks_that_had_them(patch: Patch) -> None:
    assign = assign_operator

    def as_before(subtasks: Any, operator: Any, old: int, new: int, max_parallelism: int) -> Any:
        same = assign(subtasks, operator, old, old, max_parallelism)
        moved = assign(subtasks, operator, old, new, max_parallelism)
        return [replace(share, keyed=same[index].keyed if index < old else ()) for index, share in enumerate(moved)]

    patch.setattr(restored_operators, "assign_operator", as_before)


@mutant(OUTPUT, within=20, scenarios=a_restart_and_then_a_kill)
def a_restored_job_that_fails_early_begins_anew(patch: Patch) -> None:
    """It goes to its savepoint once."""
    choose = RestorePoints.choose

    def once(self: RestorePoints, region: Any) -> Any:
        chosen = choose(self, region)
        if chosen is None or self._origin is None:
            return chosen
        used = self._chosen.setdefault("used", 0)  # type: ignore[call-overload]
        self._chosen["used"] = used + 1  # type: ignore[index]
        return chosen if used == 0 else None

    patch.setattr(RestorePoints, "choose", once)


@mutant(OUTPUT, within=120, scenarios=a_cancellation_among_deaths)
def what_the_other_job_had_prepared_is_not_committed(patch: Patch) -> None:
    commit = FileSink.commit

    def own(self: FileSink, transaction: Any) -> None:
        if transaction["directory"] == self.path:
            commit(self, transaction)

    patch.setattr(FileSink, "commit", own)


# ---- checkpoints that somebody asks for


@acting("keyed", "states", "two-inputs", faults=deaths_in_the_middle_of_it)
def checkpoints_are_asked_for(chance: random.Random, duration_ms: float) -> Iterable[ClientAction]:
    for share in (0.2, 0.4, 0.4, 0.4, 0.7):
        yield TakeCheckpoint(round(share * duration_ms + chance.uniform(0, 20), 1))


@mutant(PROMISE, within=80, scenarios=checkpoints_are_asked_for)
def who_waits_for_a_checkpoint_is_forgotten_at_a_restart(patch: Patch) -> None:
    def forgotten(requests: CheckpointRequests, failure: Any) -> list[Any]:
        requests._waiting = ()
        return []

    patch.setattr(CheckpointRequests, "refuse_waiting", forgotten)


@mutant(PROMISE, within=20, scenarios=checkpoints_are_asked_for)
def who_has_asked_for_a_checkpoint_that_is_given_up_hears_nothing(patch: Patch) -> None:
    given_up = CheckpointRequests.given_up

    def silent(requests: CheckpointRequests, pending: Any, *how: Any) -> list[Any]:
        return [each for each in given_up(requests, pending, *how) if not isinstance(each, AnswerCheckpoint)]

    patch.setattr(CheckpointRequests, "given_up", silent)


@mutant(PROMISE, within=20, scenarios=checkpoints_are_asked_for)
def the_newest_checkpoint_is_the_answer_though_it_was_there_before(patch: Patch) -> None:
    completed, on = CheckpointRequests.completed, CheckpointRequests.on
    newest: list[CompletedCheckpoint] = []

    def noted(requests: CheckpointRequests, pending: Any, done: CompletedCheckpoint, paths: Any) -> list[Any]:
        newest[:] = [done]
        return completed(requests, pending, done, paths)

    def at_once(requests: CheckpointRequests, event: Any, *when: Any) -> list[Any]:
        if newest and isinstance(event, CheckpointRequested):
            done = newest[0]
            return [AnswerCheckpoint(event.request, CheckpointTaken(done.job_id, done.checkpoint_id, "x/_metadata"))]
        return on(requests, event, *when)

    patch.setattr(CheckpointRequests, "completed", noted)
    patch.setattr(CheckpointRequests, "on", at_once)
