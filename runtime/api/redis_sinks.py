"""RedisSinks: streams that go to Redis. A part of every stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from ..connectors import RedisListSink, RedisStreamSink, RedisUpsertSink
from .ends import End, Ends
from .known_options import Options, known_options


class RedisSinks(Ends[End]):
    """Base of the DataStream."""

    @known_options()
    def to_redis(
        self,
        url: str,
        *,
        key: str | int | Callable[[Any], Any] | Sequence[str],
        prefix: str = "",
        expire_ms: int | None = None,
        kind: str | None = None,
        deleted: str | None = None,
        **options: Unpack[Options],
    ) -> End:
        """Set the hash at `prefix` and the record's key to the record, or remove it: at least once, and right in the
        end. See `RedisUpsertSink` and docs/connectors/redis.md.
        """
        sink = RedisUpsertSink(url, key=key, prefix=prefix, expire_ms=expire_ms, kind=kind, deleted=deleted)
        return self.sink_to(sink, **options)

    @known_options()
    def to_redis_stream(
        self, url: str, key: str, *, most_entries: int | None = None, **options: Unpack[Options]
    ) -> End:
        """Append each record to a stream, exactly once: see `RedisStreamSink` and docs/connectors/redis.md."""
        return self.sink_to(RedisStreamSink(url, key, most_entries=most_entries), **options)

    @known_options()
    def to_redis_list(self, url: str, key: str, **options: Unpack[Options]) -> End:
        """Append the JSON of each record to a list, exactly once: see `RedisListSink`."""
        return self.sink_to(RedisListSink(url, key), **options)
