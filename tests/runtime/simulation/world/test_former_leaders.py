"""What a TaskManager says to a leader of before is nothing to the one that leads."""

from __future__ import annotations

import pytest

from understudy import StreamEnvironment
from understudy.messages import Heartbeat, LeaderSessionId, LeaderSessionMessage, TaskManagerFailing, TaskManagerId
from understudy.runtime.simulation.world.frame_text import FrameText
from understudy.testing import SimulatedCluster


def last_beat(cluster: SimulatedCluster) -> tuple[LeaderSessionId, TaskManagerId]:
    """Of a TaskManager: to which session, and whose it was."""
    said = [each.directed() for *_, details in cluster.trace.entries for each in details if isinstance(each, FrameText)]
    return [
        (session, TaskManagerId(beat.sender))
        for session, beat in said
        if session is not None and isinstance(beat, Heartbeat) and beat.sender != "job-manager"
    ][-1]


@pytest.mark.parametrize("is_current", [False, True])
def test_a_taskmanager_is_lost_only_where_it_says_so_to_this_leader(is_current: bool) -> None:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=500)
    env.generate(lambda index: index, 100, records_per_second=10).collect(name="out")
    with SimulatedCluster(task_managers=2, heartbeat_interval_ms=200) as cluster:
        job = cluster.submit(env)
        job.ready().result()
        cluster.run_for(1_500)
        session, sender = last_beat(cluster)
        said = TaskManagerFailing(sender, "its disk is full")
        cluster.job_manager.tell(LeaderSessionMessage(session if is_current else LeaderSessionId("before"), said))
        cluster.run_for(1_500)
        assert job.details().restarts == is_current
        job.wait()
        assert sorted(job.results("out")) == list(range(100))
