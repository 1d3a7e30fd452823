"""Requests and answers of ASGI, as far as this room needs them. Whatever comes from outside is bounded here.

Nothing of jobs is known here, nor who may ask (`guard`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qs, unquote

from ...messages.known_names import there_are
from .errors import HttpError, bad_request

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY_BYTES = 64 * 1024
"""No order is longer."""
BODY_SECONDS = 10.0
"""So long a client has to send it."""
MAX_QUERY_FIELDS = 100

SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
"""Of each answer. No script, style or address that is not ours, even if a name in a job is one."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, its path relative to where the app is mounted."""

    method: str
    path: tuple[str, ...]
    """Its segments, unquoted, without empty ones; one empty one for the top."""
    root: str
    """Where the app is mounted, without a trailing slash; empty for the top."""
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    """By name in small letters."""
    client: str
    """The address it came from; empty when the server does not say."""
    receive: Receive
    fields: tuple[str, ...] = ()
    """That its body may have, of its route."""

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> Request:
        """Raises HttpError for one that cannot be read."""
        root, path = str(scope.get("root_path", "")).rstrip("/"), str(scope["path"])
        if root and (path == root or path.startswith(f"{root}/")):
            path = path[len(root) :]  # some frameworks leave the mount's path in front, as ASGI says
        try:
            query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
        except ValueError as error:
            raise bad_request(f"the query of {path!r:.200} has more than {MAX_QUERY_FIELDS} fields") from error
        return cls(
            scope["method"].upper(),
            _segments(scope, root, path),
            root,
            query,
            {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
            (scope.get("client") or ("",))[0],
            receive,
        )

    def first(self, name: str, default: str = "") -> str:
        """A field of the query."""
        return self.query.get(name, [default])[0]

    async def json(self) -> dict[str, Any]:
        """The body; empty for none. Raises HttpError when it is too long, too slow, or no JSON object of `fields`."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                data = await self._body()
        except TimeoutError as error:
            raise HttpError(HTTPStatus.REQUEST_TIMEOUT, f"the body did not come within {BODY_SECONDS:g} s") from error
        if not data.strip():
            return {}
        try:
            read = json.loads(data)
            json.dumps(read, ensure_ascii=False).encode()  # half of a surrogate pair is no character of any path
        except (ValueError, RecursionError) as error:
            raise bad_request(f"the body is no JSON: {error}") from error
        if not isinstance(read, dict):
            raise bad_request(f"wanted a JSON object, found {type(read).__name__}")
        for name in read:
            if name not in self.fields:
                asked = f"{self.method} /{'/'.join(self.path)}"
                raise bad_request(f"{asked:.200} has no field {name!r:.100}{there_are(name, self.fields)}")
        return read

    async def _body(self) -> bytes:
        parts, size = [], 0
        while True:
            event = await self.receive()
            if event["type"] == "http.disconnect":
                raise bad_request("the client went away")
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > MAX_BODY_BYTES:
                text = f"the body is longer than {MAX_BODY_BYTES:,} bytes, which no order is"
                raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
            if not event.get("more_body"):
                return b"".join(parts)


def _segments(scope: Scope, root: str, path: str) -> tuple[str, ...]:
    """By the raw path where there is one: a quoted slash is part of a name. Two slashes, as of an address that ends
    with one and a path that begins with one, count as one.
    """
    raw = scope.get("raw_path")
    if raw:
        quoted = raw.decode("latin-1").partition("?")[0]
        if quoted == root or quoted.startswith(f"{root}/"):
            quoted = quoted[len(root) :]
        if unquote(quoted) == path:
            return tuple(unquote(part) for part in _parted(quoted))
    return _parted(path)


def _parted(path: str) -> tuple[str, ...]:
    parts = path.split("/")[1:]
    return tuple(filter(None, parts)) or tuple(parts[:1])


@dataclass(frozen=True, slots=True)
class Response:
    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    content_type: str = "application/json; charset=UTF-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    async def send(self, send: Send, *, without_body: bool = False) -> None:
        headers = {
            "Content-Type": self.content_type,
            "Content-Length": str(len(self.body)),
            "Cache-Control": "no-store",
            **SAFE_HEADERS,
            **self.headers,
        }
        await send({"type": "http.response.start", "status": int(self.status), "headers": _pairs(headers)})
        await send({"type": "http.response.body", "body": b"" if without_body else self.body})


class Events(Protocol):
    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def close(self) -> None:
        """Nobody reads them any more."""
        ...


@dataclass(frozen=True, slots=True)
class EventStream:
    """Server-sent events, as long as the client stays. `events`: each the bytes of one, with its empty line."""

    events: Events

    async def send(self, send: Send) -> None:
        headers = {
            "Content-Type": "text/event-stream; charset=UTF-8",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
            **SAFE_HEADERS,
        }
        await send({"type": "http.response.start", "status": 200, "headers": _pairs(headers)})
        async for event in self.events:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def answer(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """A value as JSON."""
    return Response(status, json.dumps(value, separators=(",", ":")).encode("utf-8", "replace"))


def refusal(error: HttpError) -> Response:
    """In Flink's shape."""
    headers = {"WWW-Authenticate": "Bearer"} if error.status is HTTPStatus.UNAUTHORIZED else {}
    body = json.dumps({"errors": [str(error)]}).encode("utf-8", "replace")
    return Response(error.status, body, headers=headers)
