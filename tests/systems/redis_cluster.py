"""A Redis Cluster of one's own: three masters, each with a third of the slots, and one replica of the first master.

`redis_cluster` is one for all tests of a worker; `cluster` gives it empty to each test. `kill_first_master` ends the
first as a crash does: its replica takes over after about two seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.free_port import free_port

from . import SystemMissing, given
from .redis import RedisServer

_SLOTS = ((0, 5460), (5461, 10922), (10923, 16383))
_WAIT_S = 60
_OPTIONS = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0")


class RedisClusterServers:
    """Raises SystemMissing where there is no server to start."""

    def __init__(self) -> None:
        self.servers: list[RedisServer] = []
        try:
            for _ in range(4):
                self.servers.append(RedisServer(options=(*_OPTIONS, "--cluster-port", str(free_port()))))
            self._join()
        except BaseException:
            self.stop()
            raise
        from redis.cluster import ClusterNode, RedisCluster

        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers[1:])
        nodes = [ClusterNode("127.0.0.1", server.port) for server in self.servers[1:]]
        self.client: Any = RedisCluster(startup_nodes=nodes, protocol=2, decode_responses=True)

    def _join(self) -> None:
        first, replica = self.servers[0], self.servers[3]
        for epoch, (server, slots) in enumerate(zip(self.servers, _SLOTS, strict=False), 1):
            server.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", epoch)
            server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
        for server in self.servers[1:]:
            bus = first.client.config_get("cluster-port")["cluster-port"]
            server.client.execute_command("CLUSTER", "MEET", "127.0.0.1", first.port, bus)
        first_id = first.client.execute_command("CLUSTER", "MYID")
        wait_for(lambda: first_id in str(replica.client.execute_command("CLUSTER NODES")), "the replica meets")
        replica.client.execute_command("CLUSTER", "REPLICATE", first_id)
        wait_for(lambda: all(_is_ok(server) for server in self.servers), "all slots are covered")
        wait_for(lambda: replica.client.info("replication")["master_link_status"] == "up", "the replica follows")

    def key_of(self, index: int, stem: str = "key") -> str:
        """A key whose slot the master with this index had in the beginning."""
        low, high = _SLOTS[index]
        return next(f"{stem}-{n}" for n in range(10_000) if low <= self.client.keyslot(f"{stem}-{n}") <= high)

    def kill_first_master(self) -> None:
        self.servers[0].kill()

    def wait_for_takeover(self) -> None:
        replica = self.servers[3].client
        wait_for(lambda: replica.info("replication")["role"] == "master", "the replica takes over")
        wait_for(lambda: all(_is_ok(server) for server in self.servers[1:]), "all slots are covered again")

    def wait_for_replica(self) -> None:
        """Until it has all that its master has."""
        first, replica = self.servers[0].client, self.servers[3].client
        wait_for(
            lambda: replica.info("replication")["slave_repl_offset"] >= first.info("replication")["master_repl_offset"],
            "the replica has it all",
        )

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


def wait_for(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _WAIT_S
    while not holds():
        if time.monotonic() > until:
            raise SystemMissing("Redis Cluster", f"{what}: not within {_WAIT_S} s")
        time.sleep(0.02)


def _is_ok(server: RedisServer) -> bool:
    return bool(server.client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[RedisClusterServers]:
    servers = given(RedisClusterServers)
    yield servers
    servers.stop()


@pytest.fixture
def cluster(redis_cluster: RedisClusterServers) -> RedisClusterServers:
    """With no keys in it."""
    redis_cluster.client.flushall()
    return redis_cluster
