"""WebsocketSource against a real server on loopback: reconnects, and what can be resumed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from understudy.runtime.connectors import HttpRefused, UnreadableInput, WebsocketSource

from .driving import Driven


def _only_numbers(connection: ServerConnection, request: Request) -> Response | None:
    return connection.respond(404, "") if "refused" in request.path else None


class Talker:
    """Sends the numbers from the one that is asked for; cuts the connection behind each of `cuts`."""

    def __init__(self) -> None:
        self.cuts: list[int] = []
        self.heard: list[Any] = []
        self.greeting = ""
        self.last = 20
        self._server: Server = serve(self._talk, "127.0.0.1", 0, process_request=_only_numbers)
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}/numbers"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _talk(self, connection: ServerConnection) -> None:
        asked = json.loads(connection.recv(timeout=60))
        self.heard.append(asked)
        if self.greeting:
            connection.send(self.greeting)
        for number in range(asked["from"], self.last):
            connection.send(json.dumps(number) if number < 15 else "nonsense")
            if number in self.cuts:
                self.cuts.remove(number)
                return
        for _ in connection:
            pass

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()


@pytest.fixture
def talker() -> Iterator[Talker]:
    talker = Talker()
    yield talker
    talker.close()


def subscribed(talker: Talker, **options: Any) -> WebsocketSource:
    return WebsocketSource(talker.url, subscribe='{"from": 0}', **options)


def resumed(last: int) -> str:
    return json.dumps({"from": last + 1})


def test_messages_come_after_the_subscription(talker: Talker) -> None:
    with Driven(subscribed(talker)) as run:
        assert run.take(10)[:10] == list(range(10))
    assert talker.heard == [{"from": 0}]


def test_a_connection_that_breaks_is_resumed_behind_the_last_message(talker: Talker) -> None:
    talker.cuts = [4, 9]
    with Driven(subscribed(talker, resume=resumed, parse=_number)) as run:
        assert run.take(15)[:15] == list(range(15))
    assert talker.heard == [{"from": 0}, {"from": 5}, {"from": 10}]


def test_a_restart_resumes_behind_what_its_checkpoint_covers(talker: Talker) -> None:
    talker.cuts = [4]
    with Driven(subscribed(talker, resume=resumed, parse=_number)) as first:
        seen = first.take(1)
        offset = first.source.offset()
    with Driven(subscribed(talker, resume=resumed, parse=_number), offset) as second:
        seen += second.take(15 - len(seen))
    assert seen[:15] == list(range(15))


def _number(message: Any) -> int:
    return 0 if message == "nonsense" else int(json.loads(message))


def test_a_message_that_cannot_be_parsed_is_an_error(talker: Talker) -> None:
    with Driven(subscribed(talker)) as run, pytest.raises(UnreadableInput, match="nonsense"):
        run.take(20)


def test_a_message_that_is_too_long_is_an_error_that_says_so(talker: Talker) -> None:
    talker.greeting = "1" * 2_000
    with (
        Driven(subscribed(talker, max_bytes=1_000)) as run,
        pytest.raises(UnreadableInput, match=r"wanted at most 1,000 bytes \(max_bytes\)"),
    ):
        run.take(1)


def test_a_message_that_is_too_deep_is_an_error(talker: Talker) -> None:
    talker.greeting = "[" * 100_000
    with Driven(subscribed(talker)) as run, pytest.raises(UnreadableInput, match="recursion"):
        run.take(1)


def test_that_it_cannot_be_read_again_is_said_at_submit(talker: Talker, caplog: pytest.LogCaptureFixture) -> None:
    subscribed(talker, resume=resumed).check_at_submit(on_this_machine=True)
    assert not [each for each in caplog.records if each.name == "understudy.source"]
    subscribed(talker).check_at_submit(on_this_machine=True)
    assert "records are lost" in caplog.text


def test_a_path_that_is_refused_is_an_error_with_the_status(talker: Talker) -> None:
    made = WebsocketSource(f"{talker.url}-refused?token=secret", resume=resumed)
    with pytest.raises(HttpRefused, match=r"numbers-refused answers 404 Not Found \(check the path of the URL\)"):
        made.check_at_submit(on_this_machine=True)
    with Driven(made) as run, pytest.raises(HttpRefused, match="answers 404"):
        run.take(1)
