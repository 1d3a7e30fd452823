"""ScrapeServer: a WSGI callable on a port of its own, for scrapers: one request a connection, each in a thread.

    made -> serving -> closed

It never has more than MOST connections, so that clients that say nothing take neither threads nor descriptors from the
process: a new one takes the place of the oldest.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

MOST = 16
ROOM_SECONDS = 1
"""How long a new connection waits for the oldest to end, which one that is being answered does not do at once."""
SILENT_SECONDS = 10
"""A client that sends nothing, or reads nothing, for this time is cut off."""


class ScrapeServer:
    """Serves from when it is made. Port 0: any that is free. Raises OSError for a port that is taken."""

    def __init__(self, app: Callable[..., Iterable[bytes]], port: int, host: str) -> None:
        kind = _Server6 if ":" in host else _Server
        self._server = make_server(host, port, app, kind, _Handler)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="understudy-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Idempotent."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(WSGIRequestHandler):
    timeout = SILENT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        """A scrape is no news."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: dict[Any, None] = {}
        """The oldest first."""
        self._changed = threading.Condition()

    def process_request(self, request: Any, client_address: Any) -> None:
        """It is closed at once where no other makes room for it."""
        if self._makes_room_for(request):
            super().process_request(request, client_address)
        else:
            super().shutdown_request(request)

    def _makes_room_for(self, request: Any) -> bool:
        with self._changed:
            if len(self._open) >= MOST:
                with contextlib.suppress(OSError):  # its client is gone; its thread ends without us
                    next(iter(self._open)).shutdown(socket.SHUT_RDWR)
            if self._changed.wait_for(lambda: len(self._open) < MOST, ROOM_SECONDS):
                self._open[request] = None
                return True
            return False

    def shutdown_request(self, request: Any) -> None:
        with self._changed:
            self._open.pop(request, None)
            self._changed.notify()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was cut off, or went away, is no news either; what else fails, the app has answered."""


class _Server6(_Server):
    address_family = socket.AF_INET6
