"""The kit's contract, on a real server: the source's thread is stopped wherever it may be. Its queue is short, so that
it is full now and then.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import redis as client

from understudy.actors.operators.source import Source
from understudy.runtime.connectors import RedisStreamSource
from understudy.testing import SourceContract

from ....systems.redis import RedisServer

pytestmark = [pytest.mark.processes, pytest.mark.drawn]

STREAMS, ROWS = ("a", "b", "c"), 24


class TestRedisStreamSource(SourceContract):
    outside = ("redis",)
    most_points = 8
    server: ClassVar[RedisServer]

    @pytest.fixture(autouse=True)
    def _with_server(self, redis: RedisServer) -> None:
        type(self).server = redis

    def clear(self) -> None:
        self.server.client.flushall()
        for number in range(ROWS):
            self.server.client.xadd(STREAMS[number % 3], {"n": number})

    def make_source(self) -> Source:
        made = RedisStreamSource(self.server.url, STREAMS, batch_rows=2)
        made.most_ahead = 2
        return made

    def wanted(self) -> list[Any]:
        return [(STREAMS[number % 3], str(number)) for number in range(ROWS)]

    def compared(self, record: Any) -> Any:
        """Without its id, which the server gives."""
        return record["stream"], record["fields"]["n"]

    def error(self) -> BaseException:
        return client.ConnectionError("the connection was lost (by the contract)")


@pytest.mark.slow
class TestRedisStreamSourceAtManyPoints(TestRedisStreamSource):
    most_points = 200
