"""Sinks and the source on a real Redis Cluster of three masters: the kit's contract, wrong URLs, and a takeover."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from understudy.actors.operators.collector import Collector
from understudy.actors.operators.marker import Marker
from understudy.runtime.connectors import (
    RedisListSink,
    RedisRefused,
    RedisStreamSink,
    RedisStreamSource,
    RedisUpsertSink,
)
from understudy.runtime.connectors.redis.connection import check_answer, may_pass
from understudy.testing import SinkContract

from ....systems import given
from ....systems.redis import RedisServer
from ....systems.redis_cluster import RedisClusterServers
from ..harness import Running
from .test_redis_stream_source import Attempt

OUTSIDE = ("redis",)


class _Contract(SinkContract):
    outside = OUTSIDE
    servers: ClassVar[RedisClusterServers]

    @pytest.fixture(autouse=True)
    def _with_servers(self, cluster: RedisClusterServers) -> None:
        type(self).servers = cluster

    def clear(self) -> None:
        self.servers.client.flushall()


@pytest.mark.drawn
@pytest.mark.slow
class TestRedisStreamSinkOnACluster(_Contract):
    def make_sink(self) -> RedisStreamSink:
        return RedisStreamSink(self.servers.url, "out")

    def contents(self) -> list[Any]:
        entries = self.servers.client.xrange("out")
        return [{"id": int(fields["id"]), "value": fields["value"]} for _, fields in entries]


@pytest.mark.drawn
class TestRedisListSinkOnACluster(_Contract):
    def make_sink(self) -> RedisListSink:
        return RedisListSink(self.servers.url, "out")

    def contents(self) -> list[Any]:
        return [json.loads(element) for element in self.servers.client.lrange("out", 0, -1)]


@pytest.mark.drawn
@pytest.mark.slow
class TestRedisUpsertSinkOnACluster(_Contract):
    guarantee = "upsert"

    def make_sink(self) -> RedisUpsertSink:
        return RedisUpsertSink(self.servers.url, key="id", prefix="{row}:")

    def contents(self) -> list[Any]:
        keys = self.servers.client.keys("{row}:*", target_nodes="primaries")
        found = [self.servers.client.hgetall(key) for key in keys]
        return [{"id": int(fields["id"]), "value": fields["value"]} for fields in found]


def test_hashes_go_to_all_masters_and_expire(cluster: RedisClusterServers) -> None:
    running = Running(RedisUpsertSink(cluster.url, key="id", prefix="row:", expire_ms=100_000))
    running.take(*({"id": number} for number in range(60)))
    running.checkpoint(1)
    assert all(server.client.dbsize() > 0 for server in cluster.servers[:3])
    assert [cluster.client.hget(f"row:{number}", "id") for number in range(60)] == [str(n) for n in range(60)]
    assert 0 < cluster.client.ttl("row:0") <= 100


def test_a_hash_takes_the_place_of_the_one_before_on_a_cluster_too(cluster: RedisClusterServers) -> None:
    running = Running(RedisUpsertSink(cluster.url, key="id", prefix="replaced:"))
    running.take({"id": 1, "old": "x"})
    running.checkpoint(1)
    running.take({"id": 1, "new": "y"})
    running.checkpoint(2)
    assert cluster.client.hgetall("replaced:1") == {"id": "1", "new": "y"}
    gone = Running(RedisUpsertSink(cluster.url, key="id", prefix="replaced:", deleted="gone"))
    gone.take({"id": 1, "gone": True})
    gone.checkpoint(1)
    assert not cluster.client.exists("replaced:1")


@pytest.mark.parametrize("key", ["out", "user:{7}:out", "a}{b}}", "{a{b}"])
def test_a_key_and_its_markers_lie_in_one_slot(cluster: RedisClusterServers, key: str) -> None:
    sink = Running(RedisListSink(cluster.url, key)).operator
    assert isinstance(sink, RedisListSink)
    sink.apply([[b'{"n": 1}']], Marker("s", "s-w", 1, 0))
    assert cluster.client.lrange(key, 0, -1) == ['{"n": 1}']
    assert sink.last_marker("s-w") == 1


@pytest.mark.parametrize("key", ["{}out", "a{b", "a}b", "{}{a}"])
def test_a_key_whose_markers_would_lie_in_another_slot_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"wanted a key without braces, or with one hash tag"):
        RedisListSink("redis+cluster://host", key)
    RedisListSink("redis://host", key)


def test_streams_in_several_slots_are_read_and_waited_for(cluster: RedisClusterServers) -> None:
    names = [cluster.key_of(index, "in") for index in range(3)]
    for name in names:
        cluster.client.xadd(name, {"n": 1})
    attempt = Attempt(cluster.url, names)
    try:
        assert {each["stream"] for each in attempt.take(3)} == set(names)
        recorded = attempt.recorded()
        for name in names:
            cluster.client.xadd(name, {"n": 2})
        assert attempt.numbers(3) == [2, 2, 2]
    finally:
        attempt.source.close()
    successor = Attempt(cluster.url, names, recorded=[recorded])
    try:
        assert successor.numbers(3) == [2, 2, 2]
    finally:
        successor.source.close()


def test_no_server_is_asked_for_the_list_of_all_commands(cluster: RedisClusterServers) -> None:
    """Its answer takes longer to read than all the rest of connecting."""
    for server in cluster.servers:
        server.client.config_resetstat()
    sink = Running(RedisListSink(cluster.url, "out")).operator
    assert isinstance(sink, RedisListSink)
    sink.apply([[b'{"n": 1}']], Marker("s", "s-w", 1, 0))
    asked = {each for server in cluster.servers for each in server.client.info("commandstats")}
    assert "cmdstat_rpush" in asked
    assert not {each for each in asked if each.startswith("cmdstat_command")}


def _all(url: str) -> list[Any]:
    return [RedisStreamSink(url, "out"), RedisUpsertSink(url, key="id"), RedisStreamSource(url, "in")]


def test_the_url_of_one_server_for_a_cluster_is_refused_and_says_which_is_wanted(
    cluster: RedisClusterServers,
) -> None:
    for server in cluster.servers:
        for each in _all(server.url):
            with pytest.raises(RedisRefused, match=r"is a node of a Redis Cluster.*give.*redis\+cluster://host"):
                each.check_at_submit(on_this_machine=True)


def test_one_servers_url_is_refused_at_work_too(cluster: RedisClusterServers) -> None:
    running = Running(RedisListSink(cluster.servers[0].url, cluster.key_of(1)))
    with pytest.raises(RedisRefused, match="is a node of a Redis Cluster"):
        running.operator.apply([[b'{"n": 1}']], Marker("s", "s-w", 1, 0))


def test_the_url_of_a_cluster_for_one_server_is_refused_and_says_which_is_wanted(redis: RedisServer) -> None:
    for each in _all(f"redis+cluster://127.0.0.1:{redis.port}"):
        with pytest.raises(RedisRefused, match=r"no node of a Redis Cluster.*wants a URL that begins with redis://"):
            each.check_at_submit(on_this_machine=True)


def test_a_cluster_that_fits_is_accepted_by_any_of_its_nodes(cluster: RedisClusterServers) -> None:
    for server in cluster.servers:
        for each in _all(f"redis+cluster://127.0.0.1:1,127.0.0.1:{server.port}/0"):
            each.check_at_submit(on_this_machine=True)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("redis+cluster://a:port", "host:port of one node"),
        ("redis+cluster://", "host:port of one node"),
        ("redis+cluster://ann:hunter2@a:1,,b:2", "host:port of one node"),
        ("rediss+cluster://ann:hunter2@a:1/3", "one database"),
        ("redis+cluster://ann:hunter2/x@a:1", "one database"),
    ],
)
def test_what_is_no_address_of_a_cluster_is_refused_without_its_password(url: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted) as refused:
        RedisStreamSink(url, "out")
    assert "hunter2" not in str(refused.value)


def test_a_cluster_that_is_away_may_come_back() -> None:
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1") as raised:
        check_answer("redis+cluster://127.0.0.1:1", {})
    assert may_pass(raised.value)


def _try_until_applied(running: Running[Any]) -> None:
    for _ in range(5):
        running.operator.context.clock.ms += 5_000
        running.operator.on_idle(Collector())
        if running.operator._has_applied_all:
            return
    raise AssertionError("not applied after 5 tries")


@pytest.fixture
def dying() -> Iterator[RedisClusterServers]:
    """One of the test's own, as a master of it is killed."""
    servers = given(RedisClusterServers)
    yield servers
    servers.stop()


