"""What is named where a checkpoint or savepoint cannot be read: the newest one of the same job that can."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from understudy.actors.errors import CannotRestore
from understudy.actors.restore.found_origin import find_origin
from understudy.messages import CheckpointId, JobId, SubmitJob
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.savepoint_store import FilesystemSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints

from ..graphs import graph
from ..savepoints import chain, checkpoint, operator

JOB = JobId("job-0123456789abcdef")


class Stored:
    """Checkpoints 1 to 3 of a job, a savepoint at 2, and the checkpoints of others."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.storage = CheckpointStorage(str(root))
        self.savepoints = Savepoints(None, lambda _: self.storage)
        for job_id, number in ((JOB, 1), (JOB, 2), (JOB, 3), (JobId("job-fedcba"), 9)):
            path = f"{job_id}/chk-{number}/_metadata"
            made = checkpoint((chain(operator("a")), [{}]))
            made = replace(made, job_id=job_id, checkpoint_id=CheckpointId(number), metadata_path=path)
            self.storage.write_sealed(path, encode_metadata(made))
            if (job_id, number) == (JOB, 2):
                self.savepoint = self.savepoints.store(made, self.storage, None)
        assert FilesystemSavepointStore(self.storage, folder="savepoints").load(self.savepoint).job_id == JOB

    def spoil(self, number: int) -> None:
        self.storage.write(f"{JOB}/chk-{number}/_metadata", b"rotten")

    def place(self, number: int) -> str:
        return f"{self.root}/{JOB}/chk-{number}"

    def refusal(self, path: str) -> str:
        program = graph(chain(operator("a")))
        program = replace(program, checkpoints=replace(program.checkpoints, directory=str(self.root)))
        with pytest.raises(CannotRestore) as caught:
            find_origin(SubmitJob(program, 1, 1, restore_from=path), self.savepoints)
        return str(caught.value)


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored(tmp_path)


@pytest.mark.parametrize("is_gone", [False, True])
def test_the_next_older_one_of_a_checkpoint(stored: Stored, is_gone: bool) -> None:
    stored.spoil(3)
    if is_gone:
        stored.storage.delete(f"{JOB}/chk-3/_metadata")
    assert f"can be read: --from-savepoint {stored.place(2)} (" in stored.refusal(stored.place(3))
    assert stored.refusal(stored.place(3)).endswith("What its sinks have committed since then comes again")


def test_a_newer_one_repeats_nothing(stored: Stored) -> None:
    stored.spoil(1)
    said = stored.refusal(stored.place(1))
    assert f"--from-savepoint {stored.place(3)} (" in said
    assert "comes again" not in said


def test_of_a_savepoint_whose_pointer_is_cut_off(stored: Stored) -> None:
    Path(stored.savepoint).write_bytes(Path(stored.savepoint).read_bytes()[:20])
    stored.spoil(3)
    said = stored.refusal(stored.savepoint)
    assert f"--from-savepoint {stored.place(2)} (" in said
    assert "comes again" in said


def test_of_a_savepoint_whose_checkpoint_is_spoilt(stored: Stored) -> None:
    stored.spoil(2)
    assert f"--from-savepoint {stored.place(3)} (" in stored.refusal(stored.savepoint)


def test_none_is_named_where_none_can_be_read(stored: Stored) -> None:
    for number in (1, 2, 3):
        stored.spoil(number)
    assert "or start from another savepoint or checkpoint (`understudy state verify" in stored.refusal(stored.place(3))
