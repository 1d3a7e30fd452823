"""WebSources: streams of HTTP endpoints, websockets and sockets. A part of the StreamEnvironment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ...actors.operators.patience import RETRY_MS
from ...messages.known_names import known_arguments
from ..connectors import HttpSource, LineSource, ServerEvent, SseSource, WebsocketSource
from .beginnings import Beginnings

if TYPE_CHECKING:
    from .stream import DataStream


class HttpOptions(TypedDict, total=False):
    """What `HttpSource` takes beside the URL."""

    parse: Callable[[Any], tuple[Sequence[Any], Any]] | None
    cursor_parameter: str
    start: Any
    headers: Mapping[str, str] | Callable[[], Mapping[str, str]] | None
    poll_ms: float
    retry_ms: float
    max_bytes: int


class WebsocketOptions(TypedDict, total=False):
    """What `WebsocketSource` takes beside the URL."""

    parse: Callable[[str | bytes], Any] | None
    subscribe: str | Sequence[str]
    resume: Callable[[Any], str] | None
    headers: Mapping[str, str] | None
    retry_ms: float
    max_bytes: int


class SseOptions(TypedDict, total=False):
    """What `SseSource` takes beside the URL."""

    parse: Callable[[ServerEvent], Any] | None
    last_event_id: str
    headers: Mapping[str, str] | Callable[[], Mapping[str, str]] | None
    idle_ms: float
    retry_ms: float
    max_bytes: int


class WebSources(Beginnings):
    """Base of the StreamEnvironment. Of each source one subtask reads."""

    @known_arguments(first=1, also=HttpOptions.__annotations__)
    def from_http(self, url: str, *, name: str | None = None, **options: Unpack[HttpOptions]) -> DataStream:
        """Ask an HTTP endpoint that answers with JSON, again and again, with a cursor. A record is what the endpoint
        lists. Exactly once if it answers a cursor with the same records each time. Options: those of `HttpSource`. See
        docs/connectors/http.md.
        """
        return self._start(HttpSource(url, **options), name, 1)

    @known_arguments(first=1, also=SseOptions.__annotations__)
    def from_sse(self, url: str, *, name: str | None = None, **options: Unpack[SseOptions]) -> DataStream:
        """The server-sent events of an HTTP endpoint. A record is the JSON of an event's data, or what `parse` makes of
        the event. Exactly once if events have ids and the server begins right behind `Last-Event-ID`. Options: those of
        `SseSource`. See docs/connectors/http.md.
        """
        return self._start(SseSource(url, **options), name, 1)

    @known_arguments(first=1, also=WebsocketOptions.__annotations__)
    def from_websocket(self, url: str, *, name: str | None = None, **options: Unpack[WebsocketOptions]) -> DataStream:
        """The messages of a websocket: at most once, unless `resume` makes it replayable. A record is the message's
        JSON, or what `parse` makes of it. Options: those of `WebsocketSource`. See docs/connectors/http.md.
        """
        return self._start(WebsocketSource(url, **options), name, 1)

    def from_socket(
        self, address: str, *, retry_ms: float = RETRY_MS, max_bytes: int = 16 << 20, name: str | None = None
    ) -> DataStream:
        """Lines of text from "host:port" or a Unix socket's path: at most once, for trials. A record is a text, of a
        line of at most `max_bytes`.
        """
        return self._start(LineSource(address, retry_ms=retry_ms, max_bytes=max_bytes), name, 1)
