"""What is discarded when several need the same files: the job, a savepoint's user, a later checkpoint."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from understudy.actors.checkpoints.checkpoint_coordinator import CheckpointCoordinator
from understudy.actors.checkpoints.checkpoint_effects import AnswerSavepoint, CheckpointEffect, Discard, StoreMetadata
from understudy.actors.checkpoints.checkpoint_events import (
    MetadataStored,
    RegionRestarting,
    Shutdown,
    TriggerCheckpointNow,
)
from understudy.actors.checkpoints.checkpoint_files import CheckpointFiles
from understudy.messages import (
    AcknowledgeCheckpoint,
    CheckpointConfig,
    CheckpointId,
    ExecutionAttemptId,
    JobStatus,
    KeyedStateHandle,
    OperatorId,
    OperatorSubtaskState,
    StateHandle,
    SubtaskState,
    TriggerSavepointSuccess,
)
from understudy.state.checkpoints.checkpoint_ids import StandaloneCheckpointIdCounter
from understudy.state.checkpoints.completed_checkpoints import StandaloneCompletedCheckpointStore
from understudy.state.checkpoints.shared_state import (
    CheckpointOf,
    DoomedMetadata,
    RestoredJob,
    SavepointAt,
    SharedStateRegistry,
    StateFile,
)
from understudy.state.checkpoints.snapshot_file import state_handles

from ..savepoint_requests import savepoint_now
from .checkpoint_driver import JOB, changed, make_plan, of_type

ROOT = "/checkpoints"


@dataclass
class Job:
    """One task's checkpoints, whose files are named; metadata of checkpoint n is stored as `meta-n`."""

    retained: int = 1
    registry: SharedStateRegistry = field(default_factory=SharedStateRegistry)

    def __post_init__(self) -> None:
        self.coordinator = CheckpointCoordinator(
            JOB,
            CheckpointConfig("anywhere", max_concurrent=10, retained=self.retained),
            make_plan(["a"], ["a"], ["a"]),
            StandaloneCheckpointIdCounter(),
            StandaloneCompletedCheckpointStore(self.retained),
            CheckpointFiles(JOB, ROOT, self.registry),
        )
        self.tell(changed("a"))

    def tell(self, *events: Any) -> list[CheckpointEffect]:
        return [effect for event in events for effect in self.coordinator.on(event, 0, 0)]

    def checkpoint(self, number: int, *files: str) -> list[CheckpointEffect]:
        return self.tell(TriggerCheckpointNow(), ack(number, *files), stored(number))

    def savepoint(self, number: int, *files: str) -> list[CheckpointEffect]:
        token = f"token-{number}"
        return self.tell(savepoint_now(token), ack(number, *files), stored(number, {token: f"sp-{number}"}))

    def restorable(self) -> list[int]:
        return [each.checkpoint_id for each in self.coordinator.store.restorable()]

    def dispose(self, path: str) -> list[str]:
        """What the JobManager does: the files that go at once."""
        return [file.path for file in self.registry.release(SavepointAt(path))]

    def deleted(self, effects: list[CheckpointEffect]) -> list[str]:
        """The files that these effects delete, in no order: with metadata what has waited for them alone."""
        gone: list[str] = []
        for discard in of_type(Discard, effects):
            gone += [*discard.savepoints, *([discard.metadata_path] if discard.metadata_path else [])]
            handles = [handle for state in discard.states for handle in state_handles(state)]
            gone += sorted({handle.path or "" for handle in handles} - discard.kept)
            freed = self.registry.release(DoomedMetadata(ROOT, discard.metadata_path))
            gone += [file.path for file in freed if file.path in discard.kept]
        return gone


def ack(number: int, *files: str) -> AcknowledgeCheckpoint:
    handles = [StateHandle(path, None, 1, 0) for path in files]
    keyed = tuple(KeyedStateHandle(0, 127, {0: (0, 1)}, handle, "rocksdb") for handle in handles)
    state = SubtaskState({OperatorId("op"): OperatorSubtaskState(keyed)})
    return AcknowledgeCheckpoint(JOB, ExecutionAttemptId("a"), CheckpointId(number), state, len(files))


def stored(number: int, savepoints: dict[str, str] | None = None) -> MetadataStored:
    return MetadataStored(CheckpointId(number), f"meta-{number}", savepoints or {})


def test_a_dropped_checkpoint_leaves_the_files_that_a_later_one_shares() -> None:
    """Flink: incremental checkpoints, SharedStateRegistry."""
    job = Job()
    job.checkpoint(1, "1.sst", "1.own")
    assert job.deleted(job.checkpoint(2, "1.sst", "2.sst")) == ["meta-1", "1.own"]
    assert job.deleted(job.checkpoint(3, "3.sst")) == ["meta-2", "1.sst", "2.sst"]


