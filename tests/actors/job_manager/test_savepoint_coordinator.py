"""One promise per savepoint, kept or broken, once. Flink: SavepointCoordinatorTest."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from understudy.actors.actor import Actor
from understudy.actors.checkpoints.savepoint_request import Afterwards, CheckpointRequest, SavepointRequest
from understudy.actors.job_manager.job_manager import JobManager
from understudy.actors.job_manager.savepoint_coordinator import (
    STOPPED,
    PromiseSettled,
    ReleaseSavepoint,
    SavepointCoordinator,
    TakeCheckpoint,
    TakeSavepoint,
)
from understudy.messages import (
    CancelWithSavepoint,
    CheckpointId,
    CheckpointTaken,
    DisposeSavepoint,
    DisposeSavepointFailure,
    DisposeSavepointSuccess,
    JobId,
    RequestCheckpoint,
    StopWithSavepoint,
    TriggerSavepoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)
from understudy.runtime.system import ActorSystem
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint
from understudy.state.checkpoints.savepoint_store import FilesystemSavepointStore
from understudy.state.checkpoints.savepoints import RemovedSavepoint, Savepoints

JOB = JobId("job-1")
WAIT_S = 120


class Post(Actor):
    """The JobManager's letter box: the test reads the letters and answers them."""

    def __init__(self) -> None:
        self.letters: queue.Queue[Any] = queue.Queue()

    def on_receive(self, message: Any) -> None:
        self.letters.put(message)


class Stage:
    """A SavepointCoordinator and its JobManager's letter box."""

    def __init__(self, system: ActorSystem, folder: Path) -> None:
        self.system = system
        self.checkpoints = CheckpointStorage(str(folder / "checkpoints"))
        store = FilesystemSavepointStore(CheckpointStorage(str(folder / "savepoints")))
        self.savepoints = Savepoints(store, CheckpointStorage)
        self.post = Post()
        self.post_ref = system.spawn(self.post)
        self.actor = SavepointCoordinator(self.savepoints, self.post_ref)
        self.ref = system.spawn(self.actor)

    def next(self) -> Any:
        return self.post.letters.get(timeout=WAIT_S)

    def stored(self) -> str:
        """A savepoint's path."""
        completed = CompletedCheckpoint(JOB, CheckpointId(1), 1, 2, 0, {}, metadata_path=f"{JOB}/chk-1/_metadata")
        self.checkpoints.write_sealed(completed.metadata_path, encode_metadata(completed))
        return self.savepoints.store(completed, self.checkpoints, None)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ActorSystem("theatre") as system:
        yield Stage(system, tmp_path)


@pytest.mark.parametrize(
    ("request_", "afterwards"),
    [
        (TriggerSavepoint(JOB, "daily"), Afterwards.RUN_ON),
        (CancelWithSavepoint(JOB, "daily"), Afterwards.CANCEL),
        (StopWithSavepoint(JOB, "daily"), Afterwards.STOP),
        (StopWithSavepoint(JOB, "daily", drain=True), Afterwards.DRAIN),
    ],
)
def test_a_promise_is_kept_with_what_the_job_manager_says(stage: Stage, request_: Any, afterwards: Afterwards) -> None:
    answer = stage.ref.ask(request_)
    wanted = stage.next()
    assert wanted == TakeSavepoint(JOB, SavepointRequest(wanted.request.token, "daily", afterwards))
    stage.ref.tell(PromiseSettled(wanted.request.token, TriggerSavepointSuccess(JOB, "/savepoints/a")))
    assert answer.get(timeout=WAIT_S) == TriggerSavepointSuccess(JOB, "/savepoints/a")
    assert stage.actor.open_promises == 0


@pytest.mark.parametrize("full", [True, False])
def test_a_checkpoint_is_promised_too(stage: Stage, full: bool) -> None:
    answer = stage.ref.ask(RequestCheckpoint(JOB, full))
    wanted = stage.next()
    assert wanted == TakeCheckpoint(JOB, CheckpointRequest(wanted.request.token, full))
    stage.ref.tell(PromiseSettled(wanted.request.token, CheckpointTaken(JOB, CheckpointId(7), "/chk-7")))
    assert answer.get(timeout=WAIT_S) == CheckpointTaken(JOB, CheckpointId(7), "/chk-7")
    assert stage.actor.open_promises == 0


def test_two_at_once_are_told_apart(stage: Stage) -> None:
    answers = [stage.ref.ask(TriggerSavepoint(JOB)) for _ in range(2)]
    first, second = sorted((stage.next() for _ in answers), key=lambda wanted: wanted.request.token)
    assert first.request.token != second.request.token
    stage.ref.tell(PromiseSettled(second.request.token, TriggerSavepointFailure(JOB, "expired")))
    stage.ref.tell(PromiseSettled(first.request.token, TriggerSavepointSuccess(JOB, "/savepoints/a")))
    found = {type(answer.get(timeout=WAIT_S)) for answer in answers}
    assert found == {TriggerSavepointSuccess, TriggerSavepointFailure}


