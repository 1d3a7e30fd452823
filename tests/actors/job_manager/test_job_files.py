"""What the JobManager stores and deletes, on a real disk and off its own thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.actor import Actor
from understudy.actors.checkpoints.checkpoint_effects import Discard, StoreMetadata
from understudy.actors.checkpoints.checkpoint_events import MetadataFailed, MetadataStored
from understudy.actors.checkpoints.savepoint_request import SavepointRequest
from understudy.actors.job_manager.job_files import JobFiles, Tidied, Tidy
from understudy.actors.job_manager.storage_answers import ForJob
from understudy.messages import (
    CheckpointId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    OperatorSubtaskState,
    SharedFileId,
    SharedStateHandle,
    StateHandle,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.runtime.system import ActorSystem
from understudy.state import CheckpointStorage, MissingSavepoint, MissingState
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot
from understudy.state.checkpoints.savepoint_store import FilesystemSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints

JOB = JobId("job-1")
WAIT_S = 120


class Host(Actor):
    """An actor with JobFiles, as the JobManager is one; calls what it is told to call with them."""

    def __init__(self, savepoints: Savepoints) -> None:
        self.savepoints = savepoints
        self.came: queue.Queue[Any] = queue.Queue()
        self.tidied: queue.Queue[BaseException | None] = queue.Queue()
        """One for each try to delete something."""

    def on_start(self) -> None:
        self.files = JobFiles(self.context, self.savepoints)

    def on_receive(self, message: Any) -> Any:
        match message:
            case Tidy():
                self.files.on(message)
            case Tidied():
                self.files.on(message)
                self.tidied.put(message.error)
            case ForJob():
                self.came.put(message.event)
            case _:
                return message(self.files)
        return None


class Stage:
    def __init__(self, system: ActorSystem, folder: Path) -> None:
        self.storage = CheckpointStorage(str(folder / "checkpoints"))
        self.pointers = CheckpointStorage(str(folder / "savepoints"))
        self.savepoints = Savepoints(FilesystemSavepointStore(self.pointers), CheckpointStorage)
        self.host = Host(self.savepoints)
        self.ref = system.spawn(self.host)

    def call(self, function: Callable[[JobFiles], Any]) -> Any:
        return self.ref.ask(function).get(timeout=WAIT_S)

    def store(self, draft: CompletedCheckpoint, **targets: str | None) -> MetadataStored | MetadataFailed:
        def store(files: JobFiles) -> None:
            requests = tuple(SavepointRequest(token, target) for token, target in targets.items())
            files.store(JOB, self.storage, StoreMetadata(draft, requests))

        self.call(store)
        answer: MetadataStored | MetadataFailed = self.host.came.get(timeout=WAIT_S)
        return answer

    def draft(self, checkpoint_id: int = 1) -> CompletedCheckpoint:
        handle = self.storage.write(f"{JOB}/chk-{checkpoint_id}/map-0-a", b"state")
        states = {SubtaskIndex(0): state_of(handle)}
        vertices = {VertexId("map"): VertexSnapshot(1, 128, states)}
        return CompletedCheckpoint(JOB, CheckpointId(checkpoint_id), 1, 2, 5, vertices, is_savepoint=True)

    def tidied(self, times: int) -> None:
        """Wait until so many deletions are done, and well."""
        assert [self.host.tidied.get(timeout=WAIT_S) for _ in range(times)] == [None] * times

    def dispose(self, path: str) -> None:
        done: queue.Queue[None] = queue.Queue()
        removed = self.savepoints.remove(path)
        self.call(lambda files: files.dispose(removed, lambda: done.put(None)))
        done.get(timeout=WAIT_S)


def state_of(handle: StateHandle) -> SubtaskState:
    keyed = KeyedStateHandle(0, 127, {0: (0, 5)}, handle, "filesystem")
    return SubtaskState({OperatorId("op"): OperatorSubtaskState((keyed,))})


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ActorSystem("theatre") as system:
        yield Stage(system, tmp_path)


def test_metadata_is_stored_with_a_pointer_for_each_who_is_promised_one(stage: Stage) -> None:
    answer = stage.store(stage.draft(), first=None, second="daily")
    assert isinstance(answer, MetadataStored)
    assert sorted(answer.savepoints) == ["first", "second"]
    assert stage.savepoints.load(answer.savepoints["first"]).checkpoint.metadata_path == answer.path
    assert "/daily/" in answer.savepoints["second"]


def test_if_one_pointer_cannot_be_stored_none_is(stage: Stage) -> None:
    answer = stage.store(stage.draft(), first=None, second="../outside")
    assert isinstance(answer, MetadataFailed)
    assert answer.reason.startswith("OutsideRoot: ../outside")
    assert answer.path == f"{JOB}/chk-1/_metadata"
    assert stage.pointers.list_files() == []


def elsewhere(stage: Stage, tmp_path: Path, checkpoint_id: int = 1) -> CompletedCheckpoint:
    """A checkpoint whose task wrote into another folder of the same path, as on a host that does not share it."""
    handle = CheckpointStorage(str(tmp_path / "of-another-host")).write(f"{JOB}/chk-{checkpoint_id}/map-0-a", b"state")
    vertices = {VertexId("map"): VertexSnapshot(1, 128, {SubtaskIndex(0): state_of(handle)})}
    return CompletedCheckpoint(JOB, CheckpointId(checkpoint_id), 1, 2, 5, vertices)


def test_a_checkpoint_of_a_host_with_another_folder_is_none_and_names_what_to_do(stage: Stage, tmp_path: Path) -> None:
    """Each host has its own folder under one path: no other host could restore what that one has written."""
    answer = stage.store(elsewhere(stage, tmp_path))
    assert isinstance(answer, MetadataFailed)
    assert answer.reason.startswith(f"NotShared: {JOB}/chk-1/map-0-a: a task has written this file below")
    assert f"below {stage.storage.location()}" in answer.reason
    assert "share" in answer.reason
    assert "s3://" in answer.reason
    assert answer.repeatable
    assert stage.storage.list_files() == []


def test_each_attempt_is_looked_for_once(stage: Stage, tmp_path: Path) -> None:
    assert isinstance(stage.store(stage.draft(1)), MetadataStored)
    assert isinstance(stage.store(elsewhere(stage, tmp_path, 2)), MetadataStored), (
        "its attempt has shown that it shares"
    )
    in_two = SubtaskIndex(0), SubtaskIndex(1)
    other = CheckpointStorage(str(tmp_path / "of-another-host")).write(f"{JOB}/chk-3/map-1-b", b"state")
    own = stage.storage.write(f"{JOB}/chk-3/map-0-a", b"state")
    states = dict(zip(in_two, map(state_of, (own, other)), strict=True))
    draft = replace(stage.draft(3), vertices={VertexId("map"): VertexSnapshot(2, 128, states)})
    answer = stage.store(draft)
    assert isinstance(answer, MetadataFailed)
    assert "map-1-b" in answer.reason
    assert not answer.repeatable, "it was shared: one host may have lost its mount for a while"


def test_files_that_increments_share_are_looked_for_too(stage: Stage, tmp_path: Path) -> None:
    other = CheckpointStorage(str(tmp_path / "of-another-host"))
    shared = [other.write(f"{JOB}/shared/1-map-0-a-{name}.sst", b"rows") for name in ("1", "2")]
    keyed = KeyedStateHandle(
        0,
        127,
        {0: (0, 5)},
        StateHandle(None, b"state", 5, 0),
        "rocksdb",
        tuple(SharedStateHandle(SharedFileId(str(at)), handle) for at, handle in enumerate(shared)),
    )
    state = SubtaskState({OperatorId("op"): OperatorSubtaskState((keyed,))})
    draft = replace(stage.draft(), vertices={VertexId("map"): VertexSnapshot(1, 128, {SubtaskIndex(0): state})})
    answer = stage.store(draft)
    assert isinstance(answer, MetadataFailed)
    assert "1-map-0-a-1.sst" in answer.reason


def test_files_of_earlier_checkpoints_are_looked_for_with_each_one(stage: Stage) -> None:
    """What an increment goes on using may be gone, though its checkpoint was stored: then only a full one can be."""
    runs = [stage.storage.write(f"{JOB}/shared/{number}-map-0-a-op-{number}", b"rows") for number in (1, 2)]

    def draft(checkpoint_id: int) -> CompletedCheckpoint:
        shared = tuple(SharedStateHandle(SharedFileId(str(at)), handle) for at, handle in enumerate(runs))
        keyed = KeyedStateHandle(0, 127, {0: (0, 5)}, StateHandle(None, b"state", 5, 0), "heap", shared)
        state = SubtaskState({OperatorId("op"): OperatorSubtaskState((keyed,))})
        vertices = {VertexId("map"): VertexSnapshot(1, 128, {SubtaskIndex(0): state})}
        return replace(stage.draft(checkpoint_id), vertices=vertices)

    assert isinstance(stage.store(draft(2)), MetadataStored)
    stage.storage.delete(runs[0])
    answer = stage.store(draft(3))
    assert isinstance(answer, MetadataFailed)
    assert answer.needs_full
    assert f"{JOB}/shared/1-map-0-a-op-1: checkpoint 3 uses files" in answer.reason
    assert f"1 of them, this one among them, are gone: somebody has removed them from {stage.storage.location()}" in (
        answer.reason
    )
    assert f"{JOB}/chk-3/_metadata" not in stage.storage.list_files()


def test_a_savepoint_of_another_job_manager_is_deleted_whole(stage: Stage) -> None:
    path = stage.store(stage.draft(), first=None).savepoints["first"]  # type: ignore[union-attr]
    stage.dispose(path)
    assert stage.storage.list_files() == stage.pointers.list_files() == []


def test_one_of_two_savepoints_of_a_checkpoint_leaves_it_to_the_other(stage: Stage) -> None:
    """Two clients asked for the same drained job, in two folders."""
    answer = stage.store(stage.draft(), first="a", second="b")
    assert isinstance(answer, MetadataStored)
    completed = replace(stage.draft(), metadata_path=answer.path)
    stage.call(lambda files: files.checkpoints_of(JOB, stage.storage).completed(completed, answer.savepoints.values()))
    stage.call(lambda files: files.checkpoints_of(JOB, stage.storage).drop(completed))
    stage.dispose(answer.savepoints["first"])
    assert len(stage.storage.list_files()) == 2
    stage.dispose(answer.savepoints["second"])
    assert stage.storage.list_files() == []


def test_a_savepoint_that_was_disposed_of_since_it_was_read_starts_no_job(stage: Stage) -> None:
    path = stage.store(stage.draft(), first=None).savepoints["first"]  # type: ignore[union-attr]
    found = stage.savepoints.load(path)
    stage.dispose(path)
    with pytest.raises(MissingSavepoint):
        stage.call(lambda files: files.restored(JobId("job-2"), found.storage, found.checkpoint, found.path))


def test_a_checkpoint_that_its_job_gave_up_since_it_was_read_starts_no_job(stage: Stage) -> None:
    """Its files may still be there: their deletion may be under way, or be tried again."""

    def refuses(files: JobFiles, checkpoint: CompletedCheckpoint) -> None:
        with pytest.raises(MissingState, match=checkpoint.metadata_path):
            files.restored(JobId("job-3"), stage.storage, checkpoint)

    answer = stage.store(stage.draft())
    assert isinstance(answer, MetadataStored)
    completed = replace(stage.draft(), metadata_path=answer.path)
    stage.call(lambda files: files.checkpoints_of(JOB, stage.storage).completed(completed))
    stage.call(lambda files: files.restored(JobId("job-2"), stage.storage, completed))
    assert stage.call(lambda files: files.checkpoints_of(JOB, stage.storage).drop(completed)) is None
    stage.call(lambda files: files.superseded(JobId("job-2")))
    stage.call(lambda files: refuses(files, completed))
    stage.tidied(1)

    other = replace(completed, checkpoint_id=CheckpointId(2), metadata_path=f"{JOB}/chk-2/_metadata")
    discard = stage.call(lambda files: files.checkpoints_of(JOB, stage.storage).drop(other))
    stage.call(lambda files: files.discard(JOB, stage.storage, discard))
    stage.call(lambda files: refuses(files, other))
    stage.tidied(1)


def test_a_job_that_was_started_from_it_first_keeps_it(stage: Stage) -> None:
    path = stage.store(stage.draft(), first=None).savepoints["first"]  # type: ignore[union-attr]
    found = stage.savepoints.load(path)
    stage.call(lambda files: files.restored(JobId("job-2"), found.storage, found.checkpoint, found.path))
    stage.dispose(path)
    assert len(stage.storage.list_files()) == 2
    stage.tidied(1)
    stage.call(lambda files: files.superseded(JobId("job-2")))
    stage.tidied(1)
    assert stage.storage.list_files() == []


def test_a_savepoint_of_another_job_manager_outlives_the_job_that_was_started_from_it(stage: Stage) -> None:
    """Its user has not disposed of it; the job that it was taken of is nobody's here."""
    path = stage.store(stage.draft(), first=None).savepoints["first"]  # type: ignore[union-attr]
    found = stage.savepoints.load(path)
    stage.call(lambda files: files.restored(JobId("job-2"), found.storage, found.checkpoint, found.path))
    stage.call(lambda files: files.superseded(JobId("job-2")))
    stage.call(lambda files: files.restored(JobId("job-3"), found.storage, found.checkpoint, found.path))
    stage.dispose(path)
    assert len(stage.storage.list_files()) == 2
    stage.tidied(1)
    stage.call(lambda files: files.superseded(JobId("job-3")))
    stage.tidied(1)
    assert stage.storage.list_files() == []


