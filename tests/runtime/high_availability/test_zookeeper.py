"""High availability by a real ZooKeeper passes the contract, and its sessions follow each other."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

from tests.free_port import free_port
from understudy.messages import JobId
from understudy.runtime.high_availability import zookeeper_client
from understudy.runtime.high_availability.errors import AnotherCluster, NotOurs, NotReachable
from understudy.runtime.high_availability.kept_jobs import KeptJobs
from understudy.runtime.high_availability.leader import Leader
from understudy.runtime.high_availability.leadership import Leadership
from understudy.runtime.high_availability.services import HighAvailabilityServices
from understudy.runtime.high_availability.settings import HighAvailabilitySettings
from understudy.runtime.high_availability.zookeeper_election import ZooKeeperElection, ZooKeeperLeadership
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.high_availability import HighAvailability
from understudy.state.errors import LostLeadership

from ...contracts.high_availability import DurableHighAvailabilityContract, submitted
from ...systems.zookeeper import Ensemble, end_session
from .clusters import PATIENT_ZOOKEEPER_MS, Candidates, config

pytestmark = pytest.mark.processes


def expire(leader: Leadership) -> None:
    """Its session ends, and it has not heard of that yet."""
    assert isinstance(leader, ZooKeeperLeadership)
    end_session(leader._client, leader._settings.quorum)


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_connection_that_breaks_at_the_start_is_made_again(
    tmp_path: Path, zookeeper: Ensemble, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    """A request of the first ones is lost, as on a machine that is busy."""
    asked, requests = zookeeper_client.asked, itertools.count()

    def lossy(answer: Any) -> Any:
        if next(requests) == broken:
            raise ConnectionLoss
        return asked(answer)

    monkeypatch.setattr(zookeeper_client, "asked", lossy)
    candidates = Candidates(config(tmp_path, zookeeper.quorum, timeout_ms=PATIENT_ZOOKEEPER_MS))
    try:
        assert candidates.win().is_sure
    finally:
        candidates.close()


class TestZooKeeper(DurableHighAvailabilityContract):
    @pytest.fixture(autouse=True)
    def _clusters(self, tmp_path: Path, zookeeper: Ensemble) -> Iterator[None]:
        self.folder, self.quorum = tmp_path, zookeeper.quorum
        self.clusters: dict[str, Candidates] = {}
        yield
        for candidates in self.clusters.values():
            candidates.close()

    @property
    def storage(self) -> CheckpointStorage:
        return CheckpointStorage(str(self.folder / "checkpoints"))

    def make(self) -> KeptJobs:
        candidates = Candidates(config(self.folder, self.quorum, timeout_ms=PATIENT_ZOOKEEPER_MS))
        kept = candidates.kept()
        self.clusters[kept.session] = candidates
        return kept

    def succeed(self, leader: HighAvailability) -> KeptJobs:
        candidates = self.clusters[leader.session]
        expire(candidates.leaders[-1])
        kept = candidates.kept()
        self.clusters[kept.session] = candidates
        return kept


@pytest.fixture
def candidates(tmp_path: Path, zookeeper: Ensemble) -> Iterator[Candidates]:
    made = Candidates(config(tmp_path, zookeeper.quorum, PATIENT_ZOOKEEPER_MS))
    yield made
    made.close()


@pytest.fixture
def nodes(candidates: Candidates, zookeeper: Ensemble) -> Iterator[KazooClient]:
    """A client of somebody else, below the cluster's root."""
    settings = candidates.services.settings
    root = f"{settings.path_root}/{settings.cluster_id}"
    client = KazooClient(f"{zookeeper.quorum}{root}")
    client.start()
    yield client
    client.stop()
    client.close()


def test_a_leader_that_resigns_is_followed_at_once(candidates: Candidates) -> None:
    candidates.win().resign()
    candidates.win().resign()


def test_a_candidate_waits_for_the_one_before_it_and_may_withdraw(candidates: Candidates) -> None:
    candidates.win()
    withdraw, answers = threading.Event(), []
    waiting = threading.Thread(target=lambda: answers.append(candidates.services.election().campaign(withdraw)))
    waiting.start()
    withdraw.set()
    waiting.join()
    assert answers == [None]


def test_a_candidate_that_withdraws_before_it_is_connected_has_no_error(tmp_path: Path) -> None:
    """As where a cluster is closed while it starts: it was "ZooKeeper cannot be reached"."""
    withdraw = threading.Event()
    withdraw.set()
    candidates = Candidates(config(tmp_path, f"127.0.0.1:{free_port()}"))
    assert candidates.services.election().campaign(withdraw) is None


def test_a_cluster_with_another_key_is_not_waited_for(tmp_path: Path, zookeeper: Ensemble) -> None:
    mine, other = (config(tmp_path, zookeeper.quorum) for _ in range(2))
    other["high-availability.cluster-id"] = mine["high-availability.cluster-id"]
    leads, waits = Candidates(mine), Candidates(other)
    leads.win().publish("tcp://127.0.0.1:1")
    key_file = other["high-availability.key-file"]
    said = f"in ZooKeeper's /.* is led by the JobManager at tcp://127.0.0.1:1, .*another key than {key_file}"
    with pytest.raises(AnotherCluster, match=said):
        waits.win()
    leads.close()
    waits.win()
    waits.close()


