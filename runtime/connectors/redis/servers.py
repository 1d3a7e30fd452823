"""Servers: who has which key. One server, which has all; or the masters of a Redis Cluster, each with its slots.

Of a cluster, redis-py's RedisCluster is asked who has what, and a key's master is then spoken to by a plain client: so
MULTI, scripts and waits are the same for both, and redirections (MOVED, ASK) are errors that may pass. After an error
`forget` drops what was known, and the next request asks all nodes that were ever known, beside those of the URL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from ..errors import RedisRefused, require

_CLUSTER = "+cluster"


def is_cluster(url: str) -> bool:
    return urlsplit(url).scheme.endswith(_CLUSTER)


class Servers:
    """They are connected with the first request."""

    def __init__(self, url: str, wanted_by: str, timeout_s: float, **options: Any) -> None:
        self._url, self._wanted_by = url, wanted_by
        self._options = {"protocol": 2, "socket_timeout": timeout_s, "socket_connect_timeout": timeout_s, **options}
        self._client: Any = None
        self._known: set[tuple[str, int]] = set()

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()

    def of(self, key: str) -> Any:
        """The client of the server that has this key."""
        client = self._connected()
        return client.get_redis_connection(client.get_node_from_key(key)) if is_cluster(self._url) else client

    def any(self) -> Any:
        """The client of one of them."""
        client = self._connected()
        return client.get_redis_connection(client.get_random_node()) if is_cluster(self._url) else client

    def can_ask_at_once(self, keys: Iterable[str]) -> bool:
        """Whether one request may name all of these keys."""
        slot_of = require("redis.crc", extra="redis", wanted_by=self._wanted_by).key_slot
        return not is_cluster(self._url) or len({slot_of(key.encode()) for key in keys}) <= 1

    def forget(self) -> None:
        """End all connections. The next request connects again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Any:
        if self._client is None:
            self._client = self._of_cluster() if is_cluster(self._url) else self._of_one()
        return self._client

    def _of_one(self) -> Any:
        return require("redis", extra="redis", wanted_by=self._wanted_by).Redis.from_url(self._url, **self._options)

    def _of_cluster(self) -> Any:
        """Raises RedisRefused for a server that is no cluster's, and what the last node that was asked has raised."""
        cluster = require("redis.cluster", extra="redis", wanted_by=self._wanted_by)
        first, *others = nodes_of(self._url)
        nodes = [cluster.ClusterNode(*each) for each in {*map(_place, others), *self._known}]
        options = {name: value for name, value in self._options.items() if name != "retry"}
        try:
            client = _who_has_what(cluster.RedisCluster).from_url(
                first, startup_nodes=nodes, require_full_coverage=False, cluster_error_retry_attempts=0, **options
            )
        except cluster.RedisClusterException as error:
            cause = error.__cause__
            if "not enabled" in str(error):
                raise RedisRefused(
                    f"the server answers, but is no node of a Redis Cluster: {self._wanted_by} with one server wants "
                    "a URL that begins with redis:// (rediss:// with TLS), not with redis+cluster://"
                ) from error
            if cause is None:
                raise
            raise cause from None
        self._known |= {(node.host, node.port) for node in client.get_nodes()}
        return client


def _who_has_what(redis_cluster: Any) -> Any:
    """RedisCluster, but without the list of all commands that it asks for at each connect, which takes longer than all
    the rest of it: where a command's keys stand matters only to commands that it sends itself.
    """
    return type(redis_cluster.__name__, (redis_cluster,), {"command": lambda _: {}})


def nodes_of(url: str) -> list[str]:
    """A URL of redis-py for each node that a cluster's URL names. Raises ValueError; no password is in its text."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if parts.path.strip("/") not in ("", "0"):
        raise ValueError("a Redis Cluster has one database: wanted no number, or /0, behind the hosts")
    scheme = parts.scheme.removesuffix(_CLUSTER)
    nodes = [f"{scheme}://{user}{at}{host}/0" + (f"?{parts.query}" if parts.query else "") for host in hosts.split(",")]
    if not all(_names_a_server(node) for node in nodes):
        raise ValueError("wanted host:port of one node, or of several with commas in between")
    return nodes


def _names_a_server(node: str) -> bool:
    parts = urlsplit(node)
    try:
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # its text may have a part of a password that was not quoted
        return False


def markers_of(key: str) -> str:
    """The key of the hash of markers that stands beside `key`, in its slot if `has_slot_for_markers`."""
    return f"understudy:{key}" if "{" in key else f"understudy:{{{key}}}"


def has_slot_for_markers(key: str) -> bool:
    """Whether a cluster hashes both in the same way: `key` has no braces, or its first { opens a tag that is not empty.

    https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
    """
    before, brace, behind = key.partition("{")
    return behind.find("}") > 0 if brace else "}" not in before


def _place(node: str) -> tuple[str, int]:
    parts = urlsplit(node)
    return parts.hostname or "", parts.port or 6379
