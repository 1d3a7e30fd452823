"""HttpSource against a real HTTP server on loopback: cursors, restarts, and what servers say when they are busy."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from understudy.actors.errors import OutsideUnavailable
from understudy.runtime.connectors import HttpRefused, HttpSource, UnreadableInput

from .driving import Driven

PAGE = 3


class Endpoint:
    """Lists numbers below `count` in pages; `faults` come first: (status, headers), or None: a cut connection."""

    def __init__(self) -> None:
        self.count = 0
        self.faults: list[tuple[int, dict[str, str]] | None] = []
        self.body: Any = None
        self.asked: list[str] = []
        self.headers: list[str | None] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                endpoint.answer(self)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/numbers"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parameters = parse_qs(urlsplit(request.path).query)
        cursor = parameters.get("cursor", ["0"])[0]
        self.asked.append(cursor)
        self.headers.append(request.headers.get("Authorization"))
        status, headers = 200, {}
        if self.faults:
            fault = self.faults.pop(0)
            if fault is None:
                request.connection.close()
                return
            status, headers = fault
        numbers = list(range(int(cursor), min(int(cursor) + PAGE, self.count)))
        body = {"records": numbers, "cursor": int(cursor) + len(numbers)} if self.body is None else self.body
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


def source(endpoint: Endpoint, **options: Any) -> HttpSource:
    return HttpSource(endpoint.url, **{"poll_ms": 10, **options})


def test_pages_come_in_order_and_then_what_is_new(endpoint: Endpoint) -> None:
    endpoint.count = 7
    with Driven(source(endpoint)) as run:
        assert run.take(7) == list(range(7))
        endpoint.count = 9
        assert run.take(2) == [7, 8]


def test_a_restart_asks_again_from_the_cursor_of_its_checkpoint(endpoint: Endpoint) -> None:
    endpoint.count = 8
    with Driven(source(endpoint)) as first:
        assert first.take(3) == [0, 1, 2]
        offset = first.source.offset()
    with Driven(source(endpoint), offset) as second:
        assert second.take(5) == [3, 4, 5, 6, 7]


def test_a_start_a_parse_function_and_headers_are_used(endpoint: Endpoint) -> None:
    endpoint.body = {"items": [1, 2], "next": None}
    made = source(
        endpoint, start=5, headers=lambda: {"Authorization": "secret"}, parse=lambda body: (body["items"], body["next"])
    )
    with Driven(made) as run:
        assert run.take(2) == [1, 2]
    assert endpoint.asked[0] == "5"
    assert endpoint.headers[0] == "secret"


def test_a_busy_server_and_a_cut_connection_are_tried_again(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.count = 2
    endpoint.faults = [(503, {}), None, (429, {"Retry-After": "0"})]
    with Driven(source(endpoint)) as run:
        assert run.take(2) == [0, 1]
    said = [each.getMessage() for each in caplog.records if each.name == "understudy.source"]
    assert len(said) == 2, "once that it is away, once that it works again"
    assert "answers 503" in said[0]


def test_retry_after_is_heeded(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.runtime.connectors.fed_source import Feed

    waits: list[float] = []
    monkeypatch.setattr(Feed, "wait", lambda _self, seconds: waits.append(seconds))
    endpoint.count = 1
    endpoint.faults = [(429, {"Retry-After": "120"}), (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})]
    with Driven(source(endpoint)) as run:
        assert run.take(1) == [0]
    assert waits[0] == 120
    assert waits[1] < 1


def test_a_server_that_stays_busy_is_an_error(endpoint: Endpoint) -> None:
    endpoint.faults = [(500, {})]
    with (
        Driven(source(endpoint, retry_ms=0)) as run,
        pytest.raises(OutsideUnavailable, match="answers 500"),
    ):
        run.take(1)


def test_what_is_no_success_is_refused_without_the_query(endpoint: Endpoint) -> None:
    endpoint.faults = [(403, {})]
    made = HttpSource(f"{endpoint.url}?token=secret", poll_ms=10)
    with Driven(made) as run, pytest.raises(HttpRefused, match="answers 403 Forbidden") as refused:
        run.take(1)
    assert "secret" not in str(refused.value) + repr(made)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (b"<html>", "wanted JSON"),
        (b"[" * 100_000, "wanted JSON"),
        ({"a": 1}, "give HttpSource a parse function"),
    ],
    ids=["no JSON", "deep", "another shape"],
)
def test_an_answer_that_is_not_understood_is_an_error(endpoint: Endpoint, body: Any, match: str) -> None:
    endpoint.body = body
    with Driven(source(endpoint)) as run, pytest.raises(UnreadableInput, match=match):
        run.take(1)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_page_without_end_is_refused_before_it_fills_the_memory(endpoint: Endpoint, compressed: bool) -> None:
    endpoint.body = b"1" * 2_000_000
    if compressed:
        endpoint.faults = [(200, {"Content-Encoding": "gzip"})]
        endpoint.body = gzip.compress(endpoint.body)
        assert len(endpoint.body) < 10_000
    made = source(endpoint, max_bytes=1_000_000)
    with Driven(made) as run, pytest.raises(UnreadableInput, match=r"wanted at most 1,000,000 bytes \(max_bytes\)"):
        run.take(1)


def test_the_text_of_a_refusal_is_not_read_without_end(endpoint: Endpoint) -> None:
    endpoint.faults, endpoint.body = [(403, {})], b"no " * 10_000_000
    with Driven(source(endpoint)) as run, pytest.raises(HttpRefused, match="answers 403 Forbidden"):
        run.take(1)


def test_redirects_in_a_circle_are_refused_at_once(endpoint: Endpoint) -> None:
    endpoint.faults = [(302, {"Location": endpoint.url})] * 50
    with Driven(source(endpoint)) as run, pytest.raises(HttpRefused, match="redirects again and again"):
        run.take(1)


def test_a_limit_of_nothing_is_refused(endpoint: Endpoint) -> None:
    with pytest.raises(ValueError, match=r"max_bytes: wanted a whole number from 1 .*, found 0"):
        source(endpoint, max_bytes=0)


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted http://"):
        HttpSource("example.com/numbers")
