"""find_origin: what a job is to be started from is read, whole, and fits, before anything is made of the job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.errors import CannotRestore, StateDoesNotFit
from understudy.actors.restore.found_origin import find_origin
from understudy.actors.restore.job_submissions import JobSubmissions
from understudy.messages import (
    JobId,
    JobStatus,
    OperatorId,
    OperatorSubtaskState,
    StateDescription,
    SubmitJob,
    SubtaskIndex,
    SubtaskState,
)
from understudy.state import AlreadyFinished, CheckpointStorage, WrongEncryptionKey
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint
from understudy.state.checkpoints.job_runs import Claimant, JobRuns, RunOutcome, RunOwner
from understudy.state.checkpoints.savepoint_store import HeapSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints

from ..graphs import graph
from ..savepoints import chain, checkpoint, list_state, operator
from ..tasks.task_stage import StageContext

STATE_FILE = "old/chk-7/a-0-attempt"
METADATA = "old/chk-7/_metadata"
NOT_WHOLE = "; bring that file back from a backup, or start from another savepoint or checkpoint .*state verify.*$"
ITEMS = StateDescription("items", "OperatorListState", "str")


@dataclass
class Saved:
    """A savepoint on disk, its state in a file of its own."""

    root: Path
    savepoints: Savepoints
    path: str

    def wanted(self, path: str | None = None, name: str = "a", *, allow: bool = False) -> SubmitJob:
        program = graph(chain(operator(name, ITEMS)))
        program = replace(program, checkpoints=replace(program.checkpoints, directory=str(self.root)))
        return SubmitJob(program, 1, 1, path or self.path, allow)

    def refused(self, match: str, path: str | None = None) -> None:
        with pytest.raises(CannotRestore, match=match):
            find_origin(self.wanted(path), self.savepoints)


def completed(storage: CheckpointStorage) -> CompletedCheckpoint:
    (lists,) = list_state("items", 2).lists
    handle = storage.write(STATE_FILE, b"xx")
    state = SubtaskState({OperatorId("a"): OperatorSubtaskState(lists=(replace(lists, handle=handle),))})
    made = checkpoint((chain(operator("a", ITEMS)), [{}]))
    (vertex,) = made.vertices.values()
    return replace(
        made,
        vertices={each: replace(vertex, subtasks={SubtaskIndex(0): state}) for each in made.vertices},
        metadata_path=METADATA,
    )


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    root = tmp_path / "checkpoints"
    storage = CheckpointStorage(str(root))
    written = completed(storage)
    storage.write_sealed(METADATA, encode_metadata(written))
    savepoints = Savepoints(HeapSavepointStore(), CheckpointStorage)
    return Saved(root, savepoints, savepoints.store(written, storage, None))


def test_a_savepoint_is_found_with_where_its_state_lies_and_the_id_that_comes_next(saved: Saved) -> None:
    found = find_origin(saved.wanted(), saved.savepoints)
    assert found.origin.checkpoint.metadata_path == METADATA
    assert Path(found.origin.root) == saved.root
    assert (found.next_checkpoint_id, found.savepoint_path) == (8, saved.path)
    submitted = found.submitted(saved.wanted().graph.job_id)
    assert (submitted.restored_checkpoint_id, submitted.restored_operators, submitted.left_behind) == (7, ("a",), ())


@pytest.mark.parametrize("where", ["", "{root}/"])
def test_a_checkpoint_is_found_by_its_metadata_file(saved: Saved, where: str) -> None:
    path = where.format(root=saved.root) + METADATA
    assert find_origin(saved.wanted(path), saved.savepoints).savepoint_path == ""


@pytest.mark.parametrize("path", ["old/chk-7", "old/chk-7/", "{root}/old/chk-7"])
def test_a_checkpoint_is_found_by_its_folder(saved: Saved, path: str) -> None:
    """As `ls` shows it."""
    found = find_origin(saved.wanted(path.format(root=saved.root)), saved.savepoints)
    assert found.origin.checkpoint.metadata_path == METADATA


def test_a_relative_path_of_a_checkpoint_is_looked_for_in_the_working_directory_first(saved: Saved) -> None:
    for path, folder in [("chk-7", saved.root / "old"), (METADATA, saved.root.parent), ("old/chk-7", Path("/"))]:
        found = find_origin(replace(saved.wanted(path), working_directory=str(folder)), saved.savepoints)
        assert found.origin.checkpoint.metadata_path == METADATA
    saved.refused("missing state", "chk-7")


def test_a_folder_in_place_of_a_checkpoint_or_savepoint_is_answered_with_those_in_it(saved: Saved) -> None:
    """As `ls` shows it: the folder of a job, of its checkpoints and savepoints, and one in that."""
    for newer in (8, 30):
        CheckpointStorage(str(saved.root)).write_sealed(f"old/chk-{newer}/_metadata", b"")
    newest = ", ".join(f"{saved.root}/old/chk-{each}" for each in (30, 8, 7))
    saved.refused(f"old.*; name one of those in this folder: {newest}$", "old")
    own = Savepoints(None, CheckpointStorage)
    storage, pointers = CheckpointStorage(str(saved.root)), replace(saved, savepoints=own)
    found = completed(storage)
    paths = [own.store(found, storage, folder) for folder in (None, "nightly", "nightly")]
    pointers.refused(f"; name one of those in this folder: {', '.join(sorted(paths[1:]))}$", "nightly")
    pointers.refused(f"; name one of those in this folder: {', '.join(sorted(paths))}$", str(saved.root))
    pointers.refused("never was here$", "nosuch")
    for _ in range(10):
        own.store(found, storage, "nightly")
    pointers.refused(", and 4 more$", "nightly")


def test_what_was_left_behind_is_told(saved: Saved) -> None:
    found = find_origin(saved.wanted(name="b", allow=True), saved.savepoints)
    assert found.submitted(saved.wanted().graph.job_id).left_behind == ("a",)
    with pytest.raises(StateDoesNotFit):
        find_origin(saved.wanted(name="b"), saved.savepoints)


def test_a_missing_or_truncated_state_file_is_told_before_the_job_is_made(saved: Saved) -> None:
    (saved.root / STATE_FILE).write_bytes(b"x")
    saved.refused(f"a-0-attempt: corrupt state: expected 2 bytes, found 1 bytes{NOT_WHOLE}")
    (saved.root / STATE_FILE).unlink()
    saved.refused(f"a-0-attempt: missing state: no such file{NOT_WHOLE}")


def test_a_savepoint_whose_checkpoint_is_gone_is_not_named_in_its_own_place(saved: Saved) -> None:
    """What was named is there, and what it leads to is not: to name it again is no advice."""
    storage, own = CheckpointStorage(str(saved.root)), Savepoints(None, CheckpointStorage)
    path = own.store(completed(storage), storage, None)
    pointer = replace(saved, savepoints=own)
    (saved.root / STATE_FILE).unlink()
    pointer.refused(f"a-0-attempt: missing state: no such file{NOT_WHOLE}", path)
    (saved.root / METADATA).unlink()
    pointer.refused(f"missing state: no such file{NOT_WHOLE}", path)


def test_metadata_that_is_missing_or_not_whole_is_told(saved: Saved) -> None:
    metadata = saved.root / METADATA
    metadata.write_bytes(metadata.read_bytes()[:-1])
    saved.refused("corrupt state")
    metadata.unlink()
    saved.refused("missing state")


def test_a_checkpoint_of_another_root_is_outside(saved: Saved, tmp_path: Path) -> None:
    saved.refused("outside of the checkpoint directory", str(tmp_path / "other" / "_metadata"))
    saved.refused("outside of the checkpoint directory", "../checkpoints-of-others/_metadata")
    saved.refused("missing state", "old/chk-8/_metadata")


def test_the_text_says_which_job_and_which_path(saved: Saved) -> None:
    saved.refused(
        r"job 'test job' cannot be started from jobmanager://savepoints/none: .*missing savepoint",
        "jobmanager://savepoints/none",
    )


def test_a_job_whose_key_this_job_manager_has_not_got_is_refused_before_anything_is_made_of_it(saved: Saved) -> None:
    untouched: Any = None
    submissions = JobSubmissions(untouched, saved.savepoints, untouched, untouched)
    wanted = saved.wanted()
    checkpoints = replace(wanted.graph.checkpoints, encryption_key="0123456789abcdef")
    wanted = replace(wanted, graph=replace(wanted.graph, checkpoints=checkpoints))
    with pytest.raises(WrongEncryptionKey, match="with key 0123456789abcdef, and this process has no keys"):
        submissions.submit(wanted, untouched)


def test_metadata_in_the_folder_of_another_checkpoint_are_told(saved: Saved) -> None:
    """By a folder that was copied over another one, records were lost without a word."""
    other = saved.root / "job-x" / "chk-6"
    other.mkdir(parents=True)
    (other / "_metadata").write_bytes((saved.root / METADATA).read_bytes())
    saved.refused("found those of checkpoint 7 of job", str(other))


class _Kept:
    """What an earlier leader has kept: one job."""

    may_block = True

    def __init__(self) -> None:
        self.removed: list[tuple[str, JobStatus]] = []

    def is_kept(self, _job_id: JobId) -> bool:
        return True

    def remove_job(self, job_id: JobId, status: JobStatus) -> None:
        self.removed.append((job_id, status))

    def add_job(self, _wanted: SubmitJob) -> Any:
        raise OSError("goes on")


@pytest.mark.parametrize("outcome", RunOutcome)
def test_only_a_job_that_has_finished_is_not_taken_over(saved: Saved, outcome: RunOutcome) -> None:
    """Its leader died before it could forget the job: without its successor the name would stay taken."""
    wanted, kept, context = replace(saved.wanted(), restore_from=None, resume=True), _Kept(), StageContext()
    job_id = wanted.graph.job_id
    claimant = Claimant(RunOwner("here", 1, "app.py", "machine", "1"), lambda _: False, lambda: 0)
    JobRuns(CheckpointStorage(str(saved.root)), wanted.graph.name, claimant).claim(job_id).end(outcome)
    submissions: Any = JobSubmissions(context, saved.savepoints, kept, claimant)  # type: ignore[arg-type]
    submissions.submit(wanted, None)
    answer: Any = context.inbox.popleft()
    if outcome is RunOutcome.FINISHED:
        assert isinstance(answer.result, AlreadyFinished)
        assert kept.removed == [(job_id, JobStatus.FINISHED)]
    else:
        assert isinstance(answer.result, OSError), "it is taken over"
        assert kept.removed == []
