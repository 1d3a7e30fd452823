"""Streams from and to Redis, as parts of the StreamEnvironment and of every stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ...actors.operators.operator import Operator
from ...actors.operators.source import Source
from ..connectors import RedisListSink, RedisStreamSink, RedisStreamSource, RedisUpsertSink
from .joined_streams import Options
from .schemas import declared_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from .stream import DataStream


class RedisSourceOptions(TypedDict, total=False):
    """What `from_redis` takes beside the address and the streams."""

    start: str
    schema: pa.Schema | None
    on_loss: str
    retry_ms: float


class RedisSources:
    """Base of the StreamEnvironment."""

    if TYPE_CHECKING:

        def _batching(self) -> dict[str, Any]: ...
        def _start(self, source: Source, name: str | None, parallelism: int | None, group: None) -> DataStream: ...

    def from_redis(
        self,
        url: str,
        streams: str | Sequence[str],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        **options: Unpack[RedisSourceOptions],
    ) -> DataStream:
        """Read streams of Redis, each entry once. A record is a dict of "stream", "id" and "fields"; with a `schema`
        it is a Row of these columns. Options: those of `RedisStreamSource`. See docs/connectors/redis.md.
        """
        if "schema" in options:
            options["schema"] = declared_schema(options["schema"])
        return self._start(RedisStreamSource(url, streams, **self._batching(), **options), name, parallelism, None)


class RedisSinks:
    """A part of every stream."""

    @abstractmethod
    def sink_to(self, sink: Operator | type[Operator], **options: Unpack[Options]) -> Any:
        """End the stream in a sink."""

    def to_redis(
        self,
        url: str,
        *,
        key: str | int | Callable[[Any], Any] | Sequence[str],
        prefix: str = "",
        expire_s: int | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Set the hash at `prefix` and the record's key to the record: at least once, and right in the end. See
        `RedisUpsertSink` and docs/connectors/redis.md.
        """
        return self.sink_to(RedisUpsertSink(url, key=key, prefix=prefix, expire_s=expire_s), **options)

    def to_redis_stream(
        self, url: str, key: str, *, most_entries: int | None = None, **options: Unpack[Options]
    ) -> Any:
        """Append each record to a stream, exactly once: see `RedisStreamSink` and docs/connectors/redis.md."""
        return self.sink_to(RedisStreamSink(url, key, most_entries=most_entries), **options)

    def to_redis_list(self, url: str, key: str, **options: Unpack[Options]) -> Any:
        """Append the JSON of each record to a list, exactly once: see `RedisListSink`."""
        return self.sink_to(RedisListSink(url, key), **options)
