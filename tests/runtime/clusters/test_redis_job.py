"""From streams of Redis to another one, exactly once, when a TaskManager and the server are killed; and on a Redis
Cluster, when a TaskManager and a master are killed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from understudy import LocalCluster

from ...systems import given
from ...systems.redis import RedisServer
from ...systems.redis_cluster import RedisClusterServers
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


@pytest.fixture
def redis_cluster() -> Iterator[RedisClusterServers]:
    """One of the test's own, as a master of it is killed."""
    servers = given(RedisClusterServers)
    yield servers
    servers.stop()


@pytest.mark.chaos
def test_each_entry_comes_out_once_when_a_replica_takes_over(
    shared_cluster: LocalCluster, redis_cluster: RedisClusterServers
) -> None:
    """Input and output have slots of the master that dies; it dies when its replica has all."""
    client = redis_cluster.client
    names, out = [redis_cluster.key_of(index, "in") for index in range(3)], redis_cluster.key_of(0, "out")
    env = environment(checkpoint_interval_ms=100, batch_rows=20)
    entries = env.from_redis(redis_cluster.url, names, parallelism=2)
    entries.map(lambda entry: {"n": entry["fields"]["n"]}).to_redis_stream(redis_cluster.url, out)
    job = shared_cluster.submit(env)
    witness = Witness(job)

    def add(part: int) -> None:
        for number in range(part * 100, (part + 1) * 100):
            client.xadd(names[number % 3], {"n": number})

    add(0)
    eventually(lambda: client.xlen(out) >= 100, "what was added")
    witness.kill(random.choice(list(witness.pids(2).values())))
    add(1)
    eventually(lambda: client.xlen(out) >= 200, "what was added")
    redis_cluster.wait_for_replica()
    redis_cluster.kill_first_master()
    redis_cluster.wait_for_takeover()
    client.nodes_manager.initialize()
    add(2)
    eventually(lambda: client.xlen(out) >= 300, "what was added")
    job.stop().result()
    assert job.wait(timeout=WAIT_S).restarts >= 1
    assert Counter(int(fields["n"]) for _, fields in client.xrange(out)) == Counter(range(300))
