"""What somebody else does to our place of a real ZooKeeper: it is named, with what to do, and never costs a job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NotEmptyError
from kazoo.security import make_acl

from understudy import AccessDenied, CannotTakeOver
from understudy.messages import JobId, JobStatus
from understudy.runtime.high_availability.errors import NotOurs, NotReachable
from understudy.runtime.high_availability.leader import Leader
from understudy.runtime.high_availability.leadership import Leadership

from ...contracts.high_availability import submitted
from ...systems.zookeeper import Ensemble
from .clusters import PATIENT_ZOOKEEPER_MS, Candidates, config

pytestmark = pytest.mark.processes


@pytest.fixture
def candidates(tmp_path: Path, zookeeper: Ensemble) -> Iterator[Candidates]:
    made = Candidates(config(tmp_path, zookeeper.quorum, timeout_ms=PATIENT_ZOOKEEPER_MS))
    yield made
    made.close()


@pytest.fixture
def nodes(candidates: Candidates, zookeeper: Ensemble) -> Iterator[KazooClient]:
    """A client of somebody else, below the cluster's root."""
    settings = candidates.services.settings
    client = KazooClient(f"{zookeeper.quorum}{settings.path_root}/{settings.cluster_id}")
    client.start()
    yield client
    client.stop()
    client.close()


def remove(nodes: KazooClient, path: str) -> None:
    """With all below it, however fast others put back what is theirs."""
    while True:
        with suppress(NotEmptyError):
            nodes.delete(path, recursive=True)
            return


@pytest.mark.parametrize("data", [b"", b"UHA1 half", bytes(900_000), b"\x80\x04pickle"], ids=len)
def test_a_record_that_was_spoiled_refuses_its_job_by_name_and_loses_nothing(
    candidates: Candidates, nodes: KazooClient, data: bytes
) -> None:
    """Whoever submits it again would start it from the beginning."""
    candidates.kept().add_job(submitted("spoiled"))
    candidates.leaders[-1].resign()
    nodes.set("/jobs/spoiled", data)
    for _ in range(2):
        kept = candidates.kept()
        kept.remove_leftovers()
        (refused,) = kept.kept()
        assert isinstance(refused, CannotTakeOver)
        assert refused.job == "spoiled"
        for said in ("'spoiled' (spoiled) of an earlier leader cannot go on", "/jobs/spoiled", "after removing"):
            assert said in str(refused)
        assert not kept.is_kept(JobId("spoiled"))
        candidates.leaders[-1].resign()
    assert nodes.get("/jobs/spoiled")[0] == data


