"""A server of server-sent events on loopback: it keeps all that was sent, and replays behind `Last-Event-ID`."""

from __future__ import annotations

import threading
import zlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_WAIT_S = 0.05


class EventServer:
    """Event i has the id i, and the data i. `cuts`: it hangs up, once each, behind these ids; in the middle of the next
    event. `faults` come first: (status, headers).
    """

    def __init__(self) -> None:
        self.count = 0
        self.cuts: list[int] = []
        self.faults: list[tuple[int, dict[str, str]]] = []
        self.with_ids = True
        self.with_gzip = False
        self.kind = "text/event-stream; charset=utf-8"
        self.preface = ": hello\n\n"
        self.nonsense_at: int | None = None
        self.ends_at: int | None = None
        """There the answer ends, in order; and the next one is 204."""
        self.asked: list[str | None] = []
        self.authorized: list[str | None] = []
        self._closed = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/events"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        last = request.headers.get("Last-Event-ID")
        self.asked.append(last)
        self.authorized.append(request.headers.get("Authorization"))
        status, headers = self.faults.pop(0) if self.faults else (200, {})
        first = 0 if last is None else int(last) + 1
        if status == 200 and self.ends_at is not None and first >= self.ends_at:
            status = 204
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        if status != 200:
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_header("Content-Type", self.kind)
        packer = zlib.compressobj(wbits=31) if self.with_gzip else None
        if packer is not None:
            request.send_header("Content-Encoding", "gzip")
        request.send_header("Connection", "close")
        request.end_headers()

        def send(text: str) -> None:
            data = text.encode()
            if packer is not None:
                data = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
            request.wfile.write(data)
            request.wfile.flush()

        with suppress(OSError):  # the client has gone
            self._talk(first, send)
        request.close_connection = True

    def _talk(self, first: int, send: Any) -> None:
        send(self.preface)
        number = first
        while not self._closed.is_set() and number != self.ends_at:
            if number >= self.count:
                send(": wait\n\n")
                self._closed.wait(_WAIT_S)
                continue
            name = f"id: {number}\n" if self.with_ids else ""
            data = "nonsense" if number == self.nonsense_at else str(number)
            if number - 1 in self.cuts:
                self.cuts.remove(number - 1)
                send(f"{name}data: {data}")
                return
            send(f"{name}data: {data}\n\n")
            number += 1

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
