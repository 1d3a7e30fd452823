"""High availability by shared storage alone passes the contract, and its terms follow each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from understudy.messages import LeaderSessionId
from understudy.runtime.high_availability.errors import NotOurs
from understudy.runtime.high_availability.kept_jobs import KeptJobs
from understudy.runtime.high_availability.leader import Leader
from understudy.runtime.high_availability.storage_election import StorageElection
from understudy.runtime.high_availability.storage_epochs import EpochTerm, StorageEpochs
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.high_availability import HighAvailability
from understudy.state.errors import LostLeadership

from ...contracts.high_availability import DurableHighAvailabilityContract
from .clusters import Candidates, config


def followed(candidates: Candidates) -> None:
    """The newest epoch is over for all others, though its leader does not know."""
    epochs = StorageEpochs(candidates.services.storage)
    newest = epochs.newest()
    assert newest is not None
    assert epochs.claim(newest.number + 1, EpochTerm(LeaderSessionId("unknown"), is_over=True))


class TestStorage(DurableHighAvailabilityContract):
    @pytest.fixture(autouse=True)
    def _clusters(self, tmp_path: Path) -> Iterator[None]:
        self.folder, self.clusters = tmp_path, dict[str, Candidates]()
        yield
        for candidates in self.clusters.values():
            candidates.close()

    @property
    def storage(self) -> CheckpointStorage:
        return CheckpointStorage(str(self.folder / "checkpoints"))

    def make(self) -> KeptJobs:
        candidates = Candidates(config(self.folder, timeout_ms=60_000))
        kept = candidates.kept()
        self.clusters[kept.session] = candidates
        return kept

    def succeed(self, leader: HighAvailability) -> KeptJobs:
        candidates = self.clusters[leader.session]
        followed(candidates)
        kept = candidates.kept()
        self.clusters[kept.session] = candidates
        return kept


@pytest.fixture
def candidates(tmp_path: Path) -> Iterator[Candidates]:
    made = Candidates(config(tmp_path))
    yield made
    made.close()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Candidates]:
    """Each resigns, so nobody waits for the timeout; and no leader is lost on a machine that is slow."""
    made = Candidates(config(tmp_path, timeout_ms=600_000))
    yield made
    made.close()


def test_a_leader_that_resigns_is_followed_at_once(tmp_path: Path) -> None:
    candidates = Candidates(config(tmp_path, timeout_ms=600_000))
    candidates.win().resign()
    candidates.win().resign()


def test_a_leader_that_stays_silent_is_followed_and_knew_before_that_it_may_be(candidates: Candidates) -> None:
    """Its own clock stands for a process that is frozen: at every wake it finds its time over before others act."""
    clock = [0.0]
    election = StorageElection(candidates.services.settings, candidates.services.storage, lambda: clock[0])
    frozen = election.campaign(threading.Event())
    assert frozen is not None
    assert frozen.is_sure
    clock[0] += candidates.services.settings.session_timeout_ms / 1000 * 0.7
    assert not frozen.is_sure
    with pytest.raises(LostLeadership):
        frozen.write("job", b"late")
    follower = candidates.win()
    assert follower.session != frozen.session
    assert dict(follower.read()) == {}
    frozen.resign()


def test_a_leader_that_goes_on_saying_so_is_not_followed(candidates: Candidates) -> None:
    leader, withdraw = candidates.win(), threading.Event()
    looked, epochs = [], StorageEpochs(candidates.services.storage)
    while len(looked) < 3:
        newest = epochs.newest()
        assert newest is not None
        if not looked or newest != looked[-1]:
            looked.append(newest)
    waiting = threading.Thread(target=lambda: candidates.services.election().campaign(withdraw))
    waiting.start()
    withdraw.set()
    waiting.join()
    assert {each.number for each in looked} == {1}
    assert leader.is_sure


def test_who_leads_is_found_and_the_next_one_too(candidates: Candidates) -> None:
    retrieval, heard, changed = candidates.services.retrieval(), [], threading.Semaphore(0)

    def hear(leader: Leader | None) -> None:
        heard.append(leader)
        changed.release()

    retrieval.on_change(hear)
    first = candidates.win()
    first.publish("tcp://127.0.0.1:1")
    while retrieval.leader() is None:
        changed.acquire()
    first.resign()
    second = candidates.win()
    second.publish("tcp://127.0.0.1:2")
    while heard[-1] != Leader("tcp://127.0.0.1:2", second.session):
        changed.acquire()
    retrieval.close()
    assert heard[0] is None
    assert heard[1] == Leader("tcp://127.0.0.1:1", first.session)


def test_what_lies_in_our_place_and_is_not_ours_is_named_and_left(candidates: Candidates) -> None:
    storage = candidates.services.storage
    storage.write_sealed("epochs/00000001/term", b"somebody's notes")
    with pytest.raises(NotOurs, match="holds what Understudy has not written"):
        StorageEpochs(storage).newest()


def test_an_epoch_that_was_won_and_never_opened_hides_nothing(patient: Candidates) -> None:
    """Its leader died in between."""
    first = patient.win()
    first.write("job", b"kept")
    first.resign()
    epochs = StorageEpochs(patient.services.storage)
    newest = epochs.newest()
    assert newest is not None
    assert epochs.claim(newest.number + 1, replace(newest.term, is_over=True))
    assert dict(patient.win().read()) == {"job": b"kept"}


@pytest.mark.parametrize("is_alive", [True, False])
def test_without_its_term_file_the_newest_epoch_still_is_it_and_keeps_its_records(
    candidates: Candidates, is_alive: bool
) -> None:
    """Somebody has removed it: a leader that lives says it again, and who follows inherits what it has."""
    candidates.win().resign()
    leader = candidates.win()
    leader.write("job", b"kept")
    storage, epochs = candidates.services.storage, StorageEpochs(candidates.services.storage)
    if not is_alive:
        leader.resign()
    storage.delete("epochs/00000002/term")
    assert epochs.is_newest(2)
    if is_alive:
        leader.write("job", b"and changed")
        leader.publish("tcp://127.0.0.1:1")
        newest = epochs.newest()
        assert newest is not None
        assert (newest.number, newest.term.leader_session_id) == (2, leader.session)
        leader.resign()
    follower = candidates.win()
    assert follower.session.startswith("3-")
    assert dict(follower.read()) == {"job": b"and changed" if is_alive else b"kept"}