def test_a_leader_whose_session_has_ended_hears_of_it(candidates: Candidates) -> None:
    leader, why, heard = candidates.win(), [], threading.Event()
    leader.on_lost(lambda text: (why.append(text), heard.set()))
    expire(leader)
    assert heard.wait(30)
    assert not leader.is_sure
    with pytest.raises(LostLeadership):
        leader.read()
    leader.on_lost(why.append)
    assert len(why) == 2


def test_a_frozen_leader_finds_its_time_over_before_another_can_act(candidates: Candidates) -> None:
    clock = [0.0]
    frozen = ZooKeeperElection(candidates.services.settings, lambda: clock[0]).campaign(threading.Event())
    assert frozen is not None
    assert frozen.is_sure
    clock[0] += candidates.services.settings.session_timeout_ms / 1000 * 0.7
    assert not frozen.is_sure
    for act in (frozen.read, lambda: frozen.write("job", b"late"), lambda: frozen.publish("tcp://127.0.0.1:1")):
        with pytest.raises(LostLeadership):
            act()
    frozen.resign()


def test_who_leads_is_found_and_the_next_one_too(candidates: Candidates) -> None:
    retrieval, heard, changed = candidates.services.retrieval(), [], threading.Semaphore(0)

    def hear(leader: Leader | None) -> None:
        heard.append(leader)
        changed.release()

    retrieval.on_change(hear)
    for number in (1, 2, 3):
        leader = candidates.win()
        leader.publish(f"tcp://127.0.0.1:{number}")
        while heard[-1] != Leader(f"tcp://127.0.0.1:{number}", leader.session):
            changed.acquire()
        expire(leader) if number == 2 else leader.resign()
    retrieval.close()
    assert [each.address[-1] for each in heard if each is not None] == ["1", "2", "3"]


def test_what_stands_in_our_place_and_is_not_ours_is_named_and_left(candidates: Candidates, nodes: KazooClient) -> None:
    nodes.ensure_path("/")
    nodes.create("/format", b"somebody's")
    with pytest.raises(NotOurs, match=r"holds what Understudy has not written: b\"somebody's\".*cluster-id"):
        candidates.win()
    assert nodes.get("/format")[0] == b"somebody's"


@pytest.mark.parametrize("found", [b"", b"half", b"UHA1....not a record"])
def test_a_node_among_the_jobs_that_is_none_is_named_left_and_harms_no_other(
    candidates: Candidates, nodes: KazooClient, caplog: pytest.LogCaptureFixture, found: bytes
) -> None:
    first = candidates.kept()
    first.add_job(submitted("whole"))
    candidates.leaders[-1].resign()
    nodes.create("/jobs/foreign", found)
    second = candidates.kept()
    assert [second.is_kept(JobId(name)) for name in ("whole", "foreign")] == [True, False]
    assert "a job that is kept cannot go on, and is left as it is" in caplog.text
    assert "/jobs/foreign" in caplog.text
    assert nodes.get("/jobs/foreign")[0] == found


def test_a_node_that_names_no_leader_leads_nobody_there(candidates: Candidates, nodes: KazooClient) -> None:
    candidates.win().resign()
    nodes.create("/leader/candidate-0000000000", b"tcp://evil:1")
    nodes.create("/leader/notes", b"")
    changed = threading.Semaphore(0)
    retrieval = candidates.services.retrieval()
    retrieval.on_change(lambda _: changed.release())
    nodes.delete("/leader/candidate-0000000000")
    leader = candidates.win()
    leader.publish("tcp://127.0.0.1:1")
    while retrieval.leader() is None:
        changed.acquire()
    assert retrieval.leader() == Leader("tcp://127.0.0.1:1", leader.session)
    retrieval.close()


def test_where_no_zookeeper_answers_it_says_where_it_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.runtime.high_availability.zookeeper_client.CONNECT_SECONDS", 0.2)
    services = HighAvailabilityServices(HighAvailabilitySettings.of(config(tmp_path, "127.0.0.1:1")))
    attempts: tuple[Callable[[], object], ...] = (
        services.retrieval,
        lambda: services.election().campaign(threading.Event()),
    )
    for attempt in attempts:
        with pytest.raises(NotReachable, match=r"ZooKeeper at 127.0.0.1:1 does not answer .* is it running"):
            attempt()


def test_a_silence_is_logged_once_with_what_was_met_and_not_with_each_question(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever waits to lead asks ten times a second; kazoo's errors mostly have no text."""
    silence = zookeeper_client.Silence(HighAvailabilitySettings.of(config(tmp_path, "127.0.0.1:1")))
    with caplog.at_level("INFO"):
        for _ in range(20):
            silence.goes_on("a candidate", ConnectionLoss())
    (said,) = (each.getMessage() for each in caplog.records)
    assert said == "a candidate waits for ZooKeeper: ConnectionLoss"
