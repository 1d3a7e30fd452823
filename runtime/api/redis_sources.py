"""RedisSources: streams that come from Redis. A part of the StreamEnvironment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

from ...messages.known_names import known_arguments
from ..connectors import RedisStreamSource
from .beginnings import Beginnings

if TYPE_CHECKING:
    import pyarrow as pa

    from .stream import DataStream


class RedisSourceOptions(TypedDict, total=False):
    """What `from_redis` takes beside the address and the streams."""

    start: str
    schema: pa.Schema | None
    on_loss: str
    retry_ms: float


class RedisSources(Beginnings):
    """Base of the StreamEnvironment."""

    @known_arguments(first=1, also=RedisSourceOptions.__annotations__)
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
        return self._start(RedisStreamSource(url, streams, **self._with(options)), name, parallelism)
