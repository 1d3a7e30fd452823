"""RemoteCluster: another process's JobManager, from Python. The command line's tests show the processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy import CurveKeys, InvalidSetting, LocalCluster
from understudy.messages import JobId, JobStatus
from understudy.runtime.clusters.job_errors import SavepointFailed, SavepointNotDisposed
from understudy.runtime.clusters.remote_cluster import RemoteCluster
from understudy.runtime.clusters.remote_errors import KeyRefused, NoJobManager, NoSuchJob, Refused
from understudy.runtime.system.errors import InvalidAddress

from .jobs import counting, environment, eventually

Start = Callable[..., LocalCluster]


def test_a_client_sees_the_job_and_orders_its_end(start_cluster: Start) -> None:
    cluster = start_cluster(1)
    env = environment()
    counting(env, None, 1_000.0).print()
    job = cluster.submit(env, name="numbers")
    with RemoteCluster(cluster.address, cluster._curve) as client:
        assert client.find("numbers").job_id == job.job_id
        eventually(lambda: client.checkpoints(job.job_id).completed > 0, "a checkpoint")
        with pytest.raises(SavepointFailed, match="nosuch"):
            client.trigger_savepoint(JobId("nosuch")).result()
        with pytest.raises(SavepointNotDisposed, match="nosuch"):
            client.dispose_savepoint("jobmanager://savepoints/nosuch").result()
        with pytest.raises(Refused, match="nosuch"):
            client.details(JobId("nosuch"))
        with pytest.raises(NoSuchJob):
            client.find("nosuch")
        client.cancel(job.job_id)
        eventually(lambda: client.details(job.job_id).status is JobStatus.CANCELED, "the job's end")
        assert [each.status for each in client.jobs()] == [JobStatus.CANCELED]


def test_a_client_with_another_key_is_refused(shared_cluster: LocalCluster) -> None:
    with RemoteCluster(shared_cluster.address, CurveKeys.generate()) as client, pytest.raises(KeyRefused):
        client.jobs()


def test_a_client_of_nobody_is_told_so(start_cluster: Start) -> None:
    cluster = start_cluster(1)
    address, keys = cluster.address, cluster._curve
    cluster.close()
    with RemoteCluster(address, keys) as client, pytest.raises(NoJobManager, match=address):
        client.jobs()


def test_what_is_no_address_is_refused_at_once() -> None:
    with pytest.raises(InvalidAddress, match="tcp://host:port"):
        RemoteCluster("localhost:1", CurveKeys.generate())


@pytest.mark.parametrize("name", ["answer_timeout_ms", "savepoint_timeout_ms"])
def test_a_timeout_that_is_none_is_refused_by_name(name: str) -> None:
    for value in ("5", 0, None, float("inf")):
        wrong: dict[str, Any] = {name: value}
        with pytest.raises(InvalidSetting, match=rf"^{name}: wanted a number of milliseconds"):
            RemoteCluster("tcp://127.0.0.1:1", CurveKeys.generate(), **wrong)


def test_a_client_that_was_not_started_says_how_to() -> None:
    with pytest.raises(RuntimeError, match="with RemoteCluster"):
        RemoteCluster("tcp://127.0.0.1:1", CurveKeys.generate()).jobs()