def test_a_retained_checkpoint_of_another_job_manager_is_nobodys_to_delete(stage: Stage) -> None:
    answer = stage.store(stage.draft())
    assert isinstance(answer, MetadataStored)
    completed = replace(stage.draft(), metadata_path=answer.path)
    for job in map(JobId, ("job-2", "job-3", "job-4")):
        stage.call(lambda files, job=job: files.restored(job, stage.storage, completed))
        stage.call(lambda files, job=job: files.superseded(job))
    assert len(stage.storage.list_files()) == 2


def test_what_is_given_up_goes_with_its_pointers(stage: Stage) -> None:
    draft = stage.draft()
    answer = stage.store(draft, first=None)
    assert isinstance(answer, MetadataStored)
    discard = Discard(draft.states(), answer.path, savepoints=tuple(answer.savepoints.values()))
    stage.call(lambda files: files.discard(JOB, stage.storage, discard))
    stage.tidied(1)
    assert stage.storage.list_files() == stage.pointers.list_files() == []


class Gated(CheckpointStorage):
    """Storage that takes until the gate is open to delete the file at this path."""

    def __init__(self, url: str, path: str) -> None:
        super().__init__(url)
        self.path = path
        self.gate = threading.Event()

    def delete(self, what: StateHandle | str) -> None:
        if what == self.path:
            assert self.gate.wait(WAIT_S)
        super().delete(what)


