"""Who owns a job's name: one at a time, whatever the others are at; and who has lost it learns it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest

from understudy.messages import CheckpointId, JobId
from understudy.runtime.simulation.world.disk import SimulatedDisk
from understudy.runtime.simulation.world.file_system import using
from understudy.state import CheckpointStorage, CorruptState
from understudy.state.checkpoints.job_runs import Claimant, JobRuns, RunClaim, RunOutcome, RunOwner
from understudy.state.errors import AlreadyFinished, AlreadyRunning, LostOwnership

LEASE_MS = 30_000


@dataclass
class Machines:
    """A clock that all agree on, and the processes that are dead."""

    storage: CheckpointStorage
    now_ms: int = 1_700_000_000_000
    dead: set[int] = field(default_factory=set)

    def runs(self, pid: int, name: str = "orders") -> JobRuns:
        owner = RunOwner(f"host-{pid}", pid, "app.py", "machine", "1")
        return JobRuns(self.storage, name, Claimant(owner, lambda o: o.pid in self.dead, lambda: self.now_ms, LEASE_MS))

    def claim(self, pid: int, name: str = "orders") -> RunClaim:
        return self.runs(pid, name).claim(JobId(f"job-{pid}"))


@pytest.fixture(params=["local", "simulated", "object store"])
def machines(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machines]:
    if request.param == "local":
        yield Machines(CheckpointStorage(str(tmp_path)))
    elif request.param == "object store":
        yield Machines(CheckpointStorage(f"memory://{uuid4().hex}/checkpoints"))
    else:
        with using(SimulatedDisk()):
            yield Machines(CheckpointStorage("sim://checkpoints"))


def test_a_second_one_is_refused_and_told_who_is_there(machines: Machines) -> None:
    machines.claim(1)
    machines.now_ms += LEASE_MS
    with pytest.raises(
        AlreadyRunning, match=r"process 1 \(app.py\) on host-1 .* renewed its claim 30.0 s ago"
    ) as refused:
        machines.claim(2)
    assert (refused.value.host, refused.value.pid) == ("host-1", 1)


def test_a_claim_by_a_clock_that_is_ahead_says_so_and_when_it_ends(machines: Machines) -> None:
    """As where the clock of a machine was set right after its job had died."""
    machines.claim(1)
    machines.now_ms -= 3_600_000
    with pytest.raises(AlreadyRunning, match=r"3600 s ahead of the clock here.* the claim ends in 3630 s"):
        machines.claim(2)
    machines.now_ms += 3_600_000 - 2_000
    with pytest.raises(AlreadyRunning, match=r"renewed its claim 0\.0 s ago"):
        machines.claim(2)
    machines.now_ms += 2_000 + LEASE_MS + 1
    machines.claim(2)


def test_names_do_not_concern_each_other(machines: Machines) -> None:
    for name in ("orders", "Orders", "or/ders", "../orders", "..", ".", "", "ö"):
        machines.claim(1, name)
        with pytest.raises(AlreadyRunning):
            machines.claim(2, name)


def test_names_that_no_file_system_takes_as_they_are_do_not_concern_each_other(machines: Machines) -> None:
    """28 letters of Japanese are 252 characters, quoted; a folder's name has 255 at most."""
    for name in ("x" * 300, "x" * 301, "\u6ce8" * 29, "\u6ce8" * 30, "." * 90):
        claim = machines.claim(1, name)
        with pytest.raises(AlreadyRunning):
            machines.claim(2, name)
        assert len(claim.runs.place.rpartition("/")[2]) <= 255


def test_the_next_leader_of_a_job_has_its_name_at_once_unless_the_job_has_ended(machines: Machines) -> None:
    """One leader after the other runs the same job; the last may have died before it could forget that it has ended."""
    machines.runs(1).claim(JobId("job"))
    machines.runs(2).claim(JobId("job")).end(RunOutcome.FINISHED)
    with pytest.raises(AlreadyFinished):
        machines.runs(3).claim(JobId("job"))


def test_a_dead_process_has_no_name_at_once(machines: Machines) -> None:
    machines.claim(1)
    machines.dead.add(1)
    assert [run.job_id for run in machines.claim(2).earlier] == ["job-1"]


