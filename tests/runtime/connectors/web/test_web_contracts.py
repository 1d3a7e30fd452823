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
from understudy.runtime.connectors.fed_source import Feed
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


def moves_the_cursor_at_fetch(patch: pytest.MonkeyPatch) -> None:
    asked = HttpSource._ask

    def ask(self: Any, client: Any) -> Any:
        records, cursor = asked(self, client)
        self._cursor = cursor
        return records, cursor

    patch.setattr(HttpSource, "_ask", ask)


def loses_what_finds_no_room(patch: pytest.MonkeyPatch) -> None:
    def put(self: Any, piece: Any) -> None:
        if not self.pieces.full():
            self.pieces.put(piece)
        self._wake()

    patch.setattr(Feed, "put", put)


def forgets_the_end_of_the_queue(patch: pytest.MonkeyPatch) -> None:
    """What waits in the queue counts as emitted when it is looked at."""

    def take(self: Any, piece: Any) -> Any:
        records, self._cursor = piece
        if self._feed.pieces.qsize():
            self._cursor = self._feed.pieces.queue[-1][1]
        return list(records) or None

    patch.setattr(HttpSource, "take", take)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "test"),
    [
        (moves_the_cursor_at_fetch, "test_a_checkpoint_at_each_moment_of_its_threads"),
        (loses_what_finds_no_room, "test_its_threads_have_their_turns_in_other_orders"),
        (forgets_the_end_of_the_queue, "test_a_checkpoint_at_each_moment_of_its_threads"),
    ],
    ids=lambda it: getattr(it, "__name__", None),
)
def test_a_mistake_in_the_thread_or_behind_it_is_found(
    mistake: Any, test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Contract(TestHttpSource):
        timeout = 10
        most_points = 120

    mistake(monkeypatch)
    with closing(Endpoint()) as Contract.server, pytest.raises(AssertionError) as caught:
        getattr(Contract(), test)()
    print(caught.value)
    assert "is missing" in str(caught.value)


def numbered(body: Any) -> tuple[list[Any], Any]:
    return [{"number": number} for number in body["records"]], body["cursor"]
