"""From a stream of Redis to another one, exactly once, when a TaskManager and the server are killed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from understudy import LocalCluster

from ...systems import given
from ...systems.redis import RedisServer
from .jobs import WAIT_S, Witness, environment, eventually

COUNT = 1000


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """One of the test's own, as it is killed."""
    server = given(RedisServer)
    yield server
    server.stop()


@pytest.mark.chaos
def test_each_entry_comes_out_once(shared_cluster: LocalCluster, redis: RedisServer) -> None:
    env = environment(checkpoint_interval_ms=100, batch_rows=20)
    entries = env.from_redis(redis.url, ["in-0", "in-1"], parallelism=2)
    entries.map(lambda entry: {"n": entry["fields"]["n"]}).to_redis_stream(redis.url, "out")
    job = shared_cluster.submit(env)
    witness = Witness(job)

    def add(part: int) -> None:
        for number in range(part * COUNT // 4, (part + 1) * COUNT // 4):
            redis.client.xadd(f"in-{number % 2}", {"n": number})
        eventually(lambda: redis.client.xlen("out") >= (part + 1) * COUNT // 4, "what was added")

    add(0)
    witness.kill(random.choice(list(witness.pids(2).values())))
    add(1)
    redis.kill()
    redis.start()
    add(2)
    add(3)
    job.stop().result()
    assert job.wait(timeout=WAIT_S).restarts >= 1
    assert Counter(int(fields["n"]) for _, fields in redis.client.xrange("out")) == Counter(range(COUNT))
