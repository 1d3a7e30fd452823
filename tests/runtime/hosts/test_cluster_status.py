"""ClusterStatus: who leads, who waits to lead, and what is missing, of what the hosts and the leader say."""

from __future__ import annotations

from understudy.messages import HostList
from understudy.runtime.hosts.cluster_status import Answer, Candidate, ClusterLeader, ClusterStatus, status_of
from understudy.runtime.hosts.machines import Found
from understudy.runtime.hosts.standing_process import ProcessState

LEADER = "tcp://node-2:7420"


def manager(pid: int, address: str = "", *, is_ready: bool = True) -> ProcessState:
    return ProcessState("jobmanager", "jobmanager", pid, address, f"/log/{pid}.log", is_ready)


def status(found: list[Found], answer: Answer) -> ClusterStatus:
    return status_of(found, {(each.host, each.role): 1 for each in found}, answer)


def test_the_leader_and_those_that_wait_to_lead_are_named() -> None:
    """node-3 was deposed, and is not through with it."""
    found = [
        Found("node-1", "jobmanager", (manager(1),)),
        Found("node-2", "jobmanager", (manager(2, LEADER),)),
        Found("node-3", "jobmanager", (manager(3, "tcp://node-3:7420"),)),
    ]
    seen = status(found, Answer(LEADER, HostList(()), ()))
    assert seen.leader == ClusterLeader("node-2", 2, LEADER)
    assert seen.candidates == (Candidate("node-1", 1), Candidate("node-3", 3))
    assert [each.state for each in seen.processes] == ["waits to lead", "leads", "waits to lead"]
    assert seen.is_whole


def test_a_leader_that_none_of_the_hosts_runs_is_named_by_its_address() -> None:
    seen = status([Found("node-1", "jobmanager", (manager(1),))], Answer(LEADER, HostList(()), ()))
    assert seen.leader == ClusterLeader("node-2", None, LEADER)
    assert seen.candidates == (Candidate("node-1", 1),)


def test_when_nobody_leads_those_that_wait_are_named_and_the_reason_once() -> None:
    found = [
        Found("node-1", "jobmanager", (manager(1),)),
        Found("node-2", "jobmanager", (manager(2, is_ready=False),)),
        Found("node-3", "jobmanager", (manager(3, LEADER),)),
    ]
    seen = status(found, Answer("", HostList(()), (), "nobody has led for 5 s"))
    assert (seen.leader, seen.candidates) == (None, (Candidate("node-1", 1),))
    assert [each.state for each in seen.processes] == ["waits to lead", "starts", "alive, does not answer"]
    assert (seen.no_answer, seen.is_whole) == ("nobody has led for 5 s", False)
