"""Resumption: which checkpoint of a name's runs the next one goes on from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from understudy.actors.errors import CannotRestore, NoReadableCheckpoint
from understudy.actors.restore.resumption import Resumption
from understudy.messages import CheckpointId, JobId, SubmitJob
from understudy.state import CheckpointStorage
from understudy.state.checkpoint_folders import inlets_directory
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.job_runs import Claimant, JobRuns, RunClaim, RunOutcome, RunOwner
from understudy.state.checkpoints.savepoint_store import HeapSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints

from ..graphs import graph
from ..savepoints import chain, checkpoint, operator


class Past:
    """The runs of one name, and what each has stored."""

    def __init__(self, root: Path) -> None:
        self.storage = CheckpointStorage(str(root))
        owner = RunOwner("host", 1, "app.py", "machine", "1")
        self.runs = JobRuns(self.storage, "orders", Claimant(owner, lambda _: True, lambda: 0))
        self.savepoints = Savepoints(HeapSavepointStore(), CheckpointStorage)
        program = graph(chain(operator("a")))
        self.program = replace(program, checkpoints=replace(program.checkpoints, directory=str(root)))
        self._numbers = 0

    def run(self, *stored: int, origin: str = "", newest: int = 0) -> JobId:
        """A run that died; `origin` as `job-1/3`."""
        claim = self.claim()
        job_id = claim.run.job_id
        claim.newest_id = CheckpointId(newest)
        job, _, number = origin.partition("/")
        claim.start(CheckpointId(int(number or 0)), f"{job}/chk-{number}/_metadata" if origin else "")
        for each in stored:
            self.store(job_id, each)
        return job_id

    def claims_again(self, job_id: JobId, origin: int, ids_from: int) -> None:
        """The next leader of the same job."""
        claim = self.runs.claim(job_id)
        claim.start(CheckpointId(origin), f"{job_id}/chk-{origin}/_metadata", ids_from=CheckpointId(ids_from))

    def store(self, job_id: JobId, number: int) -> None:
        path = f"{job_id}/chk-{number}/_metadata"
        made = checkpoint((chain(operator("a")), [{}]))
        made = replace(made, job_id=job_id, checkpoint_id=CheckpointId(number), metadata_path=path)
        self.storage.write_sealed(path, encode_metadata(made))

    def took(self, job_id: JobId) -> str:
        """An inlet of that run has a log."""
        folder = f"{inlets_directory(job_id)}/orders"
        self.storage.write(f"{folder}/0", b"a record")
        return folder

    def logs(self, wanted: Callable[[SubmitJob], SubmitJob] = lambda wanted: wanted) -> tuple[str, ...]:
        """Those that the next run reads before its own."""
        submit = wanted(SubmitJob(self.program, 1, 1, resume=True))
        resumption = Resumption(submit, self.savepoints, self.claim())
        return resumption.inlets_since(resumption.origin())

    def spoil(self, path: str) -> None:
        self.storage.write(f"{path}/_metadata", b"rotten")

    def claim(self) -> RunClaim:
        self._numbers += 1
        return self.runs.claim(JobId(f"job-{self._numbers}"))

    def found(self, wanted: Callable[[SubmitJob], SubmitJob] = lambda wanted: wanted) -> str:
        """As `job-1/3`; empty for a fresh start."""
        submit = wanted(SubmitJob(self.program, 1, 1, resume=True))
        origin = Resumption(submit, self.savepoints, self.claim()).origin()
        return "" if origin is None else f"{origin.checkpoint.job_id}/{origin.checkpoint.checkpoint_id}"


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path / "checkpoints")


def test_nothing_is_there_at_first(past: Past) -> None:
    assert past.found() == ""


def test_the_newest_by_number_and_not_by_name(past: Past) -> None:
    past.run(9, 10, 8)
    assert past.found() == "job-1/10"


def test_a_run_without_a_checkpoint_leads_to_what_it_was_started_from(past: Past) -> None:
    past.run(3)
    past.run(origin="job-1/3")
    past.claim().end(RunOutcome.NOT_STARTED)
    assert past.found() == "job-1/3"


def test_what_a_deposed_run_has_stored_after_its_successor_looked_is_passed_over(past: Past) -> None:
    """Nothing of it was committed; and the successor may have removed what sinks had prepared for it."""
    past.run(3, 4)
    past.run(origin="job-1/3")
    assert past.found() == "job-1/3"


def test_what_an_earlier_leader_has_stored_after_the_last_that_the_next_one_knew_is_passed_over(past: Past) -> None:
    """It died before it could say so, and the next one has the same job: its sinks have undone what came later."""
    job_id = past.run(5, 6, 7)
    past.claims_again(job_id, origin=6, ids_from=1_001)
    assert past.found() == f"{job_id}/6"
    past.claims_again(job_id, origin=6, ids_from=2_001)
    past.store(job_id, 2_003)
    assert past.found() == f"{job_id}/2003"
    past.spoil(f"{job_id}/chk-2003")
    assert past.found() == f"{job_id}/6"


def test_a_savepoint_that_is_gone_is_taken_where_its_own_run_has_stored_it(past: Past) -> None:
    past.run(3, 4, 5)
    past.claim().start(CheckpointId(4), "jobmanager://savepoints/of-a-process-that-is-dead")
    assert past.found() == "job-1/4"


def test_of_spoilt_ones_the_next_older_one_is_taken_in_earlier_runs_too(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    past.run(3, 4, 5)
    past.run(5, 6, origin="job-1/4")
    past.spoil("job-2/chk-6")
    past.spoil("job-2/chk-5")
    past.spoil("job-1/chk-4")
    assert past.found() == "job-1/3"
    for path in ("job-2/chk-6", "job-2/chk-5", "job-1/chk-4"):
        assert caplog.text.count(f"{path}/_metadata cannot be used") == 1


def test_one_in_whose_folder_lie_the_metadata_of_another_is_passed_over(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    past.run(3, 4)
    past.store(JobId("job-x"), 9)
    past.storage.write_sealed("job-1/chk-4/_metadata", past.storage.read_sealed("job-x/chk-9/_metadata"))
    assert past.found() == "job-1/3"
    assert "those of checkpoint 9 of job job-x" in caplog.text


def test_a_checkpoint_that_is_not_complete_is_none(past: Past) -> None:
    past.run(3)
    past.storage.write("job-1/chk-4/a-0-attempt", b"state")
    assert past.found() == "job-1/3"


@pytest.mark.parametrize("newest", [0, 7])
def test_a_run_whose_checkpoints_are_gone_is_not_begun_anew(past: Past, newest: int) -> None:
    past.run(newest=newest)
    if newest:
        with pytest.raises(NoReadableCheckpoint, match="job-1/chk-7: it was complete, and is gone"):
            past.found()
    else:
        assert past.found() == ""


def test_where_the_newest_checkpoint_is_gone_a_warning_names_it_and_the_next_older_one_is_taken(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    """The savepoint that a job was stopped with, for example, which somebody has disposed of."""
    past.run(3, newest=4)
    assert past.found() == "job-1/3"
    assert "chk-4 cannot be used: it was complete, and is gone. Trying the next older one" in caplog.text


def test_a_checkpoint_that_has_gone_for_a_newer_one_is_not_missed(past: Past, caplog: pytest.LogCaptureFixture) -> None:
    """The newest that a run's file names may be older than what the run has stored since."""
    past.run(5, newest=4)
    assert past.found() == "job-1/5"
    assert not caplog.text


