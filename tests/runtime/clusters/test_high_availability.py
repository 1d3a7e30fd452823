"""A JobManager keeps its jobs by whatever HighAvailability it is given, one that blocks too."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import StreamEnvironment
from understudy.messages import CheckpointId, JobId, JobStatus, LeaderSessionId, SubmitJob
from understudy.runtime.simulation.world.cluster import SimulatedCluster
from understudy.runtime.system import ActorSystem
from understudy.state.checkpoints.checkpoint_ids import FIRST_CHECKPOINT_ID
from understudy.state.checkpoints.high_availability import HighAvailability, KeptJob, StandaloneHighAvailability
from understudy.state.errors import LostLeadership


class Service(StandaloneHighAvailability):
    """As one behind a network: it may block, and may have another leader."""

    may_block = True

    def __init__(self, session: LeaderSessionId) -> None:
        super().__init__(session)
        self.said: list[tuple[Any, ...]] = []
        self.has_another_leader = False
        self.unreachable = 0

    def add_job(self, submitted: SubmitJob, first_id: CheckpointId = FIRST_CHECKPOINT_ID) -> KeptJob:
        if self.has_another_leader:
            raise LostLeadership(self.session)
        self.said.append(("add", submitted.graph.job_id, first_id))
        return super().add_job(submitted, first_id)

    def remove_job(self, job_id: JobId, status: JobStatus) -> None:
        if self.unreachable:
            self.unreachable -= 1
            raise OSError("no way to the service")
        self.said.append(("remove", job_id, status))
        super().remove_job(job_id, status)


class ServedCluster(SimulatedCluster):
    service: Service

    def _make_high_availability(self, system: ActorSystem) -> HighAvailability:
        self.service = Service(LeaderSessionId(system.new_id("session")))
        return self.service


def numbers(records: int = 20, **options: Any) -> StreamEnvironment:
    env = StreamEnvironment(**{"checkpoint_interval_ms": 500, **options})
    env.from_collection(range(records), records_per_second=10.0).collect(name="out")
    return env


def test_a_job_is_kept_before_its_client_is_answered_and_removed_when_it_has_ended() -> None:
    with ServedCluster(1) as cluster:
        job = cluster.submit(numbers())
        service = cluster.service
        assert service.said == [("add", job.job_id, 1)]
        assert job.wait().status is JobStatus.FINISHED
        assert job.results("out") == list(range(20))
        cluster.run_for(5_000)
        assert service.said[1:] == [("remove", job.job_id, JobStatus.FINISHED)]


def test_removing_is_tried_again_while_the_service_cannot_be_reached() -> None:
    with ServedCluster(1) as cluster:
        job = cluster.submit(numbers())
        cluster.service.unreachable = 2
        job.wait()
        cluster.run_for(30_000)
        assert cluster.service.said[1:] == [("remove", job.job_id, JobStatus.FINISHED)]


def test_a_leader_that_was_deposed_starts_no_job() -> None:
    with ServedCluster(1) as cluster:
        cluster.service.has_another_leader = True
        with pytest.raises(LostLeadership, match="another JobManager leads; nothing was changed"):
            cluster.submit(numbers())
        assert cluster.service.said == []


def test_a_job_that_starts_from_a_savepoint_has_ids_after_those_of_the_savepoint() -> None:
    with ServedCluster(1) as cluster:
        job = cluster.submit(numbers())
        cluster.run_for(1_200)
        path = job.cancel_with_savepoint().result(timeout=10)
        before = job.details().completed_checkpoints
        assert before > 0
        again = cluster.submit(numbers(), from_savepoint=path)
        what, job_id, first_id = next(said for said in reversed(cluster.service.said) if said[0] == "add")
        assert (what, job_id, first_id > before) == ("add", again.job_id, True)
