"""The servers of these tests."""

from __future__ import annotations

from ....systems.redis import redis, redis_server
from ....systems.redis_cluster import cluster, redis_cluster

__all__ = ["cluster", "redis", "redis_cluster", "redis_server"]
