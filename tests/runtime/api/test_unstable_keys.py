"""A key of `hash` or `id` is another one in the next process: key_by says so. A random one ends the job at once."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest

from understudy import JobFailed, StreamEnvironment
from understudy.testing import SimulatedCluster


def by_helper(record: Any) -> int:
    return sum(hash(part) for part in record)


@pytest.mark.parametrize(
    ("key", "called"),
    [
        (lambda record: hash(record["a"]) % 10, "hash"),
        (lambda record: id(record), "id"),
        (by_helper, "hash"),
        (hash, "hash"),
    ],
)
def test_it_is_said_with_its_line(key: Any, called: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        StreamEnvironment().from_collection([{"a": "x"}]).key_by(key)
    (said,) = caplog.messages
    assert f"takes {called}(...) as a key, which is another one in each new process" in said
    assert ("test_unstable_keys.py:" in said) == (key is not hash)


def test_a_key_of_that_name_is_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        stream = StreamEnvironment().from_collection([{"id": "x", "hash": 1}])
        stream.key_by("id", "hash")
        stream.key_by(lambda record: (record["id"], record.hash))
    assert caplog.messages == []


def test_a_key_that_is_another_one_each_time_ends_the_job_at_once() -> None:
    """As of those who salt a hot key in key_by; a restart would only draw again."""
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    salted = env.from_collection([{"a": "x"}]).key_by(lambda record: (record["a"], random.random()))
    salted.reduce(lambda one, other: other, name="newest").collect(name="out")
    with SimulatedCluster(2) as cluster:
        job = cluster.submit(env)
        with pytest.raises(
            JobFailed, match=r"failed once .*: UnstableKey: the key function \(\S+test_unstable_keys.py:"
        ):
            job.wait(60)
