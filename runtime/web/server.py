"""WebServer: the app on a port of its own, served by uvicorn on a thread with an event loop of its own.

    made -> starting -> serving -> stopped

Its owner, a cluster or a command, closes it. Without a token it binds to loopback only.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from ..connectors.errors import require
from ..system.seldom import seldom_logger
from .app import App
from .binding import check_binding
from .connections import Connections, Limits

STOP_SECONDS = 2
"""So long open connections may take to end before they are cut."""
_QUEUE = 128
"""Clients that may wait in the kernel until they are accepted."""


def _quiet(protocol: Callable[..., Any]) -> Callable[..., Any]:
    """Uvicorn's protocol without two of its noises. A logger that seldom speaks replaces its own, which has a line for
    each request that is none. And where a body turns to garbage while the app is at work on the request, the app sees
    a client that is gone: else it would answer after uvicorn's 400, which fails with a traceback.
    """
    logger = seldom_logger(f"{__name__}.requests")

    def make(**of_uvicorn: Any) -> Any:
        made = protocol(**of_uvicorn)
        made.logger = logger
        made.send_400_response = partial(_refuse, made, made.send_400_response)
        return made

    return make


def _refuse(connection: Any, answer: Callable[[str], None], text: str) -> None:
    """`answer`: uvicorn's, with the status 400. It is too late for it once the app has begun its own."""
    request = connection.cycle
    is_at_work = request is not None and not request.response_complete
    if is_at_work and request.response_started:
        connection.transport.close()
    else:
        answer(text)
    if is_at_work:
        request.disconnected = True
        request.message_event.set()


class WebServer:
    """`port` 0: any that is free. Raises MissingExtra without uvicorn, InvalidSetting, OSError for a taken port.

    `limits`: of its connections; without them, what this process can spare.
    """

    def __init__(
        self,
        app: App,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        check_binding(host, token)
        uvicorn: Any = require("uvicorn", extra="web", wanted_by="the page")
        from uvicorn.protocols.http.h11_impl import H11Protocol

        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = _Listener(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            why = f"the page cannot be served at {host}:{port}: {error.strerror}; choose another port, or 0 for any"
            raise OSError(error.errno, why) from error
        self.port: int = self._socket.getsockname()[1]
        self._host = host
        self._app = app
        limits = limits or Limits.of_process()
        app.limit_streams(max(1, limits.most // 2))
        self._connections = Connections(app, _quiet(H11Protocol), limits)
        config = uvicorn.Config(
            self._connections,
            interface="asgi3",
            loop="asyncio",
            http=self._connections.make,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
            timeout_keep_alive=limits.head_seconds,
            backlog=limits.at_once,
        )
        self._server: Any = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="understudy-web", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def connections(self) -> int:
        """The number of those that are open."""
        return len(self._connections)

    @property
    def url(self) -> str:
        """Where the page is."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}/"

    def start(self) -> WebServer:
        """Connections that come before it serves wait in the socket."""
        self._socket.listen()
        self._thread.start()
        return self

    def close(self) -> None:
        """Serve nobody any more; again, it does nothing."""
        self._server.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended just now
                self._loop.call_soon_threadsafe(self._app.end_streams)
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS + 3)
        self._socket.close()

    def __enter__(self) -> WebServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._socket])


class _Listener(socket.socket):
    """asyncio accepts as many in one turn as may queue: here few are accepted at once, and many may queue."""

    def listen(self, backlog: int = _QUEUE, /) -> None:
        super().listen(max(backlog, _QUEUE))
