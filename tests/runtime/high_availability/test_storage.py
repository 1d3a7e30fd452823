"""High availability by shared storage alone passes the contract, and its terms follow each other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from understudy.runtime.high_availability.errors import NotOurs
from understudy.runtime.high_availability.kept_jobs import KeptJobs
from understudy.runtime.high_availability.leader import Leader
from understudy.runtime.high_availability.storage_election import StorageElection
from understudy.runtime.high_availability.storage_epochs import StorageEpochs
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.high_availability import HighAvailability
from understudy.state.errors import LostLeadership

from ...contracts.high_availability import DurableHighAvailabilityContract
from ..clusters.jobs import eventually
from .clusters import Candidates, config, followed


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


def test_a_leader_that_has_resigned_is_not_shown_to_those_who_look_for_one(candidates: Candidates) -> None:
    retrieval, gone = candidates.services.retrieval(), threading.Event()
    leader = candidates.win()
    leader.publish("tcp://127.0.0.1:1")
    eventually(lambda: retrieval.leader() is not None)
    retrieval.on_change(lambda now: gone.set() if now is None else None)
    leader.resign()
    assert gone.wait(60), "it is followed by nobody"
    retrieval.close()


def test_who_asks_who_leads_ends_though_storage_does_not_answer(
    candidates: Candidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TaskManager process that was to end waited for it, as long as its connection to the storage stood still."""
    asked, answered = threading.Event(), threading.Event()

    def silent(_: StorageEpochs) -> None:
        asked.set()
        answered.wait()

    monkeypatch.setattr(StorageEpochs, "newest", silent)
    retrieval = candidates.services.retrieval()
    assert asked.wait(60)
    closing = threading.Thread(target=retrieval.close)
    closing.start()
    closing.join(60)
    has_ended = not closing.is_alive()
    answered.set()
    closing.join()
    assert has_ended


def test_what_lies_in_our_place_and_is_not_ours_is_named_and_left(candidates: Candidates) -> None:
    storage = candidates.services.storage
    storage.write_sealed("epochs/00000001/term", b"somebody's notes")
    with pytest.raises(NotOurs, match="holds what Understudy has not written"):
        StorageEpochs(storage).newest()


def test_who_leads_is_logged(candidates: Candidates, caplog: pytest.LogCaptureFixture) -> None:
    candidates.win().publish("tcp://127.0.0.1:1")
    logged, withdraw = threading.Event(), threading.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().endswith("the JobManager at tcp://127.0.0.1:1 leads"):
                logged.set()

    handler, job_log = Listener(), logging.getLogger("understudy.job")
    job_log.addHandler(handler)
    with caplog.at_level(logging.INFO):
        waiting = threading.Thread(target=lambda: candidates.services.election().campaign(withdraw))
        waiting.start()
        assert logged.wait(60)
    withdraw.set()
    waiting.join()
    job_log.removeHandler(handler)
