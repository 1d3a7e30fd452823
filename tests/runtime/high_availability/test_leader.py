"""FixedLeader: who looks for the leader of a cluster without a successor gets the one there is."""

from __future__ import annotations

from understudy.messages import LeaderSessionId
from understudy.runtime.high_availability import FixedLeader, Leader


def test_a_listener_is_called_back_with_the_one_leader_at_once() -> None:
    leader, heard = Leader("tcp://127.0.0.1:4711", LeaderSessionId("session-1")), []
    retrieval = FixedLeader(leader)
    retrieval.on_change(heard.append)
    retrieval.close()
    assert (heard, retrieval.leader()) == ([leader], leader)