def test_who_is_silent_for_too_long_loses_the_name_and_learns_it(machines: Machines) -> None:
    first = machines.claim(1)
    machines.now_ms += LEASE_MS + 1
    second = machines.claim(2)
    for late in (first.confirm, first.renew, lambda: first.end(RunOutcome.FINISHED)):
        with pytest.raises(LostOwnership, match="taken over by process 2"):
            late()
    second.renew()
    with pytest.raises(AlreadyRunning):
        machines.claim(3)


def test_who_renews_keeps_the_name(machines: Machines) -> None:
    claim = machines.claim(1)
    for _ in range(5):
        machines.now_ms += LEASE_MS
        claim.renew()
        with pytest.raises(AlreadyRunning):
            machines.claim(2)
    claim.confirm()


@pytest.mark.parametrize("outcome", [each for each in RunOutcome if each not in (RunOutcome.NONE, RunOutcome.FINISHED)])
def test_a_name_that_was_given_up_is_free(machines: Machines, outcome: RunOutcome) -> None:
    claim = machines.claim(1)
    claim.newest_id = CheckpointId(7)
    claim.start(CheckpointId(3), "job-0/chk-3/_metadata")
    claim.end(outcome)
    (run,) = machines.claim(2).earlier
    assert (run.outcome, run.origin_id, run.newest_id, run.has_started) == (outcome, 3, 7, True)


def test_a_job_that_has_finished_is_not_run_again(machines: Machines) -> None:
    machines.claim(1).end(RunOutcome.FINISHED)
    machines.dead.add(1)
    machines.now_ms += 10 * LEASE_MS
    with pytest.raises(AlreadyFinished, match=r"job-1.*another name.*stop_with_savepoint\(\)"):
        machines.claim(2)


def test_of_two_that_take_over_at_once_one_gets_it(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have found that the owner is dead; then the other one is faster."""
    machines.claim(1)
    machines.dead.add(1)
    create: Callable[[str, bytes], None] = machines.storage.create_sealed
    faster: list[RunClaim] = []

    def slow(path: str, data: bytes) -> None:
        monkeypatch.undo()
        faster.append(machines.claim(2))
        create(path, data)

    monkeypatch.setattr(machines.storage, "create_sealed", slow)
    with pytest.raises(AlreadyRunning, match="process 2"):
        machines.claim(3)
    faster[0].confirm()
    assert not [path for path in machines.storage.list_files() if "writing" in path]


def test_an_owner_whose_file_is_gone_owns_nothing(machines: Machines) -> None:
    """Whoever removed it may have started the job anew, with the first number again."""
    machines.claim(1).end(RunOutcome.CANCELED)
    second = machines.claim(2)
    for path in machines.storage.list_files("names"):
        machines.storage.delete(path)
    machines.claim(3)
    with pytest.raises(LostOwnership, match="gone"):
        second.renew()


def test_a_spoilt_file_of_the_newest_run_is_not_taken_for_none(machines: Machines) -> None:
    machines.claim(1)
    (path,) = machines.storage.list_files("names")
    machines.storage.write(path, b"rotten")
    with pytest.raises(CorruptState, match=r"a run of job .* Put the file back .* start it once with from_savepoint="):
        machines.claim(2)


def test_a_cluster_that_closes_gives_up_what_is_left(machines: Machines) -> None:
    runs = machines.runs(1)
    claim = runs.claim(JobId("job-1"))
    claim.start()
    runs._claimant.close()
    assert machines.claim(2).earlier[0].outcome is RunOutcome.CANCELED
    runs._claimant.close()


def test_who_closes_gives_up_all_its_names_though_it_has_lost_one(machines: Machines) -> None:
    runs = machines.runs(1, "lost")
    claimant = runs._claimant
    lost, other = runs.claim(JobId("job-1")), JobRuns(machines.storage, "orders", claimant).claim(JobId("job-2"))
    machines.now_ms += LEASE_MS + 1
    machines.claim(2, "lost")
    claimant.close()
    assert claimant.claims == []
    assert (lost.run.outcome, other.run.outcome) == (RunOutcome.NONE, RunOutcome.CANCELED)
    machines.claim(3)


def test_a_run_is_alive_for_as_long_as_it_said_itself(machines: Machines) -> None:
    """Whoever looks may have a shorter lease."""
    runs = machines.runs(1)
    runs._claimant.lease_ms = 10 * LEASE_MS
    runs.claim(JobId("job-1"))
    machines.now_ms += 2 * LEASE_MS
    with pytest.raises(AlreadyRunning, match="the claim ends 300 s after"):
        machines.claim(2)
    machines.now_ms += 9 * LEASE_MS
    machines.claim(2)