def test_a_pending_savepoint_keeps_what_it_shares_with_a_checkpoint_that_is_dropped() -> None:
    job = Job()
    job.checkpoint(1, "1.sst")
    job.tell(savepoint_now("token"), ack(2, "1.sst", "2.sst"))
    assert job.deleted(job.checkpoint(3, "3.sst")) == ["meta-1"]
    job.tell(stored(2, {"token": "sp"}))
    assert job.dispose("sp") == ["meta-2", "1.sst", "2.sst"]


def test_what_two_dropped_checkpoints_share_goes_after_the_metadata_of_both() -> None:
    """They may be deleted in any order."""
    job = Job(retained=2)
    job.checkpoint(1, "1.sst", "1.own")
    job.checkpoint(2, "1.sst", "2.own")
    discards = of_type(Discard, job.tell(Shutdown(JobStatus.FINISHED)))
    assert [job.deleted([each]) for each in reversed(discards)] == [["meta-2", "2.own"], ["meta-1", "1.own", "1.sst"]]


def test_state_that_comes_late_is_discarded_but_for_files_that_are_somebodys() -> None:
    job = Job()
    job.checkpoint(1, "1.sst")
    assert job.deleted(job.tell(ack(9, "1.sst", "9.sst"))) == ["9.sst"]


def test_a_savepoint_outlives_later_checkpoints_and_its_job() -> None:
    job = Job()
    job.savepoint(1, "1.sst")
    assert job.deleted(job.checkpoint(2, "2.sst")) == []
    assert job.deleted(job.checkpoint(3, "3.sst")) == ["meta-2", "2.sst"]
    assert job.deleted(job.tell(Shutdown(JobStatus.FINISHED))) == ["meta-3", "3.sst"]
    assert sorted(job.dispose("sp-1")) == ["1.sst", "meta-1"]


def test_a_disposed_savepoint_that_is_the_newest_cut_goes_when_the_next_checkpoint_is_complete() -> None:
    """Sinks have committed what it covers: from an older checkpoint they would commit that twice."""
    job = Job(retained=2)
    job.checkpoint(1, "1.sst")
    job.savepoint(2, "2.sst")
    assert job.dispose("sp-2") == []
    assert job.restorable() == [2, 1]
    job.tell(RegionRestarting(), changed("a"))
    assert job.restorable() == [2, 1]
    assert job.deleted(job.checkpoint(3, "3.sst")) == []
    assert job.restorable() == [3, 2, 1]
    assert job.deleted(job.checkpoint(4, "4.sst")) == ["meta-1", "1.sst", "meta-2", "2.sst"]
    assert job.restorable() == [4, 3]


def test_a_disposed_savepoint_that_is_the_newest_cut_goes_when_the_job_ends() -> None:
    job = Job()
    job.savepoint(1, "1.sst")
    assert job.dispose("sp-1") == []
    assert job.deleted(job.tell(Shutdown(JobStatus.CANCELED))) == ["meta-1", "1.sst"]


def test_a_newer_savepoint_supersedes_an_older_one_for_the_job() -> None:
    job = Job()
    job.savepoint(1, "1.sst")
    assert job.deleted(job.savepoint(2, "2.sst")) == []
    assert sorted(job.dispose("sp-1")) == ["1.sst", "meta-1"]
    assert job.dispose("sp-2") == []


def test_a_savepoint_that_completes_after_a_newer_checkpoint_is_its_users_alone() -> None:
    job = Job()
    job.tell(savepoint_now("token"), ack(1, "1.sst"))
    job.checkpoint(2, "2.sst")
    assert job.deleted(job.tell(stored(1, {"token": "sp"}))) == []
    assert sorted(job.dispose("sp")) == ["1.sst", "meta-1"]


def test_a_checkpoint_that_a_job_was_started_from_is_kept_for_it() -> None:
    job = Job()
    job.checkpoint(1, "1.sst")
    job.registry.register(RestoredJob(JOB), [StateFile(ROOT, "meta-1"), StateFile(ROOT, "1.sst")])
    assert job.deleted(job.checkpoint(2, "2.sst")) == []
    assert [file.path for file in job.registry.release(RestoredJob(JOB))] == ["meta-1", "1.sst"]


def test_the_answer_is_the_pointers_path() -> None:
    effects = Job().savepoint(1, "1.sst")
    (answer,) = of_type(AnswerSavepoint, effects)
    assert (answer.request.token, answer.answer) == ("token-1", TriggerSavepointSuccess(JOB, "sp-1"))


def test_the_metadata_is_to_be_written_with_a_pointer_for_whom_it_is_promised() -> None:
    job = Job()
    effects = job.tell(TriggerCheckpointNow(), ack(1, "1.sst"), savepoint_now("token"), ack(2, "2.sst"))
    assert [[each.token for each in store.savepoints] for store in of_type(StoreMetadata, effects)] == [[], ["token"]]


