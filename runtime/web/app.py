"""App: the ASGI callable. It serves the page, its live view, and the REST interface, below wherever it is mounted.

    GET /                    the page, and its scripts and styles
    GET /live?job=...        server-sent events
    GET /openapi.json        the description of the REST interface
    /v1/..., /...            the REST interface

Scripts and styles hold nothing of a job, so they are given to everybody; all else is the Guard's.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from importlib import resources
from typing import Any

from ...messages import RequestLogs
from ...state.job_history import JobHistory
from . import page_view
from .absent import absent_routes
from .errors import HttpError, fault
from .flink_checkpoints import by_id
from .guard import Guard
from .http import EventStream, Receive, Request, Response, Scope, Send, answer, refusal
from .jobs import Desk, Jobs
from .landing import landing
from .live import Live
from .openapi import describe
from .orders import Orders
from .processes import Processes
from .rest import Rest
from .routes import Route, Routes
from .state_view import as_json, question, state_of

log = logging.getLogger(__name__)
LINES_SHOWN = 300

_TYPES = {
    ".html": "text/html; charset=UTF-8",
    ".js": "text/javascript; charset=UTF-8",
    ".css": "text/css; charset=UTF-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=UTF-8",
}


class App:
    """Made by `asgi_app`. Any number of event loops and threads may call it."""

    def __init__(
        self,
        jobs: Jobs | None,
        *,
        history: JobHistory | None = None,
        token: str | None = None,
        hosts: Collection[str] = (),
        trust_callers: bool = False,
        read_only: bool = False,
        version: str = "0",
    ) -> None:
        self._guard = Guard(token, hosts, trust_callers=trust_callers)
        self._desk = Desk(jobs, history)
        self._live = Live(self._desk)
        self._read_only = read_only
        rest = self._rest = Rest(self._desk, Orders(self._desk), read_only=read_only)
        served = [*rest.routes(), *Processes(self._desk).routes()]
        self._routes = Routes([*served, *self._own_routes()], absent_routes())
        self._openapi = answer(describe(served, version))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "lifespan":
                await _lifespan(receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1000})
            case _:
                pass

    def end_streams(self) -> None:
        """The server is about to end: pages are to connect again."""
        self._live.end()

    def limit_streams(self, most: int) -> None:
        """Serve at most this number of pages at once: requests want connections, too."""
        self._live.limit(most)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = Request.of(scope, receive)
            found = await self._answer(request)
        except HttpError as error:
            await refusal(error).send(send)
            return
        except Exception as error:  # supervision boundary: one request must not end the service around the app
            log.exception("%s %s failed", scope["method"], scope["path"])
            await refusal(fault(error)).send(send)
            return
        if isinstance(found, EventStream):
            await _until_gone(found, receive, send)
        else:
            await found.send(send, without_body=request.method == "HEAD")

    async def _answer(self, request: Request) -> Response | EventStream:
        if request.method in ("GET", "HEAD") and (static := _static(request)) is not None:
            return static
        self._guard.check_origin(request)
        if request.path == ("login",):
            return self._login(request)
        if (landed := landing(request, self._routes)) is not None:
            return landed
        self._guard.check(request)
        path = request.path[1:] if request.path[:1] == ("v1",) else request.path
        route, arguments = self._routes.find(request.method, path)
        found = await route.handler(replace(request, fields=route.takes), *arguments)
        return found if isinstance(found, Response | EventStream) else answer(found)

    def _login(self, request: Request) -> Response:
        if request.method != "POST":
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "POST it, with the token in Authorization")
        return Response(HTTPStatus.NO_CONTENT, headers={"Set-Cookie": self._guard.cookie_for(request)})

    # -- the page's own questions

    def _own_routes(self) -> list[Route]:
        return [
            Route("GET", "/live", self._stream, "Server-sent events", ("job",)),
            Route("GET", "/openapi.json", self._describe, "This description"),
            Route("GET", "/page", self._page, "What the page may do here"),
            Route("GET", "/page/:jobid/checkpoints/:checkpointid", self._gantt, "One checkpoint's parts"),
            Route("GET", "/page/:jobid/logs", self._logs, "What its TaskManagers have logged lately"),
            Route("GET", "/page/:jobid/watermarks", self._watermarks, "Why event time is where it is"),
            Route("GET", "/page/:jobid/state", self._state, "What each operator keeps"),
            Route("POST", "/page/:jobid/ask", self._ask, "A question to an operator", ("operator", "key", "question")),
        ]

    async def _stream(self, request: Request) -> EventStream:
        return EventStream(await self._live.stream(request.first("job")))

    async def _describe(self, request: Request) -> Response:
        return self._openapi

    async def _page(self, request: Request) -> Any:
        return {"live": self._desk.is_live, "orders": self._desk.is_live and not self._read_only}

    async def _gantt(self, request: Request, job_id: str, checkpoint_id: str) -> Any:
        found = by_id(await self._desk.checkpoints(job_id), checkpoint_id)
        return page_view.gantt(await self._desk.view(job_id), found)

    async def _logs(self, request: Request, job_id: str) -> Any:
        return page_view.logs(await self._desk.ask(RequestLogs(await self._desk.job_id(job_id))))[-LINES_SHOWN:]

    async def _watermarks(self, request: Request, job_id: str) -> Any:
        return page_view.watermarks(self._desk.explain(await self._desk.view(job_id)))

    async def _state(self, request: Request, job_id: str) -> Any:
        view = await self._desk.view(job_id)
        return state_of(view, await self._desk.metrics_of(view), await self._desk.key_groups(view))

    async def _ask(self, request: Request, job_id: str) -> Any:
        self._rest.may_order()
        asked = question(await self._desk.view(job_id), await request.json())
        return {"answer": as_json((await self._desk.ask(asked)).answer)}


def _static(request: Request) -> Response | None:
    """A file of the page; None for another path."""
    if request.path == ():
        return Response(HTTPStatus.TEMPORARY_REDIRECT, headers={"Location": f"{request.root}/"})
    name = "/".join(request.path) or "index.html"
    body = _files().get(name)
    if body is None:
        return None
    headers = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", "") and len(body) > 1_000:
        body, headers["Content-Encoding"] = _compressed(name), "gzip"
    kind = _TYPES.get(name[name.rfind(".") :], "application/octet-stream")
    return Response(body=body, content_type=kind, headers=headers)


@lru_cache
def _compressed(name: str) -> bytes:
    return gzip.compress(_files()[name], mtime=0)


@lru_cache
def _files() -> dict[str, bytes]:
    """All that may be served, by name: so no path can lead elsewhere."""
    found: dict[str, bytes] = {}

    def read(folder: Any, prefix: str) -> None:
        for each in folder.iterdir():
            if each.is_dir():
                read(each, f"{prefix}{each.name}/")
            elif each.name[each.name.rfind(".") :] in _TYPES:
                found[f"{prefix}{each.name}"] = each.read_bytes()

    read(resources.files(__package__) / "static", "")
    return found


async def _until_gone(stream: EventStream, receive: Receive, send: Send) -> None:
    """Send events until the client goes away."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    sending, leaving = asyncio.ensure_future(stream.send(send)), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (sending, leaving):
            each.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)
        stream.events.close()


async def _lifespan(receive: Receive, send: Send) -> None:
    """The lifespan of a server that serves this app alone."""
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