def of_one_run(stage: Stage, storage: CheckpointStorage) -> Iterator[CompletedCheckpoint]:
    """Two checkpoints that share a file."""
    run = SharedStateHandle(SharedFileId("run"), storage.write(f"{JOB}/shared/run", b"a run"))
    for number in (1, 2):
        draft = stage.draft(number)
        (state,) = draft.states()
        keyed = replace(state.operators[OperatorId("op")].keyed[0], shared=(run,))
        states = {SubtaskIndex(0): SubtaskState({OperatorId("op"): OperatorSubtaskState((keyed,))})}
        draft = replace(draft, vertices={VertexId("map"): VertexSnapshot(1, 128, states)}, is_savepoint=False)
        answer = stage.store(draft)
        assert isinstance(answer, MetadataStored)
        yield replace(draft, metadata_path=answer.path)


@pytest.mark.parametrize("first_is_let_go_of", ["by its job", "by a job that was started from it"])
def test_a_file_of_two_checkpoints_goes_after_the_metadata_of_both(
    stage: Stage, tmp_path: Path, first_is_let_go_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata of the first take longer to go than all of the second."""
    storage = Gated(str(tmp_path / "checkpoints"), f"{JOB}/chk-1/_metadata")
    monkeypatch.setattr(stage.savepoints, "open_storage", lambda _: storage)
    first, second = of_one_run(stage, storage)

    def let_go(files: JobFiles) -> None:
        of_job = files.checkpoints_of(JOB, storage)
        of_job.completed(first)
        of_job.completed(second)
        if first_is_let_go_of == "by its job":
            files.discard(JOB, storage, not_none(of_job.drop(first)))
        else:
            files.restored(JobId("job-2"), storage, first)
            assert of_job.drop(first) is None
            files.superseded(JobId("job-2"))
        files.discard(JOB, storage, not_none(of_job.drop(second)))

    stage.call(let_go)
    stage.tidied(1)
    assert storage.list_files() == [f"{JOB}/chk-1/_metadata", f"{JOB}/chk-1/map-0-a", f"{JOB}/shared/run"]
    storage.gate.set()
    stage.tidied(2)
    assert storage.list_files() == []


def not_none(discard: Discard | None) -> Discard:
    assert discard is not None
    return discard