@pytest.mark.parametrize("end", [RegionRestarting(), Shutdown(JobStatus.FAILED)])
def test_a_pointer_that_was_stored_too_late_is_discarded_before_what_it_points_to(end: Any) -> None:
    """The promise was broken while storage was writing."""
    job = Job()
    effects = job.tell(savepoint_now("token"), ack(1, "1.sst"), end)
    assert job.deleted(effects) == []
    assert len(of_type(AnswerSavepoint, effects)) == 1
    assert job.deleted(job.tell(stored(1, {"token": "sp"}))) == ["sp", "meta-1", "1.sst"]
    assert not job.registry.knows(SavepointAt("sp"))


def test_when_all_is_over_nobody_needs_anything() -> None:
    job = Job(retained=3)
    job.checkpoint(1, "1.sst")
    job.savepoint(2, "1.sst", "2.sst")
    job.checkpoint(3, "2.sst", "3.sst")
    job.tell(TriggerCheckpointNow(), ack(4, "3.sst"), TriggerCheckpointNow(), Shutdown(JobStatus.FAILED), stored(4))
    job.dispose("sp-2")
    assert job.registry.needed_below(ROOT) == frozenset()
    assert not any(job.registry.knows(CheckpointOf(JOB, CheckpointId(each))) for each in range(1, 6))


class Sharing(RuleBasedStateMachine):
    """An incremental backend: each checkpoint has a file of its own, and shares some of the newest one's."""

    def __init__(self) -> None:
        super().__init__()
        self.job = Job(retained=2)
        self.files: dict[int, frozenset[str]] = {}
        self.pending: list[int] = []
        self.savepoints: dict[str, int] = {}
        self.abandoned: list[int] = []
        self.gone: Counter[str] = Counter()

    def tell(self, *events: Any) -> None:
        self.gone.update(self.job.deleted(self.job.tell(*events)))

    @precondition(lambda self: len(self.pending) < 3)
    @rule(is_savepoint=st.booleans(), shared=st.randoms(use_true_random=False))
    def trigger_and_acknowledge(self, is_savepoint: bool, shared: Any) -> None:
        number = len(self.files) + 1
        newest = next(iter(self.job.restorable()), None)
        base = sorted(self.files[newest]) if newest is not None else []
        self.files[number] = frozenset([f"{number}.sst", *shared.sample(base, shared.randint(0, len(base)))])
        self.pending.append(number)
        trigger = savepoint_now(f"token-{number}") if is_savepoint else TriggerCheckpointNow()
        self.tell(trigger, ack(number, *self.files[number]))

    @precondition(lambda self: self.pending or self.abandoned)
    @rule(data=st.data())
    def store(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([*self.pending, *self.abandoned]))
        effects = self.job.tell(stored(number, {f"token-{number}": f"sp-{number}"}))
        self.gone.update(self.job.deleted(effects))
        self.savepoints.update({answer.answer.savepoint_path: number for answer in _kept(effects)})
        if number in self.abandoned:
            self.abandoned.remove(number)
        self._look_at_pending()
        if number in self.abandoned:
            self.abandoned.remove(number)

    @rule()
    def restart(self) -> None:
        self.tell(RegionRestarting(), changed("a"))
        self._look_at_pending()

    @precondition(lambda self: self.savepoints)
    @rule(data=st.data())
    def dispose(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(self.savepoints)))
        del self.savepoints[path]
        self.gone.update(self.job.dispose(path))

    @invariant()
    def what_somebody_needs_is_there(self) -> None:
        live = {*self.job.restorable(), *self.savepoints.values(), *self.pending}
        needed: set[str] = set().union(*(self.files[number] for number in live))
        assert not needed & set(self.gone)
        assert not {f"meta-{number}" for number in {*self.job.restorable(), *self.savepoints.values()}} & set(self.gone)

    @invariant()
    def nothing_is_deleted_twice(self) -> None:
        assert max(self.gone.values(), default=0) <= 1

    def teardown(self) -> None:
        self.tell(Shutdown(JobStatus.FINISHED))
        self._look_at_pending()
        for number in self.abandoned:
            self.tell(stored(number, {}))
        for path in self.savepoints:
            self.gone.update(self.job.dispose(path))
        all_files: set[str] = set().union(*self.files.values())
        assert all_files <= set(self.gone)
        self.nothing_is_deleted_twice()

    def _look_at_pending(self) -> None:
        """Those that are not pending any more were given up while they were being written, or have completed."""
        left = [pending.checkpoint_id for pending in self.job.coordinator.pending]
        self.abandoned += [number for number in self.pending if number not in left]
        self.pending = left


def _kept(effects: list[CheckpointEffect]) -> list[Any]:
    answers = of_type(AnswerSavepoint, effects)
    return [answer for answer in answers if isinstance(answer.answer, TriggerSavepointSuccess)]


TestSharing = Sharing.TestCase
