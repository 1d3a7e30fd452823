"""What a handle says of a job that has ended, to somebody who has not waited for it, or has closed its cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from understudy import JobFailed, JobHandle, JobLost, LocalCluster
from understudy.messages import JobStatus

from .jobs import WAIT_S, environment, eventually


def failing(cluster: LocalCluster) -> JobHandle:
    env = environment(restart_strategy=None, checkpoint_interval_ms=None)
    env.from_collection([1]).map(lambda record: record / 0).collect(name="out")
    return cluster.submit(env)


def test_results_of_a_job_that_has_failed_are_warned_of_once(shared_cluster: LocalCluster) -> None:
    job = failing(shared_cluster)
    eventually(lambda: job.status is JobStatus.FAILED, "the failure")
    wanted = r"job 'job' has failed, .* had committed by then: .*ZeroDivisionError.*; job\.wait\(\) raises the error"
    with pytest.warns(RuntimeWarning, match=wanted) as caught:
        assert job.results("out") == []
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert job.results("out") == []


def test_so_is_its_table(shared_cluster: LocalCluster) -> None:
    job = failing(shared_cluster)
    eventually(lambda: job.status is JobStatus.FAILED, "the failure")
    with pytest.warns(RuntimeWarning, match="has failed") as caught:
        assert len(job.to_pandas("out")) == 0
    assert caught[0].filename == __file__


def test_who_has_waited_knows_of_the_failure(shared_cluster: LocalCluster) -> None:
    job = failing(shared_cluster)
    with pytest.raises(JobFailed):
        job.wait(WAIT_S)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert job.results("out") == []


def test_details_outlive_the_cluster_where_the_end_is_known(start_cluster: Callable[..., LocalCluster]) -> None:
    cluster = start_cluster(1)
    env = environment()
    env.from_collection([1]).collect(name="out")
    job, failed = cluster.submit(env), failing(cluster)
    job.wait(WAIT_S)
    eventually(lambda: failed.status is JobStatus.FAILED, "the failure")
    cluster.close()
    assert job.details().status is JobStatus.FINISHED
    for asked in (job.checkpoint_history, job.request_details().result):
        with pytest.raises(JobLost, match="was finished when its cluster went away: the cluster was closed"):
            asked()
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
        failed.results("out")


def test_results_that_come_at_the_end_only_are_said_to_be_missing_once(shared_cluster: LocalCluster) -> None:
    env = environment(checkpoint_interval_ms=None)
    env.generate(lambda index: index, records_per_second=100).collect(name="out")
    job = shared_cluster.submit(env)
    with pytest.warns(RuntimeWarning, match=r"job\.results\('out'\): .*has not ended.*job\.wait\(\) first") as caught:
        assert job.results("out") == []
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert job.results("out") == []
    job.cancel().result(WAIT_S)
