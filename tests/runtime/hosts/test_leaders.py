"""How a client that is made finds the leader, and what it says while it waits for one."""

from __future__ import annotations

import pytest

from understudy.messages import LeaderSessionId
from understudy.runtime.clusters.remote_errors import NoJobManager
from understudy.runtime.high_availability import FixedLeader, Leader
from understudy.runtime.high_availability.leader import LeaderChanged
from understudy.runtime.hosts.leaders import first_address
from understudy.runtime.hosts.settings import HostSettings

SETTINGS = HostSettings(recovery_mode="storage", storage_dir="/nowhere", key_file="/nowhere/key")


class Nobody:
    """Nobody leads."""

    def leader(self) -> None:
        return None

    def on_change(self, callback: LeaderChanged) -> None:
        callback(None)

    def close(self) -> None:
        """There is nothing to close."""


def test_after_a_second_without_a_leader_one_line_says_what_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(NoJobManager, match=r"no JobManager has led cluster 'default' for 1\.2 s"):
        first_address(Nobody(), SETTINGS, 1.2)
    assert caplog.messages == [
        "no JobManager leads cluster 'default' (recovery.mode storage): waiting for one, 1.2 s at most"
    ]


def test_a_leader_that_is_there_is_taken_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    leader = FixedLeader(Leader("tcp://127.0.0.1:1", LeaderSessionId("one")))
    assert first_address(leader, SETTINGS, 1.2) == "tcp://127.0.0.1:1"
    assert caplog.messages == []
