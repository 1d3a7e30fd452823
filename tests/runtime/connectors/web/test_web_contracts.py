"""The kit's contract, on servers of this machine. In each source a thread of its own reads: it is stopped wherever it
may be. Its queue is short, so that it is full now and then. One subtask reads, so there is nothing to rescale.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, ClassVar

import httpx
import pytest

from understudy.actors.operators.source import Source
from understudy.runtime.connectors import HttpSource, SseSource, WebsocketSource
from understudy.testing import SourceContract

from .event_server import EventServer
from .test_http_source import Endpoint
from .test_websocket_source import Talker

pytestmark = pytest.mark.drawn

ROWS, MESSAGES = 24, 15


class _Contract(SourceContract):
    server: ClassVar[Any]
    parallelisms = (1,)
    rows: ClassVar[int] = ROWS
    most_points = 8

    def wanted(self) -> list[Any]:
        return [{"number": number} for number in range(self.rows)]


class TestHttpSource(_Contract):
    outside = ("httpx",)

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with closing(Endpoint()) as type(self).server:
            yield

    def clear(self) -> None:
        self.server.count = ROWS
        self.server.faults = [(503, {"Retry-After": "0"})]

    def make_source(self) -> Source:
        made = HttpSource(self.server.url, parse=numbered, poll_ms=10)
        made.most_ahead = 2
        return made

    def error(self) -> BaseException:
        return httpx.ReadError("the connection was lost (by the contract)")


class TestSseSource(_Contract):
    outside = ("httpx",)

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with closing(EventServer()) as type(self).server:
            yield

    def clear(self) -> None:
        self.server.count = ROWS
        self.server.cuts = [ROWS // 2]
        self.server.preface = "retry: 10\n\n"

    def make_source(self) -> Source:
        made = SseSource(self.server.url, parse=lambda event: {"number": json.loads(event.data)})
        made.most_ahead = 2
        return made

    def error(self) -> BaseException:
        return httpx.ReadError("the connection was lost (by the contract)")


class TestWebsocketSource(_Contract):
    outside = ("websockets",)
    rows = MESSAGES

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with closing(Talker()) as type(self).server:
            yield

    def clear(self) -> None:
        self.server.last = MESSAGES
        self.server.cuts = [4, 9]

    def make_source(self) -> Source:
        made = WebsocketSource(
            self.server.url,
            subscribe='{"from": 0}',
            resume=lambda last: json.dumps({"from": last["number"] + 1}),
            parse=lambda message: {"number": json.loads(message)},
        )
        made.most_ahead = 2
        return made


@pytest.mark.slow
class TestHttpSourceAtManyPoints(TestHttpSource):
    most_points = 200


@pytest.mark.slow
class TestSseSourceAtManyPoints(TestSseSource):
    most_points = 200


@pytest.mark.slow
class TestWebsocketSourceAtManyPoints(TestWebsocketSource):
    most_points = 200


def numbered(body: Any) -> tuple[list[Any], Any]:
    return [{"number": number} for number in body["records"]], body["cursor"]