def test_a_promise_is_settled_once(stage: Stage) -> None:
    answer = stage.ref.ask(TriggerSavepoint(JOB))
    token = stage.next().request.token
    for path in ("/first", "/second"):
        stage.ref.tell(PromiseSettled(token, TriggerSavepointSuccess(JOB, path)))
    assert answer.get(timeout=WAIT_S).savepoint_path == "/first"
    again = stage.ref.ask(TriggerSavepoint(JOB))  # it is well
    stage.ref.tell(PromiseSettled(stage.next().request.token, TriggerSavepointSuccess(JOB, "/third")))
    assert again.get(timeout=WAIT_S).savepoint_path == "/third"


def test_a_directory_outside_of_the_root_is_refused_before_any_work(stage: Stage) -> None:
    answer = stage.ref.ask(TriggerSavepoint(JOB, "../../etc")).get(timeout=WAIT_S)
    assert isinstance(answer, TriggerSavepointFailure)
    assert answer.cause.startswith("OutsideRoot: ../../etc")
    assert stage.post.letters.empty()


def test_stopping_breaks_all_open_promises(stage: Stage) -> None:
    """Also of those who wait for a disposal."""
    path = stage.stored()
    taking, disposing = stage.ref.ask(TriggerSavepoint(JOB)), stage.ref.ask(DisposeSavepoint(path))
    assert {type(stage.next()), type(stage.next())} == {TakeSavepoint, ReleaseSavepoint}
    stage.system.stop(stage.ref)
    assert taking.get(timeout=WAIT_S) == TriggerSavepointFailure(JOB, STOPPED)
    assert disposing.get(timeout=WAIT_S) == DisposeSavepointFailure(STOPPED)


class Parent(Actor):
    """A JobManager's way with its child."""

    supervisor_strategy = JobManager.supervisor_strategy

    def __init__(self, child: Actor) -> None:
        self.child = child

    def on_start(self) -> None:
        self.ref = self.context.spawn(self.child)

    def on_receive(self, message: Any) -> Any:
        return self.ref


def test_a_failure_of_its_own_breaks_all_open_promises_and_it_goes_on(stage: Stage) -> None:
    parent = Parent(SavepointCoordinator(stage.savepoints, stage.post_ref))
    ref = stage.system.spawn(parent).ask("child").get(timeout=WAIT_S)
    answer = ref.ask(TriggerSavepoint(JOB))
    stage.next()
    ref.tell(PromiseSettled(cast("str", ["no token"]), TriggerSavepointFailure(JOB, "a bug")))
    assert answer.get(timeout=WAIT_S) == TriggerSavepointFailure(JOB, STOPPED)
    again = ref.ask(TriggerSavepoint(JOB))
    ref.tell(PromiseSettled(stage.next().request.token, TriggerSavepointSuccess(JOB, "/savepoints/a")))
    assert again.get(timeout=WAIT_S) == TriggerSavepointSuccess(JOB, "/savepoints/a")


def test_disposing_removes_the_pointer_and_leaves_the_files_to_the_job_manager(stage: Stage) -> None:
    path = stage.stored()
    answer = stage.ref.ask(DisposeSavepoint(f"file://{path}"))
    message = stage.next()
    assert isinstance(message, ReleaseSavepoint)
    assert (message.removed.path, message.removed.job_id) == (path, JOB)
    assert [file.path for file in message.removed.files] == [f"{JOB}/chk-1/_metadata"]
    stage.ref.tell(PromiseSettled(message.token, DisposeSavepointSuccess(path)))
    assert answer.get(timeout=WAIT_S) == DisposeSavepointSuccess(path)
    again = stage.ref.ask(DisposeSavepoint(path)).get(timeout=WAIT_S)
    assert isinstance(again, DisposeSavepointFailure)
    assert again.cause.startswith("MissingSavepoint")


@pytest.mark.parametrize("path", ["/etc/passwd", "jobmanager://savepoints/savepoint-1", "none", ""])
def test_what_cannot_be_disposed_of_is_told_by_name(stage: Stage, path: str) -> None:
    answer = stage.ref.ask(DisposeSavepoint(path)).get(timeout=WAIT_S)
    assert isinstance(answer, DisposeSavepointFailure)
    assert stage.post.letters.empty()


class SlowlyRemoved(Savepoints):
    """Removes a pointer when it may, as slow storage does."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_asked, self.may = threading.Event(), threading.Event()

    def remove(self, path: str, working_directory: str = "") -> RemovedSavepoint:
        self.is_asked.set()
        assert self.may.wait(WAIT_S)
        return super().remove(path, working_directory)


def test_a_pointer_that_is_removed_after_its_promise_broke_releases_the_files_all_the_same(
    stage: Stage, tmp_path: Path
) -> None:
    path = stage.stored()
    store = FilesystemSavepointStore(CheckpointStorage(str(tmp_path / "savepoints")))
    savepoints = SlowlyRemoved(store, CheckpointStorage)
    parent = Parent(SavepointCoordinator(savepoints, stage.post_ref))
    ref = stage.system.spawn(parent).ask("child").get(timeout=WAIT_S)
    answer = ref.ask(DisposeSavepoint(path))
    assert savepoints.is_asked.wait(WAIT_S)
    ref.tell(PromiseSettled(cast("str", ["no token"]), TriggerSavepointFailure(JOB, "a bug")))
    assert answer.get(timeout=WAIT_S) == DisposeSavepointFailure(STOPPED)
    savepoints.may.set()
    message = stage.next()
    assert isinstance(message, ReleaseSavepoint)
    assert [file.path for file in message.removed.files] == [f"{JOB}/chk-1/_metadata"]