def test_a_record_under_the_name_of_another_job_is_none(
    candidates: Candidates, nodes: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    candidates.kept().add_job(submitted("one"))
    candidates.leaders[-1].resign()
    nodes.create("/jobs/other", nodes.get("/jobs/one")[0])
    kept = candidates.kept()
    assert [kept.is_kept(JobId(name)) for name in ("one", "other")] == [True, False]
    kept.remove_job(JobId("one"), JobStatus.FINISHED)
    assert nodes.get_children("/jobs") == ["other"]
    assert "/jobs/other" in caplog.text


def test_a_candidate_that_belongs_to_no_session_is_named_instead_of_waited_for(
    candidates: Candidates, nodes: KazooClient
) -> None:
    candidates.win().resign()
    nodes.create("/leader/candidate-0000000000", b"by hand")
    with pytest.raises(NotOurs, match=r"/leader/candidate-0000000000 holds .*no session.*Remove it"):
        candidates.win()
    nodes.delete("/leader/candidate-0000000000")
    candidates.win()


def test_a_folder_that_was_removed_while_a_candidate_waits_is_made_again(
    candidates: Candidates, nodes: KazooClient
) -> None:
    first = candidates.win()
    won: list[Leadership | None] = []
    waiting = threading.Thread(target=lambda: won.append(candidates.services.election().campaign(threading.Event())))
    waiting.start()
    while len(nodes.get_children("/leader")) < 2:
        pass
    remove(nodes, "/leader")
    waiting.join(60)
    assert won[0] is not None
    candidates.leaders.append(won[0])
    assert not first.is_sure or won[0].session != first.session


def test_who_follows_survives_a_folder_that_was_removed(candidates: Candidates, nodes: KazooClient) -> None:
    candidates.win().resign()
    retrieval, changed = candidates.services.retrieval(), threading.Semaphore(0)
    retrieval.on_change(lambda _: changed.release())
    remove(nodes, "/leader")
    leader = candidates.win()
    leader.publish("tcp://127.0.0.1:1")
    while retrieval.leader() is None:
        assert changed.acquire(timeout=60)
    assert retrieval.leader() == Leader("tcp://127.0.0.1:1", leader.session)
    retrieval.close()


def test_what_cannot_be_written_or_read_names_its_node(candidates: Candidates, nodes: KazooClient) -> None:
    leader = candidates.win()
    leader.write("job", b"record")
    nodes.create("/jobs/job/notes", b"somebody's")
    with pytest.raises(NotReachable, match=r"refuses to change .*/jobs/job: NotEmptyError"):
        leader.remove("job")
    assert dict(leader.read()) == {"job": b"record"}
    remove(nodes, "/jobs")
    with pytest.raises(NotOurs, match=r"/jobs .*is gone"):
        leader.read()


def test_the_folder_of_records_is_made_again_by_the_leader_that_writes_one(
    candidates: Candidates, nodes: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Else its next one knows of no job, and who submits one again starts it from the beginning."""
    leader = candidates.win()
    leader.write("job", b"record")
    remove(nodes, "/jobs")
    with caplog.at_level(logging.WARNING):
        leader.write("job", b"newer record")
    assert dict(leader.read()) == {"job": b"newer record"}
    assert "/jobs was removed by somebody, and is made again" in caplog.text


def test_a_foreign_folder_among_the_jobs_harms_nobody(
    candidates: Candidates, nodes: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    candidates.kept().add_job(submitted("whole"))
    candidates.leaders[-1].resign()
    nodes.create("/jobs/a folder/of somebody", b"", makepath=True)
    with caplog.at_level(logging.ERROR):
        kept = candidates.kept()
    assert [each.submitted.graph.name for each in kept.kept() if not isinstance(each, CannotTakeOver)] == ["whole"]
    assert "/jobs/a folder" in caplog.text


def test_nodes_with_an_owner_are_readable_and_writable_for_that_user_alone(tmp_path: Path, zookeeper: Ensemble) -> None:
    settings = config(tmp_path, zookeeper.quorum, timeout_ms=PATIENT_ZOOKEEPER_MS)
    place = f"/{settings['high-availability.cluster-id']}"
    owner, other = tmp_path / "owner", tmp_path / "other"
    for file in (owner, other):
        file.write_text(f"{file.name}:secret of {file.name}")
        file.chmod(0o600)
    root, auth = "high-availability.zookeeper.path.root", "high-availability.zookeeper.auth-file"
    mine = Candidates({**settings, root: f"/owned{place}", auth: str(owner)})
    client = KazooClient(zookeeper.quorum)
    client.start()
    try:
        mine.kept().add_job(submitted("secret"))
        for path in ("", "/format", "/leader", "/jobs", "/jobs/secret"):
            with pytest.raises(NoAuthError):
                client.get(f"/owned{place}{place}{path}")
            with pytest.raises(NoAuthError):
                client.set(f"/owned{place}{place}{path}", b"mine")
        mine.leaders[-1].resign()
        assert mine.kept().is_kept(JobId("secret"))
        for more, who in (({auth: str(other)}, "the user of .*/other"), ({}, "somebody without .*auth-file")):
            stranger = Candidates({**settings, root: f"/owned{place}", **more})
            with pytest.raises(AccessDenied, match=f"{who}.* may not do there"):
                stranger.win()
            with pytest.raises(AccessDenied, match=f"{who}.* may not do there"):
                stranger.services.retrieval()
    finally:
        mine.close()
        client.stop()
        client.close()


def test_a_leader_whose_nodes_somebody_has_closed_to_it_names_the_node_and_its_acl(
    candidates: Candidates, nodes: KazooClient
) -> None:
    """A record is refused by its own ACL when it is written, and by its folder's when it is made or removed."""
    leader = candidates.win()
    leader.write("orders", b"record")
    try:
        nodes.set_acls("/jobs/orders", [make_acl("world", "anyone", read=True, admin=True)])
        with pytest.raises(AccessDenied, match=r"/jobs/orders has the ACL world:anyone:ra, so .* may not do there"):
            leader.write("orders", b"newer")
        nodes.set_acls("/jobs", [make_acl("world", "anyone", read=True, admin=True)])
        for refused in (lambda: leader.write("others", b"record"), lambda: leader.remove("orders")):
            with pytest.raises(AccessDenied, match=r"/jobs has the ACL world:anyone:ra, so .* may not do there"):
                refused()
    finally:
        for path in ("/jobs", "/jobs/orders"):
            nodes.set_acls(path, [make_acl("world", "anyone", all=True)])
    leader.write("orders", b"newer")
    leader.write("others", b"record")
