"""A handle of a job, and its client."""

from __future__ import annotations

import pytest

from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.clusters.job_handle import JobHandle

from .clients import Client, Swallow, Worst, translated


@pytest.fixture
def env() -> StreamEnvironment:
    return StreamEnvironment()


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def job(client: Client, env: StreamEnvironment) -> JobHandle:
    stream = env.from_collection([1], name="flights").key_by(0).process(Worst, name="worst delay")
    stream.sink_to(Swallow, name="out")
    return JobHandle(client, translated(env, job_id="job-7", name="worst-delay"))
