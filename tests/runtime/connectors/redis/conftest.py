"""The server of these tests."""

from __future__ import annotations

from ....systems.redis import redis, redis_server

__all__ = ["redis", "redis_server"]
