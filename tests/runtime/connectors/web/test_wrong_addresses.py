"""A wrong address is said when the job is submitted: what was found there, and what to check; no secret is in it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from understudy.actors.errors import OutsideUnavailable
from understudy.runtime.connectors import (
    HttpRefused,
    HttpSource,
    LineSource,
    RedisRefused,
    RedisStreamSink,
    RedisStreamSource,
    WebsocketSource,
)
from understudy.runtime.connectors.fed_source import FedSource
from understudy.runtime.connectors.reaching import LookTooLong, why_unreachable, within

from ....systems.certificate import Certificate, certificate
from .driving import Driven

__all__ = ["certificate"]


@pytest.fixture
def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _NothingHere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None: ...


class _Server:
    def __init__(self, certificate: Certificate | None = None) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _NothingHere)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.file, certificate.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def plain() -> Iterator[_Server]:
    with closing(_Server()) as server:
        yield server


@pytest.fixture
def with_tls(certificate: Certificate) -> Iterator[_Server]:
    with closing(_Server(certificate)) as server:
        yield server


def sources_at(place: str) -> list[FedSource]:
    return [
        HttpSource(f"http://user:secret@{place}/orders?token=secret"),
        WebsocketSource(f"ws://user:secret@{place}/orders?token=secret", resume=str),
        RedisStreamSource(f"redis://:secret@{place}/0?password=secret", "orders"),
    ]


@pytest.mark.parametrize("index", range(3))
def test_a_port_where_nothing_listens_is_named(index: int, free_port: int, caplog: pytest.LogCaptureFixture) -> None:
    sources_at(f"127.0.0.1:{free_port}")[index].check_at_submit(on_this_machine=True)
    assert "nothing listens at" in caplog.text
    assert f"127.0.0.1:{free_port}" in caplog.text
    assert "check the port" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("index", range(3))
def test_a_host_that_is_unknown_is_named(index: int, caplog: pytest.LogCaptureFixture) -> None:
    sources_at("no-such-host.invalid")[index].check_at_submit(on_this_machine=True)
    assert "no host of that name is known for" in caplog.text
    assert "no-such-host.invalid" in caplog.text
    assert "secret" not in caplog.text


def test_a_host_of_a_socket_is_looked_for(caplog: pytest.LogCaptureFixture) -> None:
    LineSource("no-such-host.invalid:9999").check_at_submit(on_this_machine=True)
    assert "no host of that name is known for no-such-host.invalid:9999" in caplog.text


def test_a_sink_names_a_port_where_nothing_listens(free_port: int, caplog: pytest.LogCaptureFixture) -> None:
    RedisStreamSink(f"redis://:secret@127.0.0.1:{free_port}/0", "out").check_at_submit(on_this_machine=True)
    assert f"nothing listens at redis://:***@127.0.0.1:{free_port}/0" in caplog.text


def test_a_path_that_is_not_there_is_said_at_submit_and_ends_the_reading(
    plain: _Server, caplog: pytest.LogCaptureFixture
) -> None:
    made = HttpSource(f"http://127.0.0.1:{plain.port}/ordres")
    made.check_at_submit(on_this_machine=True)
    assert "/ordres answers 404 Not Found to HEAD (check the path of the URL)" in caplog.text
    with Driven(made) as run, pytest.raises(HttpRefused, match="404 Not Found"):
        run.take(1)


def test_a_certificate_that_is_not_trusted_is_refused(with_tls: _Server) -> None:
    place = f"127.0.0.1:{with_tls.port}"
    for made in (HttpSource(f"https://{place}/orders"), WebsocketSource(f"wss://{place}/orders")):
        with pytest.raises(HttpRefused, match="does not trust"):
            made.check_at_submit(on_this_machine=True)
        with Driven(made) as run, pytest.raises(HttpRefused, match="does not trust"):
            run.take(1)
    with pytest.raises(RedisRefused, match="does not trust"):
        RedisStreamSource(f"rediss://{place}/0", "orders").check_at_submit(on_this_machine=True)


def test_where_the_job_runs_elsewhere_a_refusal_is_a_warning(
    with_tls: _Server, caplog: pytest.LogCaptureFixture
) -> None:
    HttpSource(f"https://127.0.0.1:{with_tls.port}/orders").check_at_submit(on_this_machine=False)
    assert "does not trust" in caplog.text


def test_an_authority_of_your_own_is_named_in_the_environment(
    with_tls: _Server, certificate: Certificate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    HttpSource(f"https://127.0.0.1:{with_tls.port}/orders").check_at_submit(on_this_machine=True)
    assert "answers 404" in caplog.text


def test_tls_where_there_is_none_is_refused(plain: _Server) -> None:
    with pytest.raises(HttpRefused, match="does not speak TLS: check the port"):
        HttpSource(f"https://127.0.0.1:{plain.port}/orders").check_at_submit(on_this_machine=True)
    with pytest.raises(RedisRefused, match="does not speak TLS: check the port"):
        RedisStreamSource(f"rediss://127.0.0.1:{plain.port}/0", "orders").check_at_submit(on_this_machine=True)


def test_what_the_job_meets_and_what_ends_it_names_the_address_too(
    free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    made = HttpSource(f"http://127.0.0.1:{free_port}/orders", retry_ms=0)
    with Driven(made) as run, pytest.raises(OutsideUnavailable, match=f"nothing listens at .*{free_port}/orders"):
        run.take(1)
    assert f"nothing listens at http://127.0.0.1:{free_port}/orders" in caplog.text
    assert "tries again for 0 s" in caplog.text


def test_a_look_that_takes_too_long_is_left_behind() -> None:
    never = threading.Event()
    with pytest.raises(LookTooLong) as raised:
        within(never.wait, seconds=0.01)
    assert "no answer from redis://h/0: check the host" in why_unreachable(raised.value, "redis://h/0")
    never.set()
