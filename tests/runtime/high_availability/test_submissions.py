"""Graph and program of a job: what was stored comes back, and nothing is believed that was not signed with the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy import CorruptState, MissingState
from understudy.messages import JobId
from understudy.runtime.high_availability.errors import ForgedSubmission
from understudy.runtime.high_availability.submissions import StoredProgram, Submissions
from understudy.state import CheckpointStorage

from ...contracts.high_availability import submitted

JOB = JobId("job")
PROGRAM = StoredProgram(b"\x80a pickle", ("/work",), ("module:warm_up",))


@pytest.fixture
def storage(tmp_path: Path) -> CheckpointStorage:
    return CheckpointStorage(str(tmp_path))


@pytest.fixture
def submissions(storage: CheckpointStorage) -> Submissions:
    made = Submissions(storage, b"key")
    made.store(submitted(), PROGRAM)
    return made


def test_what_was_stored_comes_back_until_it_is_deleted(submissions: Submissions) -> None:
    assert submissions.load(JOB) == (submitted(), PROGRAM)
    assert submissions.stored() == ["job"]
    submissions.delete(JOB)
    with pytest.raises(MissingState):
        submissions.load(JOB)


def test_without_the_key_nobody_can_write_what_is_run(submissions: Submissions, storage: CheckpointStorage) -> None:
    Submissions(storage, b"another key").store(submitted(), StoredProgram(b"evil"))
    with pytest.raises(ForgedSubmission, match="was not signed with this cluster's key, so nothing of it is run"):
        submissions.load(JOB)


@pytest.mark.parametrize("place", range(0, 120, 7))
def test_no_byte_of_it_can_be_changed(submissions: Submissions, storage: CheckpointStorage, place: int) -> None:
    data = bytearray(storage.read_sealed("submissions/job"))
    data[place] ^= 1
    storage.write_sealed("submissions/job", bytes(data))
    with pytest.raises(ForgedSubmission):
        submissions.load(JOB)


def test_the_program_of_one_job_does_not_pass_for_another_jobs(
    submissions: Submissions, storage: CheckpointStorage
) -> None:
    storage.write_sealed("submissions/other", storage.read_sealed("submissions/job"))
    with pytest.raises(ForgedSubmission):
        submissions.load(JobId("other"))


def test_a_file_that_is_damaged_is_named(submissions: Submissions, storage: CheckpointStorage) -> None:
    storage.write("submissions/job", b"half")
    with pytest.raises(CorruptState, match="submissions/job"):
        submissions.load(JOB)