def test_a_savepoint_counts_when_there_is_nothing_else(past: Past) -> None:
    past.store(JobId("job-0"), 2)

    def from_savepoint(wanted: SubmitJob) -> SubmitJob:
        return replace(wanted, restore_from="job-0/chk-2")

    assert past.found(from_savepoint) == "job-0/2"
    past.run(origin="job-0/2")
    assert past.found() == "job-0/2", "though nobody names it any more"
    latest = past.run(3, origin="job-0/2")
    assert past.found(from_savepoint) == f"{latest}/3"
    past.spoil(f"{latest}/chk-3")
    past.spoil("job-0/chk-2")
    with pytest.raises(NoReadableCheckpoint, match=f"{latest}/chk-3"):
        past.found(from_savepoint)


def from_edited(wanted: SubmitJob) -> SubmitJob:
    """As with a savepoint whose values were mended: it is of no run of the name."""
    return replace(wanted, restore_from="job-0/chk-2")


def anyway(wanted: SubmitJob) -> SubmitJob:
    return replace(from_edited(wanted), restore_anyway=True)


def test_a_savepoint_that_no_run_began_from_is_passed_over_with_a_warning(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    past.store(JobId("job-0"), 2)
    latest = past.run(3)
    assert past.found(from_edited) == f"{latest}/3"
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "job-0/chk-2 is not used" in warning
    assert f"goes on from {past.storage.location(f'{latest}/chk-3/_metadata')}" in warning
    assert 'resume="savepoint"' in warning


@pytest.mark.parametrize("is_there", [True, False])
def test_one_that_a_run_began_from_has_counted(past: Past, caplog: pytest.LogCaptureFixture, is_there: bool) -> None:
    """The command of a service is always the same, also when the savepoint was disposed of long ago."""
    past.store(JobId("job-0"), 2)
    past.run(3, origin="job-0/2")
    past.run(4)
    if not is_there:
        past.storage.delete("job-0/chk-2/_metadata")
    assert past.found(from_edited) == "job-2/4"
    assert not caplog.records


def test_a_savepoint_that_counts_anyway_goes_before_all_runs(past: Past) -> None:
    past.store(JobId("job-0"), 2)
    past.run(3)
    assert past.found(anyway) == "job-0/2"
    past.run(origin="job-0/2")
    assert past.found() == "job-0/2", "from then on it is what the runs before it have led to"
    assert past.found(anyway) == "job-0/2"


def test_one_that_counts_anyway_counts_once_though_the_command_is_repeated(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    """As by a supervisor that starts the service again."""
    past.store(JobId("job-0"), 2)
    past.run(3)
    for _ in range(2):
        claim = past.claim()
        claim.start(CheckpointId(2), "job-0/chk-2/_metadata", counted_anyway="job-0/chk-2")
        past.store(claim.run.job_id, 4)
        claim.end(RunOutcome.FAILED)
        caplog.clear()
        assert past.found(anyway) == f"{claim.run.job_id}/4"
        assert 'has counted already: the run before was started with it and resume="savepoint"' in caplog.text
    past.storage.delete("job-0/chk-2/_metadata")
    assert past.found(anyway) == f"{claim.run.job_id}/4", "it need not be there any more"
    latest = past.run(5)
    past.store(JobId("job-0"), 2)
    assert past.found() == f"{latest}/5"
    assert past.found(anyway) == "job-0/2", "a run of another command lies between"


def test_where_the_run_before_has_left_nothing_it_counts_still_without_a_word(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a change of leader before the first checkpoint."""
    past.store(JobId("job-0"), 2)
    past.run(3)
    past.claim().start(CheckpointId(2), "job-0/chk-2/_metadata", counted_anyway="job-0/chk-2")
    assert past.found(anyway) == "job-0/2"
    assert not caplog.records


def test_the_savepoint_that_a_run_was_stopped_with_is_used(past: Past, caplog: pytest.LogCaptureFixture) -> None:
    latest = past.run(3)
    assert past.found(lambda wanted: replace(wanted, restore_from=f"{latest}/chk-3")) == f"{latest}/3"
    assert not caplog.records


def test_what_inlets_took_since_is_read_again_but_by_who_goes_back(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    past.store(JobId("job-0"), 2)
    before = [past.took(past.run(each)) for each in (3, 4)]
    assert past.logs(from_edited) == (), "the newest run's own are named by its checkpoint"
    assert past.logs(anyway) == ()
    assert all(past.storage.location(each) in caplog.text for each in before)
    back = past.claim()
    back.start(CheckpointId(2), "job-0/chk-2/_metadata", counted_anyway="job-0/chk-2")
    own = past.took(back.run.job_id)
    assert past.logs(anyway) == (own,), "the same command: that run had no checkpoint"
    assert past.logs() == (own,)
    later = past.claim()
    later.start(CheckpointId(2), "job-0/chk-2/_metadata")
    newest = past.took(later.run.job_id)
    assert past.logs() == (own, newest), "and those before it went back stay where they are"


def test_one_that_counts_anyway_and_is_gone_is_no_reason_to_take_another(past: Past) -> None:
    past.run(3)
    with pytest.raises(CannotRestore, match="job-0/chk-2"):
        past.found(anyway)


def test_storage_that_does_not_answer_is_no_reason_to_go_back_either(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.run(3, 4)

    read = CheckpointStorage.read_sealed

    def broken(storage: CheckpointStorage, path: str) -> bytes:
        if path.endswith("_metadata"):
            raise PermissionError(path)
        return read(storage, path)

    monkeypatch.setattr(CheckpointStorage, "read_sealed", broken)
    with pytest.raises(CannotRestore, match="chk-4") as error:
        past.found()
    assert not isinstance(error.value, NoReadableCheckpoint)
