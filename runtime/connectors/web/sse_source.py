"""SseSource: server-sent events of an HTTP endpoint. The offset is the id of the last event.

    GET url, Last-Event-ID: …   ->   an answer that does not end: events, each with an id

Exactly once if each event has an id of its own, and the server begins right behind the event that `Last-Event-ID` names
(WHATWG HTML, section 9.2.3): after a broken connection as after a restart. At least once if it begins somewhere before
it; at most once if it takes no notice, or sends no ids, which is logged when the first event comes. One subtask reads.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ....actors.flow.elements import Batch
from ....actors.operators.patience import RETRY_MS
from ....actors.setting_limits import duration_setting
from ..errors import HttpRefused
from ..fed_source import Feed, FeedClosed
from .asking import Headers, check_status, headers_of, refusals_named, too_long
from .asking_source import AskingSource
from .event_stream import EventStream, ServerEvent
from .parsed import parsed

log = logging.getLogger("understudy.source")

CONNECT_S = 20.0
_PAUSE_MS = 1_000
"""Before it connects again where a stream has ended in order, and the server has not said how long."""
_MOST_AT_ONCE = 1_000


class SseSource(AskingSource):
    """A record is `parse(event)`, of a ServerEvent; by default the JSON of its data. `last_event_id`: where to begin,
    if no checkpoint says it; "": where the server begins. `headers` may be a function, for tokens: it is called before
    each connect. `idle_ms`: a connection without a byte for so long, not even a comment, is made again. An event has at
    most `max_bytes`.

    Connections that fail or break, 429 and 5xx, are tried again for `retry_ms`, not before the server's `retry:` or
    `Retry-After`. An answer that ended is asked for again; 204 is the end of the stream. Other answers that are no
    event stream raise HttpRefused.
    """

    most_ahead = 64

    def __init__(
        self,
        url: str,
        *,
        parse: Callable[[ServerEvent], Any] | None = None,
        last_event_id: str = "",
        headers: Headers = None,
        idle_ms: float = 300_000,
        retry_ms: float = RETRY_MS,
        max_bytes: int = 16 << 20,
    ) -> None:
        super().__init__(url, headers, retry_ms, max_bytes)
        self.parse, self.first = parse or _json_of, last_event_id
        self.idle_ms = duration_setting("idle_ms", idle_ms, 1)
        self._answer: Any = None

    def open(self) -> None:
        self._last_id = self.first

    def offset(self) -> Any:
        return {"last_event_id": self._last_id}

    def seek(self, offset: Any) -> None:
        self._last_id = offset["last_event_id"]

    def take(self, piece: tuple[list[Any], str]) -> Batch | None:
        records, self._last_id = piece
        return records or None

    def interrupt(self) -> None:
        """The thread may wait for the next event for long."""
        if self._answer is not None:
            with suppress(Exception):  # it is over already
                connected = self._answer.extensions["network_stream"].get_extra_info("socket")
                connected.shutdown(socket.SHUT_RDWR)

    # -- on the source's thread

    def _timeout(self) -> Any:
        return self._httpx().Timeout(CONNECT_S, read=self.idle_ms / 1000)

    def _listen(self, client: Any, feed: Feed) -> None:
        if not hasattr(self, "_brought"):
            self._brought = self._last_id
            """The thread's own; a second call goes on where the first was cut off."""
            self._server_retry_ms: int | None = None
        while True:
            try:
                is_over = self._connect(client, feed)
            except self._httpx().TransportError as error:
                if feed.closed.is_set():
                    raise FeedClosed from error
                error.retry_after_ms = self._server_retry_ms
                raise
            if is_over:
                return
            feed.wait((_PAUSE_MS if self._server_retry_ms is None else self._server_retry_ms) / 1000)

    def _connect(self, client: Any, feed: Feed) -> bool:
        """Bring what one connection sends. Whether it is the last one."""
        headers: dict[str, Any] = {**headers_of(self.headers), "Accept": "text/event-stream"}
        if self._brought:
            headers["Last-Event-ID"] = self._brought.encode()
        with refusals_named(self.url):
            answer = client.send(client.build_request("GET", self.url, headers=headers), stream=True)
        try:
            if answer.status_code == 204:
                return True
            check_status(answer, self.url)
            kind = answer.headers.get("Content-Type", "")
            if kind.partition(";")[0].strip().lower() != "text/event-stream":
                raise HttpRefused(
                    f"{self.place()}: wanted an answer of text/event-stream, found {kind or 'no Content-Type'!r}: "
                    "check the path; for an endpoint that answers with JSON use HttpSource"
                )
            self._answer = answer
            feed.works()
            self._read(answer, EventStream(self._brought), feed)
            return False
        finally:
            self._answer = None
            answer.close()

    def _read(self, answer: Any, stream: EventStream, feed: Feed) -> None:
        for block in answer.iter_bytes():
            events = stream.events(block)
            self._server_retry_ms = self._server_retry_ms if stream.retry_ms is None else stream.retry_ms
            for start in range(0, len(events), _MOST_AT_ONCE):
                self._bring(events[start : start + _MOST_AT_ONCE], feed)
            if stream.last_id != self._brought:  # an id without data is a place to go on from, too
                feed.put(([], stream.last_id))
                self._brought = stream.last_id
            if stream.held_bytes > self.max_bytes:
                raise too_long(f"{self!r}: event behind {stream.last_id!r}", self.max_bytes)
            if feed.closed.is_set():
                raise FeedClosed

    def _bring(self, events: Sequence[ServerEvent], feed: Feed) -> None:
        """Raises UnreadableInput, behind what stands before the event."""
        if not events[0].id and not hasattr(self, "_has_warned"):
            self._has_warned = True
            log.warning(
                "source %r: events of %s come without an id, so it cannot be read again: after each break and restart, "
                "records are lost (at most once)",
                self.context.name,
                self.place(),
            )
        records, problem = parsed(events, self.parse, self._named)
        if records:
            reached = events[len(records) - 1].id
            feed.put((records, reached))
            self._brought = reached
        if problem is not None:
            raise problem

    def _named(self, event: ServerEvent) -> str:
        return f"{self!r}: event {event.id!r}, {event.data[:200]!r}"


def _json_of(event: ServerEvent) -> Any:
    return json.loads(event.data)