@pytest.mark.chaos
def test_a_replica_takes_over_and_nothing_that_it_had_is_lost_or_doubled(dying: RedisClusterServers) -> None:
    name, out = dying.key_of(0, "in"), dying.key_of(0, "out")
    source = Attempt(dying.url, name)
    appending, upserting = Running(RedisListSink(dying.url, out)), Running(RedisUpsertSink(dying.url, key="n"))
    try:
        dying.client.xadd(name, {"n": 0})
        assert source.numbers(1) == [0]
        for running in (appending, upserting):
            running.take(*({"n": number} for number in range(10)))
            running.checkpoint(1)
            running.complete(1)
        dying.wait_for_replica()
        dying.kill_first_master()
        appending.take({"n": 10})
        appending.checkpoint(2)
        appending.complete(2)
        dying.wait_for_takeover()
        _try_until_applied(appending)
        upserting.take(*({"n": number} for number in range(20)))
        upserting.checkpoint(2)
        dying.client.nodes_manager.initialize()
        dying.client.xadd(name, {"n": 1})
        assert source.numbers(1) == [1]
    finally:
        source.source.close()
    assert [json.loads(each)["n"] for each in dying.client.lrange(out, 0, -1)] == list(range(11))
    assert [dying.client.hget(str(number), "n") for number in range(20)] == [str(number) for number in range(20)]


def test_a_hash_takes_the_place_of_no_key_of_another_type(cluster: RedisClusterServers) -> None:
    cluster.client.rpush("name", "a", "b")
    running = Running(RedisUpsertSink(cluster.url, key="n"))
    running.take({"n": "free"}, {"n": "name"})
    with pytest.raises(RedisRefused, match=r"key 'name' is a list, wanted a hash"):
        running.checkpoint(1)
    assert cluster.client.lrange("name", 0, -1) == ["a", "b"]
